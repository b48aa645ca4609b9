"""OAUTHBEARER: the messages of RFC 7628, and how a token fails that does not hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.sasl.exchange import Accepted, Challenge, SaslFailed
from barnabas.protocol.sasl.oauthbearer import (
    FAILED,
    InvalidToken,
    OAuthBearerClient,
    OAuthBearerServer,
    Verified,
)

STATUS = b'{"status":"invalid_token"}'


def verify(token):
    if token != "good":
        raise InvalidToken("it is bad")
    return Verified("alice", 1234)


def server():
    return OAuthBearerServer(verify)


def message(auth="Bearer good", header="n,,", rest=""):
    return f"{header}\1auth={auth}\1{rest}\1".encode()


def test_client_and_server_agree():
    client = OAuthBearerClient("good")
    assert client.first() == message()
    assert server().step(client.first()) == Accepted(b"", "alice", 1234)
    assert client.step(b"") is None


@pytest.mark.parametrize(
    "token",
    [
        message(header="n,a=alice,"),
        message("bearer good"),
        message("BEARER   good"),
        message(rest="host=server.example.com\1port=143\1"),
    ],
)
def test_messages_that_are_taken(token):
    assert server().step(token) == Accepted(b"", "alice", 1234)


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"\1",
        b"n,,\1\1",
        b"n,,\1auth=Bearer good\1",
        message(header="y,,"),
        message(header="p=tls-unique,,"),
        message("Basic good"),
        message("Bearer"),
        message("Bearer good bad"),
        message("Bearer gödel"),
        message(rest="1=2\1"),
        message(rest="a=\1"),
        message(rest="a=b"),
        message() + b"x",
        b"\xff" + message(),
        message("Bearer " + "x" * 70_000),
    ],
)
def test_messages_that_are_none(token):
    with pytest.raises(SaslFailed) as caught:
        server().step(token)
    assert str(caught.value) == FAILED


def test_a_token_that_does_not_hold_is_answered_and_then_refused():
    answers, client = server(), OAuthBearerClient("bad")
    assert answers.step(client.first()) == Challenge(STATUS)
    assert client.step(STATUS) == b"\1"
    with pytest.raises(SaslFailed) as caught:
        answers.step(b"\1")
    assert str(caught.value) == STATUS.decode()
    assert caught.value.detail == "it is bad"


def test_after_a_token_that_does_not_hold_no_other_is_looked_at():
    answers = server()
    answers.step(message("Bearer bad"))
    with pytest.raises(SaslFailed):
        answers.step(message())


def test_nobody_acts_as_somebody_else():
    with pytest.raises(SaslFailed) as caught:
        server().step(message(header="n,a=bob,"))
    assert str(caught.value) == (
        "Authentication failed: Client requested an authorization id (bob) that is different from "
        "the token's principal name (alice)"
    )
    assert caught.value.user == "alice"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (STATUS, "invalid_token"),
        (b"nonsense", "unknown status"),
        (b"[" * 5000, "unknown status"),
        (b'{"status":1}', "unknown status"),
        (b'"x"', "unknown status"),
    ],
)
def test_a_client_says_why_its_token_does_not_hold(answer, status):
    client = OAuthBearerClient("bad", {"host": "x"})
    assert client.first() == message("Bearer bad", rest="host=x\1")
    assert client.step(answer) == b"\1"
    with pytest.raises(SaslFailed, match=status):
        client.step(b"more")
    assert client.rounds(answer) == 0


@given(st.binary(max_size=80) | st.text(st.sampled_from("n,a=y\1uthBer x")).map(str.encode))
def test_any_message_is_taken_or_refused(token):
    try:
        found = server().step(token)
    except SaslFailed:
        return
    assert isinstance(found, Accepted | Challenge)
