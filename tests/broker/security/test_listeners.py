"""Logins over real sockets: successes, failures, and the permissions after them."""

import struct

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.broker.security.acls.access import Generation
from barnabas.broker.security.listeners.listeners import OPEN_LISTENER, listeners_of
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.describe_acls import DESCRIBE_ACLS, DescribeAclsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.testing import Broker
from tests.broker.security.wire import ALICE, Wire

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
SECURE = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    JAAS: f'{MODULE} required user_alice="secret" user_bob="b";',
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:alice",
    "connection.failed.authentication.delay.ms": "20",
}
ANY_ACL = DescribeAclsRequest(1, None, 1, None, None, 1, 1)


@pytest.fixture(scope="module")
def broker():
    with Broker(config=SECURE) as broker:
        yield broker


@pytest.fixture
def wire(broker):
    with Wire(broker) as wire:
        yield wire


def test_a_user_logs_in_and_is_served(wire):
    assert wire.ask(API_VERSIONS, 3, ApiVersionsRequest("test", "1")).error_code == 0
    answer = wire.log_in()
    assert (answer.error_code, answer.session_lifetime_ms) == (0, 0)
    assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id
    assert wire.ask(DESCRIBE_ACLS, 3, ANY_ACL).error_code == 0


def test_a_user_may_do_what_acls_allow_only(wire):
    assert wire.log_in(b"\0bob\0b").error_code == 0
    answer = wire.ask(DESCRIBE_ACLS, 3, ANY_ACL)
    assert answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert answer.error_message == "DESCRIBE on Cluster:kafka-cluster is denied"


@pytest.mark.parametrize("token", [b"\0alice\0wrong", b"\0nobody\0secret", b"", b"x" * 1000])
def test_a_failed_login_is_answered_and_the_connection_closed(wire, token):
    answer = wire.log_in(token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed


def test_a_mechanism_that_is_not_there_is_answered_with_those_that_are(wire):
    answer = wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
    assert answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert answer.mechanisms == ["PLAIN"]
    assert wire.is_closed


def test_after_the_login_another_is_refused_and_the_connection_stays_usable(wire):
    wire.log_in()
    answer = wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    answer = wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(ALICE))
    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id


def test_request_pipelined_after_last_token_is_served(wire):
    wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(ALICE))
    wire.send(METADATA, 12, MetadataRequest())
    assert wire.receive().error_code == 0
    assert wire.receive().cluster_id


def test_request_pipelined_after_wrong_token_is_not_served(wire):
    wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(b"\0alice\0wrong"))
    wire.send(METADATA, 12, MetadataRequest())
    assert wire.receive().error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.receive() is None


@pytest.mark.parametrize("frame", [b"", b"\0\x12", bytes(7), bytes(9)])
def test_before_the_login_a_frame_may_be_too_short_for_a_request(wire, caplog, frame):
    wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
    assert wire.is_closed
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


@pytest.mark.parametrize("size", [524_289, 2**31 - 1, -1])
def test_before_the_login_frames_are_limited(wire, size):
    wire.socket.sendall(struct.pack(">i", size))
    assert wire.is_closed


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">hhih", 18, 3, 1, -1) + b"\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 18, 3, 1, -1) + b"\0\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 18, 3, 1, -1) + b"\0\2a\2b\xff\xff\xff\xff\x0f",
        struct.pack(">hhih", 36, 2, 1, -1) + b"\0\xff\xff\xff\xff\x0f",
        struct.pack(">hhihi", 36, 0, 1, -1, 2**31 - 1),
        struct.pack(">hhihh", 17, 1, 1, -1, 2**15 - 1),
        struct.pack(">hhih", 17, 1, 1, 2**15 - 1),
    ],
)
def test_before_the_login_lengths_and_counts_are_believed_as_far_as_there_are_bytes(wire, frame):
    """CVE-2026-111108, CVE-2026-111115: numbers that would have memory taken for nothing."""
    wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
    assert wire.is_closed


def test_before_the_login_only_tokens_may_be_long(wire):
    wire.send(API_VERSIONS, 3, ApiVersionsRequest("x" * 5000, "1"))
    assert wire.is_closed


