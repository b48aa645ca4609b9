"""Apache Kafka's own client, librdkafka and our command line get tokens of the same server.

With the same settings they ask it the same, in the same words, and log in with what they get.
"""

from __future__ import annotations

import confluent_kafka
import pytest

from tests.counterparts.kafka_tools import TOPICS, run_tool
from tests.counterparts.protected import ProtectedBarnabas
from tests.interop.command_line import run
from tests.secured import Keys, as_properties, trusting
from tests.token_server import (
    CLIENT_ID,
    CLIENT_SECRET,
    TokenServerForTests,
    client_credentials,
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]

SAID = ("Accept", "Authorization", "Cache-Control", "Content-Type")
"""Headers that are about what is asked for; the others are about HTTP."""
URLENCODE = "sasl.oauthbearer.header.urlencode"
SCOPE = "sasl.oauthbearer.scope"


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def broker(keys, tmp_path_factory):
    with ProtectedBarnabas(keys, tmp_path_factory.mktemp("barnabas")) as running:
        yield running


@pytest.fixture
def listed(broker, tmp_path):
    """List topics with a file of settings, by Kafka's tool and by ours; return both results."""

    def ask(settings, url):
        path = tmp_path / "client.properties"
        path.write_text(as_properties(settings))
        servers = broker.servers("SASL_TLS")
        java = run_tool(
            TOPICS,
            *("--bootstrap-server", servers, "--command-config", str(path), "--list"),
            properties={"org.apache.kafka.sasl.oauthbearer.allowed.urls": url},
        )
        ours = run("topics", "list", "-b", servers, "--command-config", path, cwd=tmp_path)
        return java, ours

    return ask


def asked_of(server):
    """Return what the server was asked, by each client."""
    return [
        (each.path, each.body, {name: each.headers[name] for name in SAID})
        for each in server.requests
    ]


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        pytest.param({}, {"are_in_jaas": False}, id="settings"),
        pytest.param({}, {"are_in_jaas": True, "scope": "one"}, id="jaas"),
        pytest.param({SCOPE: " read write+~ "}, {"scope": "one"}, id="scope"),
        pytest.param({SCOPE: "read write+~", URLENCODE: "true"}, {}, id="urlencoded"),
    ],
)
def test_the_same_file_asks_the_same(keys, listed, settings, options):
    with TokenServerForTests() as server:
        given = client_credentials(server.url, **options) | settings
        java, ours = listed(trusting(keys, "SASL_SSL") | given, server.url)
    assert java.exit_code == 0, java.output
    assert (ours.exit_code, ours.stderr) == (0, "")
    by_java, by_us = asked_of(server)
    assert by_us == by_java


def test_the_same_file_trusts_the_same_server(keys, listed):
    """The trust store of the brokers is for brokers."""
    with TokenServerForTests(keys.broker) as server:
        options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": keys.trust}
        given = trusting(keys, "SASL_SSL") | client_credentials(server.url, **options)
        java, ours = listed(given, server.url)
        assert java.exit_code == 0, java.output
        assert (ours.exit_code, ours.stderr) == (0, "")
        assert len(server.requests) == 2
        given = trusting(keys, "SASL_SSL") | client_credentials(server.url)
        given["sasl.login.retry.backoff.max.ms"] = "200"
        java, ours = listed(given, server.url)
        assert len(server.requests) == 2
    assert java.exit_code != 0
    assert "PKIX path building failed" in java.output
    assert ours.exit_code == 1
    assert "the server's certificate cannot be trusted" in ours.stderr


def test_a_wrong_secret_is_asked_with_once(keys, listed):
    with TokenServerForTests() as server:
        given = trusting(keys, "SASL_SSL") | client_credentials(server.url)
        given["sasl.oauthbearer.client.credentials.client.secret"] = "wrong"
        java, ours = listed(given, server.url)
    by_java, by_us = asked_of(server)
    assert by_us == by_java
    for exit_code, said in ((java.exit_code, java.output), (ours.exit_code, ours.stderr)):
        assert exit_code == 1
        assert "invalid_client" in said
        assert "401" in said
        assert "wrong" not in said


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
        producer.poll(0)  # It is fetched by whoever polls.
        assert producer.list_topics(timeout=30).brokers
        path = tmp_path / "client.properties"
        path.write_text(as_properties(settings))
        ours = run("topics", "list", "-b", servers, "--command-config", path, cwd=tmp_path)
    assert (ours.exit_code, ours.stderr) == (0, "")
    by_librdkafka, by_us = ((each.path, each.body) for each in server.requests)
    assert by_us == by_librdkafka
    authorizations = {each.headers["Authorization"] for each in server.requests}
    assert len(authorizations) == 1
