"""Our own blocking client logs in, by every mechanism, and hears why it is not let in."""

import pytest

from barnabas.broker.client.wire_client import WireClient
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.sasl.login_client import LoginClient, LoginRefused
from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient
from barnabas.protocol.sasl.plain import PlainClient
from barnabas.protocol.sasl.scram import MECHANISMS, ScramClient
from barnabas.testing import Broker
from tests.issuer import AUDIENCE, ISSUER, standard_set, token, unsigned

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys.json"
    keys.write_bytes(standard_set())
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULE} required user_a=secret;",
        "barnabas.scram.credentials": ",".join(
            f"{each}=[name=a,password=secret]" for each in MECHANISMS
        ),
        "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
        "sasl.oauthbearer.expected.issuer": ISSUER,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "connection.failed.authentication.delay.ms": "5",
        "connections.max.reauth.ms": "60000",
    }
    with Broker(config=settings) as broker:
        yield broker


def exchange(mechanism, *, right):
    password = "secret" if right else "wrong"
    if mechanism == "PLAIN":
        return PlainClient("a", password)
    if mechanism == "OAUTHBEARER":
        return OAuthBearerClient(token("a") if right else unsigned("a"))
    return ScramClient(MECHANISMS[mechanism], "a", password, "nonce")


ALL = ("PLAIN", *MECHANISMS, "OAUTHBEARER")


@pytest.mark.parametrize("mechanism", ALL)
def test_a_client_logs_in_and_again(broker, mechanism):
    with WireClient(broker.address) as client:
        lifetime_ms = client.log_in(LoginClient(mechanism, exchange(mechanism, right=True)))
        assert 0 < lifetime_ms <= 60_000
        assert client.ask(METADATA, MetadataRequest(), 12).cluster_id
        again = LoginClient(mechanism, exchange(mechanism, right=True), versions=client.versions)
        assert 0 < client.log_in(again) <= 60_000
        assert client.ask(METADATA, MetadataRequest(), client.version_of(METADATA)).cluster_id


@pytest.mark.parametrize("mechanism", ALL)
def test_a_client_that_is_not_let_in(broker, mechanism):
    words = {
        "PLAIN": "Authentication failed: Invalid username or password",
        "OAUTHBEARER": '{"status":"invalid_token"}',
    }
    with WireClient(broker.address) as client, pytest.raises(LoginRefused) as caught:
        client.log_in(LoginClient(mechanism, exchange(mechanism, right=False)))
    expected = words.get(mechanism, f"invalid credentials with SASL mechanism {mechanism}")
    assert expected in str(caught.value)


def test_mechanisms_that_are_not_offered_are_named(broker):
    with WireClient(broker.address) as client, pytest.raises(LoginRefused) as caught:
        client.log_in(LoginClient("GSSAPI", PlainClient("a", "b")))
    assert str(caught.value) == (
        "the broker does not offer GSSAPI; it offers OAUTHBEARER, PLAIN, SCRAM-SHA-256, "
        "SCRAM-SHA-512"
    )


def test_a_listener_that_asks_for_no_login(broker):
    address = broker.server.listeners[1].bound
    with WireClient(address) as client, pytest.raises(LoginRefused, match="asks for no login here"):
        client.log_in(LoginClient("PLAIN", PlainClient("a", "b")))
