"""The client gets in by every protocol, and says in one line why it does not."""

from __future__ import annotations

import socket
import threading

import pytest

from barnabas.broker.cli.retries import may_pass
from barnabas.broker.client.brokers import Brokers
from barnabas.broker.client.errors import NotLetIn, Unreachable
from barnabas.broker.client.security import security_of
from barnabas.protocol.messages.list_transactions import LIST_TRANSACTIONS, ListTransactionsRequest
from barnabas.testing import Broker
from tests.certificates import Authority
from tests.secured import (
    LISTENERS,
    MECHANISMS,
    broker_settings,
    login,
    token_login,
    trusting,
)
from tests.token_server import CLIENT_ID, TokenServerForTests, client_credentials

TIMEOUT_SECONDS = 20


@pytest.fixture(scope="module")
def broker(keys):
    with Broker(config=broker_settings(keys)) as broker:
        yield broker


def address(broker, name, host="127.0.0.1"):
    (bound,) = (each.bound for each in broker.server.listeners if each.name == name)
    return host, bound[1]


def asked(broker, listener, settings, host="127.0.0.1"):
    """Request metadata and a list of transactions with the settings of a client."""
    security = security_of(settings, {})
    servers = [address(broker, listener, host)]
    with Brokers(servers, "test", TIMEOUT_SECONDS, security=security) as brokers:
        assert brokers.metadata([]).cluster_id
        brokers.ask(LIST_TRANSACTIONS, ListTransactionsRequest([], []))


def problem(broker, listener, settings, host="127.0.0.1", kind=NotLetIn):
    with pytest.raises(Unreachable) as raised:
        asked(broker, listener, settings, host)
    assert type(raised.value) is kind
    assert may_pass(raised.value) is (kind is Unreachable)
    said = str(raised.value)
    assert "secret" not in said
    assert "\n" not in said
    start = f"{host}:{address(broker, listener)[1]}: "
    assert said.startswith(start)
    return said.removeprefix(start)


def logins(keys):
    return {
        mechanism: token_login(keys.token) if mechanism == "OAUTHBEARER" else login(mechanism)
        for mechanism in MECHANISMS
    }


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("listener", ["SASL", "SASL_TLS"])
def test_logins(broker, keys, listener, mechanism):
    asked(broker, listener, trusting(keys, LISTENERS[listener]) | logins(keys)[mechanism])


def over_tls(keys, server):
    """Return the settings of a client that gets its tokens there."""
    options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": keys.trust}
    settings = client_credentials(server.url, **options, extension_pool="one")
    return trusting(keys, "SASL_SSL") | settings


def test_tokens_of_a_server(broker, keys):
    with TokenServerForTests(keys.broker) as server:
        settings = over_tls(keys, server)
        asked(broker, "SASL_TLS", settings)
        asked(broker, "SASL_TLS", settings)
        assert len(server.requests) == 1


def test_tokens_that_do_not_come(broker, keys):
    """An unavailable token server may return; its rejections are final."""
    with TokenServerForTests() as server:
        settings = {"security.protocol": "SASL_PLAINTEXT"} | client_credentials(server.url)
        settings["sasl.login.retry.backoff.max.ms"] = "200"
        start = f"sasl.oauthbearer.token.endpoint.url: {server.url}: "
        server.status = 503
        said = problem(broker, "SASL", settings, kind=Unreachable)
        assert said == f"{start}the server answers 503"
        assert len(server.requests) > 1
        server.status, server.body = 200, b"{}"
        assert problem(broker, "SASL", settings) == f"{start}the response has no access_token"
        server.body = None
        wrong = settings | {"sasl.oauthbearer.client.credentials.client.secret": "wrong-secret"}
        said = problem(broker, "SASL", wrong)
        assert said == f"{start}the server answers 401: invalid_client - Who are you?"
    said = problem(broker, "SASL", settings, kind=Unreachable)
    assert said == f"{start}Connection refused"


def test_a_token_of_a_server_that_brokers_refuse_is_not_used_again(broker):
    with TokenServerForTests() as server:
        settings = {"security.protocol": "SASL_PLAINTEXT"} | client_credentials(server.url)
        server.body = b'{"access_token": "aaa.bbb.ccc", "expires_in": 3600}'
        start = f"login by OAUTHBEARER as {CLIENT_ID}: "
        assert problem(broker, "SASL", settings).startswith(start)
        server.body = None
        asked(broker, "SASL", settings)
        assert len(server.requests) == 2


def test_certificates(broker, keys):
    trust = trusting(keys, "SSL")
    inline = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": keys.client.key_pem().replace("\n", "\\n"),
        "ssl.keystore.certificate.chain": keys.client.chain_pem,
    }
    asked(broker, "TLS", trust)
    asked(broker, "TLS", trust, host="localhost")
    for own in (
        inline,
        {"ssl.keystore.location": keys.certificate, "ssl.keystore.type": "PEM"},
        {"ssl.keystore.location": keys.store, "ssl.keystore.password": "store-secret"},
    ):
        asked(broker, "MTLS", trust | own)


NO_TLS = "connection closed during the TLS handshake; is TLS spoken here (security.protocol)?"
NOT_LOGGED_IN = "connection closed during Metadata; does this listener want a login (security.pro"


