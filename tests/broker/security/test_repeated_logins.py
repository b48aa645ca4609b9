"""Logins that end and are repeated (KIP-368): when, by whom, and what leaves before and behind."""

import struct

import pytest

from barnabas.broker.network import connection
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.records import Record, encode_batch
from barnabas.testing import Broker
from tests.broker.security.wire import ALICE, Wire
from tests.requests import produce_request

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    JAAS: f'{MODULE} required user_alice="secret" user_bob="b";',
    "barnabas.scram.credentials": (
        "SCRAM-SHA-256=[name=alice,password=secret],SCRAM-SHA-256=[name=carol,password=c]"
    ),
    "connection.failed.authentication.delay.ms": "20",
    "connections.max.reauth.ms": "60000",
    "barnabas.login.timeout.ms": "600000",
}


@pytest.fixture
def broker():
    with Broker(config=SETTINGS) as broker:
        yield broker


@pytest.fixture
def wire(broker):
    with Wire(broker) as wire:
        yield wire


def is_served(wire):
    return bool(wire.ask(METADATA, 12, MetadataRequest()).cluster_id)


def handshake(wire):
    return wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")).error_code


def test_each_mechanism_may_have_a_lifetime_of_its_own():
    own = "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms"
    with Broker(config=SETTINGS | {own: "1000"}) as broker:
        with Wire(broker) as wire:
            assert 1000 < wire.log_in().session_lifetime_ms <= 60_000
        with Wire(broker) as wire:
            _, last = wire.log_in_with_scram()
            assert 0 < last.session_lifetime_ms <= 1000


def test_not_more_than_once_a_second(broker, wire, monkeypatch):
    assert connection.LOGIN_REPEATED_EVERY_S == 1
    monkeypatch.setattr(connection, "LOGIN_REPEATED_EVERY_S", 50)  # However slow the machine is.
    wire.log_in()
    wire.log_in()
    assert handshake(wire) == ErrorCode.ILLEGAL_SASL_STATE
    assert is_served(wire)
    broker.clock.advance(seconds=50)
    wire.log_in()
    assert is_served(wire)


def test_a_login_with_bare_tokens_ends_as_well_kafka_9241(broker, wire):
    wire.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
    assert wire.bare(ALICE) == b""
    assert is_served(wire)
    broker.clock.advance(seconds=61)
    wire.send(METADATA, 12, MetadataRequest())
    assert wire.is_closed


def test_bare_tokens_repeat_a_login_too(broker, wire):
    wire.log_in()
    broker.clock.advance(seconds=30)
    wire.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("PLAIN"))
    assert wire.bare(ALICE) == b""
    broker.clock.advance(seconds=40)
    assert is_served(wire)


def test_a_repetition_under_way_may_come_to_its_end(broker, wire):
    wire.log_in()
    assert handshake(wire) == 0
    broker.clock.advance(seconds=61)
    answer = wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(ALICE))
    assert (answer.error_code, answer.session_lifetime_ms > 0) == (0, True)
    assert is_served(wire)
    broker.clock.advance(seconds=61)
    wire.send(METADATA, 12, MetadataRequest())
    assert wire.is_closed


def test_a_repetition_has_a_time_limit():
    settings = SETTINGS | {"barnabas.login.timeout.ms": "60000"}
    with Broker(config=settings) as broker, Wire(broker) as wire:
        wire.log_in()
        assert handshake(wire) == 0
        broker.clock.advance(seconds=90)  # The check runs each quarter of that time.
        assert wire.is_closed


def test_request_during_reauthentication_gets_error_of_its_api(wire):
    wire.log_in()
    assert handshake(wire) == 0
    request = MetadataRequest([MetadataRequestTopic(name="t")])
    (topic,) = wire.ask(METADATA, 12, request).topics
    assert (topic.name, topic.error_code) == ("t", ErrorCode.ILLEGAL_SASL_STATE)
    assert wire.is_closed


