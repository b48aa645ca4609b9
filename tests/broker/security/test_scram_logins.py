"""Logins by SCRAM over real sockets: users of the first start, changed and deleted while connected,
and unknown users.
"""

import pytest

from barnabas.broker.config.loading.loader import load_config
from barnabas.broker.config.types import ConfigError
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.messages.fetch import FETCH, FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SASL_AUTHENTICATE, SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SASL_HANDSHAKE, SaslHandshakeRequest
from barnabas.protocol.sasl.scram import SCRAM_SHA_256, ScramClient, salted_password
from barnabas.testing import Broker
from tests.broker.security.wire import Wire

SCRAM = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "barnabas.scram.credentials": "SCRAM-SHA-256=[name=alice,password=secret],"
    "SCRAM-SHA-256=[name=bob,password=b],SCRAM-SHA-512=[name=bob,password=b]",
    "connection.failed.authentication.delay.ms": "20",
}


@pytest.fixture
def broker():
    with Broker(config=SCRAM) as broker:
        yield broker


def connected(broker, user="alice", password="secret", mechanism="SCRAM-SHA-256"):
    wire = Wire(broker)
    _, second = wire.log_in_with_scram(user, password, mechanism)
    assert second.error_code == 0
    return wire


def set_password(wire, user, password, iterations=4096):
    salted = salted_password(SCRAM_SHA_256, password, b"salt", iterations)
    upsertion = ScramCredentialUpsertion(user, 1, iterations, b"salt", salted)
    request = AlterUserScramCredentialsRequest([], [upsertion])
    (result,) = wire.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
    return result.error_code


def delete(wire, user, mechanism=1):
    request = AlterUserScramCredentialsRequest([ScramCredentialDeletion(user, mechanism)], [])
    (result,) = wire.ask(ALTER_USER_SCRAM_CREDENTIALS, 0, request).results
    return result.error_code


def test_users_of_the_first_start_log_in(broker):
    for user, password, mechanism in (
        ("alice", "secret", "SCRAM-SHA-256"),
        ("bob", "b", "SCRAM-SHA-256"),
        ("bob", "b", "SCRAM-SHA-512"),
    ):
        with connected(broker, user, password, mechanism) as wire:
            assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        ("alice", "wrong", "SCRAM-SHA-256"),
        ("alice", "secret", "SCRAM-SHA-512"),
        ("nobody", "secret", "SCRAM-SHA-256"),
    ],
)
def test_scram_failures_have_same_step_and_message(broker, user, password, mechanism):
    with Wire(broker) as wire:
        first, second = wire.log_in_with_scram(user, password, mechanism)
        assert first.error_code == 0
        assert second.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert second.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            f"mechanism {mechanism}"
        )
        assert wire.is_closed


def first_answer(broker, user):
    with Wire(broker) as wire:
        wire.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
        token = f"n,,n={user},r=nonce".encode()
        answer = wire.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(token))
        _, salt, iterations = bytes(answer.auth_bytes).split(b",")
        return salt, iterations


def test_salt_of_unknown_user_survives_restart(broker):
    known, nobody = first_answer(broker, "alice"), first_answer(broker, "nobody")
    assert known[1] == nobody[1] == b"i=4096"
    assert known != nobody
    broker.restart()
    assert (first_answer(broker, "alice"), first_answer(broker, "nobody")) == (known, nobody)


def test_tokens_may_be_bare(broker):
    with Wire(broker) as wire:
        client = ScramClient(SCRAM_SHA_256, "alice", "secret", "nonce")
        assert wire.ask(SASL_HANDSHAKE, 0, SaslHandshakeRequest("SCRAM-SHA-256")).error_code == 0
        client.step(wire.bare(client.step(wire.bare(client.first()))))
        assert wire.ask(METADATA, 12, MetadataRequest()).cluster_id


# ------------------------------------------------------------------------------------- changes


def test_users_that_are_added_can_log_in_at_once_and_after_a_restart(broker):
    with connected(broker) as wire:
        assert set_password(wire, "carol", "c", 8192) == 0
        connected(broker, "carol", "c").socket.close()
    broker.restart()
    with connected(broker, "carol", "c") as wire:
        request = DescribeUserScramCredentialsRequest(None)
        described = wire.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, 0, request).results
        assert {
            each.user: [(info.mechanism, info.iterations) for info in each.credential_infos]
            for each in described
        } == {"alice": [(1, 4096)], "bob": [(1, 4096), (2, 4096)], "carol": [(1, 8192)]}


