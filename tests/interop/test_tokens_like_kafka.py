"""Apache Kafka's own client, librdkafka and our command line get tokens of the same server.

With the same settings they ask it the same, in the same words, and log in with what they get. The
requests of Apache Kafka's client are recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import confluent_kafka
import pytest

from tests.counterparts.kafka_tools import TOPICS, run_tool
from tests.counterparts.protected import ProtectedBarnabas
from tests.interop.command_line import run
from tests.interop.recorded_kafka import plain
from tests.secured import Keys, as_properties, trusting
from tests.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServerForTests,
    client_credentials,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SAID = ("Accept", "Authorization", "Cache-Control", "Content-Type")
"""Headers about the content of the request; the others are about HTTP."""
URLENCODE = "sasl.oauthbearer.header.urlencode"
SCOPE = "sasl.oauthbearer.scope"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def broker(keys, tmp_path_factory):
    with ProtectedBarnabas(keys, tmp_path_factory.mktemp("barnabas")) as running:
        yield running


class Lister:
    """Lists topics with a file of settings, by Kafka's tool or by our command."""

    def __init__(self, servers: str, directory: Path) -> None:
        self._servers = servers
        self._directory = directory

    def by_java(self, settings: Mapping[str, str], url: str) -> tuple[int, str]:
        allowed = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": url}
        arguments = ("--bootstrap-server", self._servers, "--list")
        path = self._written(settings)
        result = run_tool(TOPICS, *arguments, "--command-config", str(path), properties=allowed)
        return result.exit_code, result.output

    def by_barnabas(self, settings: Mapping[str, str], _url: str) -> tuple[int, str]:
        path = self._written(settings)
        arguments = ("topics", "list", "-b", self._servers, "--command-config", path)
        result = run(*arguments, cwd=self._directory)
        return result.exit_code, result.stderr

    def _written(self, settings: Mapping[str, str]) -> Path:
        path = self._directory / "client.properties"
        path.write_text(as_properties(settings))
        return path


@pytest.fixture
def lister(broker, tmp_path) -> Lister:
    return Lister(broker.servers("SASL_TLS"), tmp_path)


@pytest.fixture(scope="module")
def live_kafka() -> None:
    """Nothing: what is recorded is Kafka's tool, which lists the topics of Barnabas."""


def asked_of(server):
    """Return the requests that the server received."""
    return [
        (each.path, each.body.decode(), {name: each.headers[name] for name in SAID})
        for each in server.requests
    ]


@pytest.mark.parametrize(
    ("name", "settings", "options"),
    [
        ("settings", {}, {"are_in_jaas": False}),
        ("jaas", {}, {"are_in_jaas": True, "scope": "one"}),
        ("scope", {SCOPE: " read write+~ "}, {"scope": "one"}),
        ("urlencoded", {SCOPE: "read write+~", URLENCODE: "true"}, {}),
    ],
)
def test_the_same_file_asks_the_same(keys, lister, kafka, name, settings, options):
    def asked(list_topics):
        with TokenServerForTests() as server:
            given = client_credentials(server.url, **options) | settings
            exit_code, output = list_topics(trusting(keys, "SASL_SSL") | given, server.url)
            assert exit_code == 0, output
            return asked_of(server)

    by_java = kafka.observe(name, lambda _: asked(lister.by_java))
    assert plain(asked(lister.by_barnabas)) == by_java


def test_the_same_file_trusts_the_same_server(keys, lister, kafka):
    """The trust store of the brokers is for brokers."""

    def seen(list_topics, complaint):
        """Return exit codes, numbers of requests, and whether the complaint is in the output."""
        with TokenServerForTests(keys.broker) as server:
            options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": keys.trust}
            found = []
            for more in (options, {}):
                given = trusting(keys, "SASL_SSL") | client_credentials(server.url, **more)
                given["sasl.login.retry.backoff.max.ms"] = "200"
                exit_code, output = list_topics(given, server.url)
                found.append([exit_code, len(server.requests), complaint in output])
            return found

    untrusted = "the server's certificate cannot be trusted"
    assert seen(lister.by_barnabas, untrusted) == [[0, 1, False], [1, 1, True]]
    path_building = "PKIX path building failed"
    by_java = kafka.observe("trust", lambda _: seen(lister.by_java, path_building))
    assert by_java == [[0, 1, False], [1, 1, True]]


def test_a_wrong_secret_is_asked_with_once(keys, lister, kafka):
    def refused(list_topics):
        with TokenServerForTests() as server:
            given = trusting(keys, "SASL_SSL") | client_credentials(server.url)
            given["sasl.oauthbearer.client.credentials.client.secret"] = "wrong"
            exit_code, output = list_topics(given, server.url)
            words = [word in output for word in ("invalid_client", "401", "wrong")]
            return {"exit code": exit_code, "words": words, "requests": asked_of(server)}

    by_java = kafka.observe("wrong secret", lambda _: refused(lister.by_java))
    ours = plain(refused(lister.by_barnabas))
    assert ours == by_java
    assert (ours["exit code"], ours["words"]) == (1, [True, True, False])
    assert len(ours["requests"]) == 1


def test_the_settings_of_librdkafka(broker, keys, tmp_path):
    with TokenServerForTests() as server:
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": keys.trust,
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.secret": CLIENT_SECRET,
            "sasl.oauthbearer.token.endpoint.url": server.url,
            "sasl.oauthbearer.scope": "one",
            "sasl.oauthbearer.extensions": "poolA=p1,cluster=l1",
        }
        servers = broker.servers("SASL_TLS")
        producer = confluent_kafka.Producer(settings | {"bootstrap.servers": servers})
        producer.poll(0)  # A call of poll fetches the token.
        assert producer.list_topics(timeout=30).brokers
        path = tmp_path / "client.properties"
        path.write_text(as_properties(settings))
        ours = run("topics", "list", "-b", servers, "--command-config", path, cwd=tmp_path)
    assert (ours.exit_code, ours.stderr) == (0, "")
    by_librdkafka, by_us = ((each.path, each.body) for each in server.requests)
    assert by_us == by_librdkafka
    authorizations = {each.headers["Authorization"] for each in server.requests}
    assert len(authorizations) == 1