def test_a_malformed_request_in_the_middle_closes(wire):
    wire.log_in()
    assert handshake(wire) == 0
    frame = struct.pack(">hhih", METADATA.key, 12, 7, -1) + b"\0\xff\xff\xff\xff\x7f"
    wire.socket.sendall(struct.pack(">i", len(frame)) + frame)
    assert wire.is_closed


def test_answers_of_older_requests_leave_first(broker, wire):
    broker.create_topic("t")
    wire.log_in()
    batch = encode_batch([Record(0, 1_700_000_000_000, b"k", b"v")])
    wire.send(PRODUCE, 9, produce_request({("t", 0): batch}))
    partition = FetchPartition(partition=0, fetch_offset=1, partition_max_bytes=1000)
    topics = [FetchTopic("t", partitions=[partition])]
    wire.send(FETCH, 11, FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics))
    wire.send(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(ALICE))
    wire.send(METADATA, 12, MetadataRequest())
    (produced,) = wire.receive().responses[0].partition_responses
    assert (produced.error_code, produced.base_offset) == (0, 0)
    assert wire.receive().responses[0].partitions[0].error_code == 0
    assert wire.receive().error_code == 0
    assert wire.receive().session_lifetime_ms > 0
    assert wire.receive().cluster_id


def test_answers_of_older_requests_leave_before_a_failure_too(broker, wire):
    broker.create_topic("t")
    wire.log_in()
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic("t", partitions=[partition])]
    wire.send(FETCH, 11, FetchRequest(max_wait_ms=60_000, min_bytes=1, topics=topics))
    wire.send(SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN"))
    wire.send(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(b"\0bob\0b"))
    assert wire.receive().responses[0].partitions[0].error_code == 0
    assert wire.receive().error_code == 0
    assert wire.receive().error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert wire.is_closed


OTHER_USER = "Cannot change principals during re-authentication from User.alice: User."


@pytest.mark.parametrize("token", [b"\0bob\0b", b"\0bob\0wrong", b"bob\0bob\0x", b"x\0bob\0b"])
def test_reauthentication_does_not_reveal_passwords_of_others(wire, token):
    wire.log_in()
    answer = wire.log_in(token)
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == OTHER_USER + "bob"
    assert wire.is_closed


def test_reauthentication_verifies_no_password_of_other_user(wire, monkeypatch):
    wire.log_in()
    asked = []
    monkeypatch.setattr(PlainUsers, "verify", lambda _self, *pair: asked.append(pair))
    assert wire.log_in(b"\0nobody\0guess").error_message == OTHER_USER + "nobody"
    assert asked == []


@pytest.mark.parametrize("user", ["carol", "nobody"])
def test_nor_does_one_with_scram(wire, user):
    wire.log_in_with_scram()
    first, second = wire.log_in_with_scram(user)
    assert (first.error_message, second) == (OTHER_USER + user, None)
    assert wire.is_closed


def test_failed_repetitions_count_for_their_address():
    limit = "barnabas.login.failures.per.address.max"
    with Broker(config=SETTINGS | {limit: "1"}) as broker:
        with Wire(broker) as wire:
            wire.log_in()
            wire.log_in(b"\0bob\0b")
        with Wire(broker) as wire:
            assert wire.is_closed


def test_a_fetch_that_waits_when_the_login_ends_is_answered(broker, wire):
    broker.create_topic("t")
    wire.log_in()
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic("t", partitions=[partition])]
    wire.send(FETCH, 11, FetchRequest(max_wait_ms=90_000, min_bytes=1, topics=topics))
    is_served_beside(broker)  # The fetch is parked by now.
    broker.clock.advance(seconds=61)
    broker.clock.advance(seconds=30)
    assert wire.receive().responses[0].partitions[0].error_code == 0
    assert wire.log_in().error_code == 0
    assert is_served(wire)


def is_served_beside(broker):
    with Wire(broker) as wire:
        wire.log_in()
        assert is_served(wire)