def test_the_other_protocol(broker, keys):
    plain, tls = {}, trusting(keys, "SSL")
    sasl = {"security.protocol": "SASL_PLAINTEXT"} | login("PLAIN")
    wants = "the listener expects TLS: set security.protocol="
    assert problem(broker, "TLS", plain) == f"{wants}SSL, or SASL_SSL with a login"
    assert problem(broker, "SASL_TLS", sasl) == f"{wants}SASL_SSL"
    assert problem(broker, "PLAIN", tls, kind=Unreachable) == NO_TLS
    assert problem(broker, "SASL", tls, kind=Unreachable) == NO_TLS
    assert problem(broker, "SASL", plain, kind=Unreachable).startswith(NOT_LOGGED_IN)
    assert problem(broker, "SASL_TLS", tls, kind=Unreachable).startswith(NOT_LOGGED_IN)
    assert problem(broker, "PLAIN", sasl) == (
        "login by PLAIN as alice: the broker asks for no login here; is security.protocol right?"
    )


@pytest.mark.parametrize(
    ("mechanism", "said"),
    [
        ("PLAIN", "Authentication failed: Invalid username or password"),
        ("SCRAM-SHA-256", "Authentication failed during authentication due to invalid credentials"),
        ("SCRAM-SHA-512", "Authentication failed during authentication due to invalid credentials"),
    ],
)
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_a_login_that_is_refused(broker, keys, mechanism, said, user):
    settings = trusting(keys, "SASL_SSL") | login(mechanism, user, "another-secret")
    start = f"login by {mechanism} as {user}: {said}"
    assert problem(broker, "SASL_TLS", settings).startswith(start)


def test_a_token_that_is_refused(broker, keys):
    path = keys.write("bad-token", "aaa.bbb.ccc")
    settings = {"security.protocol": "SASL_PLAINTEXT"} | token_login(path)
    assert problem(broker, "SASL", settings).startswith("login by OAUTHBEARER: ")
    settings |= {"sasl.oauthbearer.token.endpoint.url": "file:/nowhere"}
    assert problem(broker, "SASL", settings) == (
        "sasl.oauthbearer.token.endpoint.url: /nowhere: No such file or directory"
    )


def test_a_broker_that_is_not_trusted(broker, keys):
    other = trusting(keys, "SSL") | {"ssl.truststore.location": keys.other_trust}
    nobody = "the broker's certificate is not signed by a trusted authority: ssl.truststore.loca"
    assert problem(broker, "TLS", other).startswith(nobody)
    assert problem(broker, "TLS", {"security.protocol": "SSL"}).startswith(nobody)


def test_a_name_that_is_not_in_the_certificate(keys):
    elsewhere = keys.authority.issue("CN=broker", hosts=("broker.example",))
    settings = broker_settings(keys, {"TLS": 0}) | {
        "ssl.keystore.key": elsewhere.key_pem(),
        "ssl.keystore.certificate.chain": elsewhere.chain_pem,
    }
    with Broker(config=settings) as broker:
        client = trusting(keys, "SSL")
        said = problem(broker, "TLS", client)
        assert said.startswith("the broker's certificate is not for 127.0.0.1: connect to a name")
        asked(broker, "TLS", client | {"ssl.endpoint.identification.algorithm": ""})


def test_a_certificate_that_has_expired(keys):
    expired = keys.expired()
    settings = broker_settings(keys, {"TLS": 0}) | {
        "ssl.keystore.key": expired.key_pem(),
        "ssl.keystore.certificate.chain": expired.chain_pem,
    }
    with Broker(config=settings) as broker:
        said = problem(broker, "TLS", trusting(keys, "SSL"))
    assert said == "the broker's certificate has expired"


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
@pytest.mark.parametrize("own", ["none", "unknown", "expired"])
def test_a_client_certificate_that_is_refused(broker, keys, version, own):
    settings = trusting(keys, "SSL") | {"ssl.enabled.protocols": version}
    credential = {
        "none": None,
        "unknown": Authority("CN=Other").issue("CN=mallory"),
        "expired": keys.expired(),
    }[own]
    if credential is not None:
        settings["ssl.keystore.location"] = keys.pem_of(own, credential)
    said = problem(broker, "MTLS", settings)
    expected = {
        "none": "a client certificate (ssl.keystore.*)",
        "unknown": "the broker does not know who has signed this client's certificate",
        "expired": "this client's certificate has expired",
    }[own]
    assert expected in said


def test_versions_of_tls_that_only_one_side_has(keys):
    settings = broker_settings(keys, {"TLS": 0}) | {"ssl.enabled.protocols": "TLSv1.3"}
    with Broker(config=settings) as broker:
        said = problem(broker, "TLS", trusting(keys, "SSL") | {"ssl.enabled.protocols": "TLSv1.2"})
    assert said == "there is no version of TLS that both have (ssl.enabled.protocols)"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "the listener does not use TLS: check security.protocol",
        ),
        (b"\x15\x03\x03\x00\x02\x02\x50", "the TLS handshake failed: tlsv1 alert internal error"),
    ],
)
def test_server_without_kafka_protocol_is_reported(keys, answer, said):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        security = security_of(trusting(keys, "SSL"), {})
        with (
            Brokers([server.getsockname()], "test", 10, security=security) as brokers,
            pytest.raises(NotLetIn) as raised,
        ):
            brokers.any()
        thread.join()
    assert str(raised.value).endswith(f": {said}")


def test_no_other_broker_is_asked_after_a_refusal(broker, keys):
    """Each of them would count the same failure."""
    security = security_of(trusting(keys, "SASL_SSL") | login("PLAIN", password="x"), {})
    servers = [address(broker, "SASL_TLS"), ("127.0.0.1", 1)]
    with (
        Brokers(servers, "test", 10, security=security) as brokers,
        pytest.raises(NotLetIn, match="Invalid username") as raised,
    ):
        brokers.any()
    assert "127.0.0.1:1:" not in str(raised.value)
