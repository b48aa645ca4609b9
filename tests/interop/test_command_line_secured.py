"""The command line over TLS and with logins, against Barnabas and, by night, Apache Kafka 4.3.0.

What keeps it out is one line, the same for both where they say the same.
"""

from __future__ import annotations

import pytest

from tests.counterparts.kafka_tools import TOPICS, run_tool
from tests.counterparts.protected import ProtectedBarnabas, ProtectedKafka
from tests.interop.command_line import run
from tests.products import BARNABAS_AND_KAFKA
from tests.secured import LISTENERS, Keys, as_properties, login, trusting

pytestmark = [pytest.mark.timeout(600), pytest.mark.filterwarnings("ignore")]
FAILED = "Authentication failed during authentication"
BY_SCRAM = "due to invalid credentials with SASL mechanism SCRAM-SHA-512"
DISTRUSTED = "the broker's certificate is not signed by a trusted authority"
BROKERS = {"barnabas": ProtectedBarnabas, "kafka": ProtectedKafka}


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module", params=BARNABAS_AND_KAFKA)
def broker(request, keys, tmp_path_factory):
    with BROKERS[request.param](keys, tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture
def asked(broker, tmp_path):
    """Run a command at a listener with these client settings."""

    def ask(listener, settings, *words, stdin=b""):
        path = tmp_path / "client.properties"
        path.write_text(as_properties(settings))
        where = ("-b", broker.servers(listener), "--command-config", path)
        return run(*words, *where, stdin=stdin, cwd=tmp_path)

    return ask


def pem_certificate(keys):
    return {"ssl.keystore.location": keys.certificate, "ssl.keystore.type": "PEM"}


def pkcs12_certificate(keys):
    return {
        "ssl.keystore.location": keys.store,
        "ssl.keystore.password": "store-secret",
        "ssl.keystore.type": "PKCS12",
    }


def inline_certificate(keys):
    return {
        "ssl.keystore.key": keys.client.key_pem(),
        "ssl.keystore.certificate.chain": keys.client.chain_pem,
        "ssl.keystore.type": "PEM",
    }


WAYS = {
    "sasl-ssl-scram-256": ("SASL_TLS", lambda _keys: login("SCRAM-SHA-256")),
    "sasl-ssl-scram-512": ("SASL_TLS", lambda _keys: login("SCRAM-SHA-512")),
    "sasl-ssl-plain": ("SASL_TLS", lambda _keys: login("PLAIN")),
    "sasl-plaintext-plain": ("SASL", lambda _keys: login("PLAIN")),
    "ssl": ("TLS", lambda _keys: {}),
    "ssl-pem": ("MTLS", pem_certificate),
    "ssl-pkcs12": ("MTLS", pkcs12_certificate),
    "ssl-inline": ("MTLS", inline_certificate),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_way_in(broker, keys, asked, way, tmp_path):
    """The same file of settings is what Kafka's own tool is given."""
    listener, own = WAYS[way]
    settings = trusting(keys, LISTENERS[listener]) | own(keys)
    topic = f"by-{way}"
    assert asked(listener, settings, "topics", "create", topic).exit_code == 0
    assert asked(listener, settings, "produce", topic, stdin=b"one\ntwo\n").exit_code == 0
    consume = ("consume", topic, "-g", way, "-o", "beginning", "-e")
    assert asked(listener, settings, *consume).lines == ["one", "two"]
    assert asked(listener, settings, "groups", "describe", way).exit_code == 0
    config = ("--command-config", str(tmp_path / "client.properties"))
    tool = run_tool(TOPICS, "--bootstrap-server", broker.servers(listener), *config, "--list")
    assert topic in tool.output.split()


REFUSED = {
    "a wrong password": (
        "SASL_TLS",
        lambda keys: trusting(keys, "SASL_SSL") | login("PLAIN", password="no"),
        "login by PLAIN as alice: Authentication failed: Invalid username or password",
    ),
    "a wrong SCRAM password": (
        "SASL_TLS",
        lambda keys: trusting(keys, "SASL_SSL") | login("SCRAM-SHA-512", password="no"),
        f"login by SCRAM-SHA-512 as alice: {FAILED} {BY_SCRAM}",
    ),
    "a wrong authority": (
        "TLS",
        lambda keys: trusting(keys, "SSL") | {"ssl.truststore.location": keys.other_trust},
        f"{DISTRUSTED}: ssl.truststore.location names the trusted ones",
    ),
    "no login": (
        "SASL",
        lambda _keys: {"security.protocol": "PLAINTEXT"},
        "connection closed during Metadata; does this listener want a login (security.protocol)?",
    ),
    "no certificate": (
        "MTLS",
        lambda keys: trusting(keys, "SSL"),
        {
            "barnabas": "the broker wants a client certificate (ssl.keystore.*)",
            "kafka": "the broker wants another client certificate, or a client certificate"
            " (ssl.keystore.*) at all",
        },
    ),
    "TLS where there is none": (
        "PLAIN",
        lambda keys: trusting(keys, "SSL"),
        "connection closed during the TLS handshake; is TLS spoken here (security.protocol)?",
    ),
    "no TLS where there is": (
        "TLS",
        lambda _keys: {"security.protocol": "PLAINTEXT"},
        "the listener expects TLS: set security.protocol=SSL, or SASL_SSL with a login",
    ),
    "a login where none is asked for": (
        "PLAIN",
        lambda _keys: {"security.protocol": "SASL_PLAINTEXT"} | login("PLAIN"),
        "login by PLAIN as alice: the broker asks for no login here; is security.protocol right?",
    ),
}


@pytest.mark.parametrize("reason", REFUSED)
def test_refused_connection_is_one_line(broker, keys, asked, reason):
    listener, settings, said = REFUSED[reason]
    ended = asked(listener, settings(keys), "topics", "list")
    if isinstance(said, dict):  # They end the handshake with different alerts.
        said = said["kafka" if isinstance(broker, ProtectedKafka) else "barnabas"]
    assert ended.exit_code == 1
    assert ended.stderr == f"barnabas: {broker.servers(listener)}: {said}\n"
