"""Tokens of any bytes, and spoilt ones of real logins: refused, or no worse than what was sent."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.sasl.exchange import Accepted, Challenge, SaslFailed
from barnabas.protocol.sasl.scram import MECHANISMS, SCRAM_SHA_256
from tests.protocol.mutilation import MUTATORS
from tests.protocol.sasl import test_plain, test_scram
from tests.seeds import SEED

SPOILT = 500

PLAIN_PIECES = st.sampled_from(
    [b"\0", b"alice", b"secret", b"bob", b"", b"\xff", b"\xc3\xa9", b"="]
)
SCRAM_WORDS = "n , n,, n=alice r=nonce c=biws p= m=x a=alice a=bob =2C =3D = AAAA= y,, \0 \xe9"
SCRAM_PIECES = st.sampled_from(SCRAM_WORDS.split(" "))


@given(st.lists(PLAIN_PIECES, max_size=8).map(b"".join) | st.binary(max_size=30))
def test_a_plain_token_is_refused_unless_it_is_the_users(token):
    try:
        found = test_plain.server().step(token)
    except SaslFailed:
        return
    assert found == Accepted(b"", "alice")
    assert token in {b"\0alice\0secret", b"alice\0alice\0secret"}


@given(st.lists(SCRAM_PIECES, max_size=8).map(",".join) | st.text(max_size=40))
def test_a_first_message_of_scram_is_answered_or_refused(text):
    try:
        found = test_scram.server().step(text.encode())
    except SaslFailed:
        return
    assert isinstance(found, Challenge)
    assert len(found.token) < len(text.encode()) + 200


@given(
    st.lists(SCRAM_PIECES, max_size=8).map(",".join)
    | st.text(max_size=40)
    | st.binary(max_size=40).map(lambda proof: final(base64.b64encode(proof).decode()))
)
def test_a_last_message_of_scram_is_refused_without_the_password(text):
    answers = test_scram.server()
    answers.step(b"n,,n=alice,r=nonce")
    with pytest.raises(SaslFailed):
        answers.step(text.encode())


def final(proof: str) -> str:
    return f"c=biws,r=nonceserver+nonce,p={proof}"


def spoilt(data: bytes, draw: random.Random) -> bytes:
    for _ in range(draw.choice((1, 1, 2))):
        data = draw.choice(MUTATORS)(data, draw) if data else b"x"
    return data


def proof_of(message: bytes) -> bytes:
    return base64.b64decode(message.rpartition(b",p=")[2])


@pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=lambda each: each.name)
def test_a_login_with_scram_of_which_a_message_was_spoilt_on_the_way(mechanism):
    draw = random.Random(SEED)
    credential = test_scram.credential(mechanism)
    for _ in range(SPOILT):
        answers = test_scram.server(mechanism, {"alice": credential})
        asked = test_scram.client(mechanism)
        first = asked.first()
        try:
            sent = spoilt(first, draw) if draw.random() < 0.5 else first
            message = asked.step(answers.step(sent).token)
            received = spoilt(message, draw) if sent == first else message
            answers.step(received)
        except SaslFailed:
            continue
        # Bits of base64 that stand for nothing may be anything; the rest is what was proved.
        assert sent == first
        assert received.rpartition(b",p=")[0] == message.rpartition(b",p=")[0]
        assert proof_of(received) == proof_of(message)


def test_a_client_believes_no_spoilt_answer():
    draw = random.Random(SEED)
    credential = test_scram.credential(SCRAM_SHA_256)
    for _ in range(SPOILT):
        answers, asked = test_scram.server(users={"alice": credential}), test_scram.client()
        challenge = answers.step(asked.first()).token
        last = answers.step(asked.step(challenge)).token
        received = spoilt(last, draw)
        try:
            asked.step(received)
        except SaslFailed:
            continue
        found = base64.b64decode(received.removeprefix(b"v=").partition(b",")[0])
        assert found == base64.b64decode(last.removeprefix(b"v="))