def test_a_client_that_does_not_log_in_is_closed():
    with (
        Broker(config=SECURE | {"barnabas.login.timeout.ms": "60000"}) as broker,
        Wire(broker) as logged_in,
        Wire(broker) as silent,
    ):
        logged_in.log_in()
        assert not silent.is_closed_soon
        broker.clock.advance(seconds=90)  # The check runs each quarter of that time.
        assert silent.is_closed
        assert logged_in.ask(METADATA, 12, MetadataRequest()).cluster_id


def test_a_login_ends_and_may_be_repeated_kip_368():
    with (
        Broker(config=SECURE | {"connections.max.reauth.ms": "60000"}) as broker,
        Wire(broker) as wire,
        Wire(broker) as late,
        Wire(broker) as other,
    ):
        for each in (wire, late, other):
            assert 0 < each.log_in().session_lifetime_ms <= 60_000
        # In time.
        assert wire.log_in().error_code == 0
        broker.clock.advance(seconds=61)
        # The expiry has passed, but the first request is a login.
        assert late.log_in().error_code == 0
        assert late.ask(METADATA, 12, MetadataRequest()).cluster_id
        other.send(METADATA, 12, MetadataRequest())
        assert other.is_closed


# ---------------------------------------------------------------------------- from a configuration


def listeners(**changes):
    settings = {**SECURE, **{key.replace("_", "."): value for key, value in changes.items()}}
    loaded = load_config(overrides=[f"{k}={v}" for k, v in settings.items() if v is not None])
    return listeners_of(loaded.config, None, Generation())


def test_an_open_listener_has_one_session_for_all():
    config = load_config(overrides=["listeners=PLAINTEXT://:0"]).config
    assert listeners_of(config, None, Generation()) == {"PLAINTEXT": OPEN_LISTENER}
    assert OPEN_LISTENER.new_session("a") is OPEN_LISTENER.new_session("b")


@pytest.mark.parametrize(
    ("jaas", "problem"),
    [
        (None, "so listener.name.sasl_plaintext.plain.sasl.jaas.config must name its users"),
        ("", "the class of a login module is missing"),
        (f'{MODULE} required user_a="hidden"', "';' is missing"),
        (f"{MODULE} required;", 'no user is set; write user_NAME="password"'),
        ("com.sun.JndiLoginModule required x=hidden;", f"PLAIN has the login module {MODULE}"),
    ],
)
def test_users_that_cannot_be_read_stop_the_start(jaas, problem):
    settings = {**SECURE, JAAS: jaas}
    loaded = load_config(overrides=[f"{k}={v}" for k, v in settings.items() if v is not None])
    with pytest.raises(ConfigError) as caught:
        listeners_of(loaded.config, None, Generation())
    assert problem in str(caught.value)
    assert "hidden" not in str(caught.value).replace("[hidden]", "")


def test_passwords_do_not_show_in_the_configuration():
    loaded = load_config(overrides=[f"{k}={v}" for k, v in SECURE.items()])
    assert "secret" not in repr(loaded.config)


def test_a_password_is_compared_with_that_of_its_user():
    users = PlainUsers({"user_a": "1", "user_b": "2", "username": "broker", "password": "own"})
    assert len(users) == 2
    assert users.verify("a", "1")
    assert not users.verify("a", "2")
    assert not users.verify("name", "broker")
    assert not users.verify("", "")


@pytest.mark.parametrize(
    ("listener", "mechanisms", "warned"),
    [
        ("SASL_PLAINTEXT://:0", "PLAIN", True),
        ("SASL_PLAINTEXT://10.0.0.1:0", "SCRAM-SHA-256,PLAIN", True),
        ("SASL_PLAINTEXT://10.0.0.1:0", "SCRAM-SHA-256", False),
        ("SASL_PLAINTEXT://localhost:0", "PLAIN", False),
        ("SASL_PLAINTEXT://127.0.0.2:0", "PLAIN", False),
    ],
)
def test_passwords_that_anybody_can_read_are_warned_of(caplog, listener, mechanisms, warned):
    listeners(listeners=listener, sasl_enabled_mechanisms=mechanisms)
    assert ("see the secrets of PLAIN" in caplog.text) == warned
