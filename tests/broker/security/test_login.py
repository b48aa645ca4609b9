"""Every state of a login and every request in it: the table at the head of
security/sasl/login.py.
"""

import itertools

import pytest

from barnabas.broker.security.principals import user
from barnabas.broker.security.sasl.login import (
    API_VERSIONS_KEY,
    AUTHENTICATE_KEY,
    HANDSHAKE_KEY,
    Earlier,
    LoggedIn,
    Login,
    LoginFailed,
    Next,
    State,
    Verdict,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.exchange import Accepted, Challenge, SaslFailed

METADATA_KEY = 3


class Twice:
    """A mechanism of two steps; the second token is the user."""

    def __init__(self, only=None):
        assert only in {None, "alice"}
        self.steps = 0

    def step(self, token):
        self.steps += 1
        if token == b"bad":
            raise SaslFailed("bad token")
        if token == b"worse":
            raise RuntimeError("a bug")
        if self.steps == 1:
            return Challenge(b"go on")
        return Accepted(b"welcome", token.decode(), 1234)


def new(earlier=None, *, is_expired=False):
    return Login({"TWICE": Twice, "OTHER": Twice}, earlier, is_expired=is_expired)


def chosen(version=1):
    login = new()
    assert login.choose("TWICE", version) is None
    return login


def failed():
    login = chosen()
    login.step(b"bad")
    return login


STATES = {
    State.NEW: new,
    State.CHOSEN: chosen,
    State.EXPIRED: lambda: new(Earlier(user("alice"), "TWICE"), is_expired=True),
    State.FAILED: failed,
}
SERVED = {
    (State.NEW, API_VERSIONS_KEY),
    (State.NEW, HANDSHAKE_KEY),
    (State.CHOSEN, AUTHENTICATE_KEY),
    (State.EXPIRED, HANDSHAKE_KEY),
}
KEYS = (API_VERSIONS_KEY, HANDSHAKE_KEY, AUTHENTICATE_KEY, METADATA_KEY)


@pytest.mark.parametrize(("state", "key"), list(itertools.product(STATES, KEYS)))
def test_each_login_state_admits_its_requests(state, key):
    login = STATES[state]()
    assert login.state is state
    if (state, key) in SERVED:
        expected = Verdict.SERVED
    elif state is State.CHOSEN:
        expected = Verdict.REFUSED
    else:
        expected = Verdict.CLOSED
    assert login.judge(key) is expected


def test_versions_are_asked_for_once():
    login = new()
    assert login.judge(API_VERSIONS_KEY) is Verdict.SERVED
    assert login.judge(API_VERSIONS_KEY) is Verdict.SERVED  # The first was of an unknown version.
    login.versions_answered()
    assert login.judge(API_VERSIONS_KEY) is Verdict.CLOSED
    assert new().judge(HANDSHAKE_KEY) is Verdict.SERVED


def test_an_exchange_goes_to_its_end():
    login = chosen()
    assert login.step(b"hello") == Next(b"go on")
    assert login.step(b"alice") == LoggedIn(b"welcome", user("alice"), "TWICE", 1234)
    assert login.state is State.COMPLETE
    assert login.judge(AUTHENTICATE_KEY) is Verdict.CLOSED


def test_a_mechanism_that_is_not_offered():
    login = new()
    failed = login.choose("GSSAPI", 1)
    assert failed[:2] == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, "")
    assert failed.described == "reason=mechanism GSSAPI is not offered"
    assert (failed.mechanism, failed.reason) == ("GSSAPI", "mechanism GSSAPI is not offered")
    assert login.judge(HANDSHAKE_KEY) is Verdict.CLOSED
    assert login.mechanism_names == ["TWICE", "OTHER"]


def test_a_failure_is_final():
    login = chosen()
    found = login.step(b"bad")
    assert found == LoginFailed(ErrorCode.SASL_AUTHENTICATION_FAILED, "bad token")
    assert login.judge(AUTHENTICATE_KEY) is Verdict.CLOSED


def test_a_bug_of_a_mechanism_ends_the_login_too():
    login = chosen()
    assert login.step(b"hello") == Next(b"go on")
    with pytest.raises(RuntimeError):
        login.step(b"worse")
    assert login.state is State.FAILED
    assert login.judge(AUTHENTICATE_KEY) is Verdict.CLOSED


@pytest.mark.parametrize(
    ("mechanism", "name", "message"),
    [
        (
            "TWICE",
            "bob",
            "Cannot change principals during re-authentication from User.alice: User.bob",
        ),
        ("OTHER", "alice", "SASL mechanism cannot be changed during re-authentication"),
    ],
)
def test_a_repetition_is_by_the_same_user_in_the_same_way_kip_368(mechanism, name, message):
    login = new(Earlier(user("alice"), "TWICE"))
    login.choose(mechanism, 1)
    found = login.step(b"hello")
    if isinstance(found, Next):
        found = login.step(name.encode())
    assert isinstance(found, LoginFailed)
    assert found[:2] == (ErrorCode.SASL_AUTHENTICATION_FAILED, message)


def test_tokens_are_bare_after_a_handshake_of_version_0():
    assert chosen(0).raw
    assert not chosen(1).raw


def test_login_failure_log_is_short_and_printable():
    login = chosen()
    found = login._failed("no", "a\nb" * 100, "it\r\nis [31m bad" * 100)
    assert len(found.described) < 400
    assert found.described.isprintable()
    assert found.described.startswith("user='a\\nba\\nb")