def test_changed_password_survives_restart_with_old_config(broker):
    with connected(broker) as wire:
        assert set_password(wire, "alice", "new") == 0
    broker.restart()
    connected(broker, "alice", "new").socket.close()


@pytest.mark.parametrize("change", [delete, lambda wire, user: set_password(wire, user, "new")])
def test_a_changed_credential_ends_the_sessions_that_it_began(broker, change):
    broker.create_topic("t")
    with (
        connected(broker) as admin,
        connected(broker, "bob", "b") as other,
        connected(broker, "bob", "b", "SCRAM-SHA-512") as by_another,
        connected(broker, "bob", "b") as parked,
        Wire(broker) as half_way,
    ):
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
        request = FetchRequest(
            max_wait_ms=60_000, min_bytes=1, topics=[FetchTopic("t", partitions=[partition])]
        )
        parked.send(FETCH, 11, request)
        client = ScramClient(SCRAM_SHA_256, "bob", "b", "nonce")
        half_way.ask(SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
        first = half_way.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(client.first()))
        assert change(admin, "bob") == 0
        assert other.is_closed
        assert parked.is_closed
        final = client.step(bytes(first.auth_bytes))
        last = half_way.ask(SASL_AUTHENTICATE, 1, SaslAuthenticateRequest(final))
        assert last.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert by_another.ask(METADATA, 12, MetadataRequest()).cluster_id
        assert admin.ask(METADATA, 12, MetadataRequest()).cluster_id


def test_a_member_of_a_group_that_waits_for_the_others_is_cut_off_too():
    waiting = {"group.initial.rebalance.delay.ms": "600000"}
    with (
        Broker(config=SCRAM | waiting) as broker,
        connected(broker) as admin,
        connected(broker, "bob", "b") as member,
    ):
        while member.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest("g")).error_code:
            pass
        protocols = [JoinGroupRequestProtocol("range", b"")]
        request = JoinGroupRequest("g", 10_000, 600_000, "", None, "consumer", protocols)
        assigned = member.ask(JOIN_GROUP, 5, request)
        assert assigned.error_code == ErrorCode.MEMBER_ID_REQUIRED
        request.member_id = assigned.member_id
        member.send(JOIN_GROUP, 5, request)
        assert not member.is_closed_soon  # It waits.
        assert delete(admin, "bob") == 0
        assert member.is_closed


def test_user_gets_response_to_change_of_own_password(broker):
    with connected(broker) as wire, connected(broker) as other:
        wire.socket.settimeout(20)
        assert set_password(wire, "alice", "new") == 0
        assert wire.is_closed
        assert other.is_closed
    connected(broker, "alice", "new").socket.close()


# ---------------------------------------------------------------------------- no user is locked out


@pytest.mark.parametrize("credentials", [None, "SCRAM-SHA-512=[name=a,password=b]"])
def test_listener_without_possible_login_stops_start(credentials):
    settings = {**SCRAM, "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    del settings["barnabas.scram.credentials"]
    if credentials is not None:
        settings["barnabas.scram.credentials"] = credentials
    with pytest.raises(ConfigError) as caught, Broker(config=settings):
        pass
    assert str(caught.value) == (
        "listener SASL_PLAINTEXT: no user has a credential for SCRAM-SHA-256, and there is no "
        "other way in through which one could be added; set barnabas.scram.credentials, for "
        "example SCRAM-SHA-256=[name=admin,password=...]"
    )


def test_a_listener_through_which_users_can_be_added_will_do():
    settings = {**SCRAM, "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"}
    del settings["barnabas.scram.credentials"]
    with Broker(config=settings) as broker:
        _, plaintext = broker.server.listeners
        with Wire(broker, plaintext.bound) as admin:
            assert set_password(admin, "alice", "secret") == 0
        connected(broker).socket.close()


def test_passwords_of_the_first_start_do_not_show():
    text = "SCRAM-SHA-256=[name=a,password=hidden,iterations=1]"
    with pytest.raises(ConfigError) as caught:
        load_config(overrides=[f"barnabas.scram.credentials={text}"])
    assert "the iterations of a must be from 4096 to 16384" in str(caught.value)
    assert "[hidden]" in str(caught.value)
    assert "password=hidden" not in str(caught.value)
