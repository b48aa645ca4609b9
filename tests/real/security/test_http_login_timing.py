"""Over HTTP Basic a wrong password and an unknown user take the same time and the same words."""

import asyncio
import base64

import pytest

from barnabas.broker.http.messages.answer import Answer
from barnabas.broker.http.messages.request import Request
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.acls.access import OPEN
from barnabas.broker.security.sasl.failed_logins import FailedLogins
from barnabas.broker.security.sasl.passwords import Passwords
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.broker.security.sasl.scram_users import ScramUsers
from barnabas.broker.security.web.login import HttpLogin
from barnabas.protocol.sasl.scram import SCRAM_SHA_256, credential_of, salted_password
from barnabas.storage.metastore.interface import ScramRow
from tests.real.security.timing import ATTEMPTS, DIFFERENCES, NAMES, NOBODY

SCRAM_ATTEMPTS = 100
"""Each takes thousands of rounds of hashing, beside which nothing else counts."""
SALT = b"salt of 26 characters as k"


@pytest.fixture(params=DIFFERENCES, ids=["calls", "time"])
def differs(request):
    """Return whether attempts with known and with unknown names differ."""
    return request.param


class NoAudit:
    def logged_in(self, principal, host, listener, mechanism):
        raise AssertionError("let in")

    def login_failed(self, user, host, listener, mechanism, reason):
        pass


class Door:
    """Authentication of a request, without deliberate delays."""

    def __init__(self, passwords):
        clock = ManualClock()
        self._loop = asyncio.new_event_loop()
        self._login = HttpLogin(
            clock=clock,
            token=None,
            passwords=passwords,
            failed_logins=FailedLogins(clock, per_address=10**9, held_back=10**9, delay_ms=0),
            new_access=lambda _who, _host: OPEN,
            audit=NoAudit(),
            is_recovered=lambda: True,
        )

    def close(self):
        self._loop.close()

    def answer(self, name):
        """The answer to a wrong password."""
        return self._loop.run_until_complete(self._judged(name))

    async def _judged(self, name):
        return await self._login.judge(request_of(name), "10.0.0.1")

    def attempt(self, name):
        """The same by hand: a turn of the loop would hide what PLAIN takes."""
        coroutine = self._login.judge(request_of(name), "10.0.0.1")

        def work():
            try:
                while True:
                    coroutine.send(None)
            except StopIteration as stop:
                answer = stop.value
            assert answer.status == 401

        return work


def request_of(name):
    pair = base64.b64encode(f"{name}:wrong-password".encode()).decode()
    return Request("GET", ("metrics",), headers={"authorization": f"Basic {pair}"})


def plain_users():
    return PlainUsers({f"user_{name}": f"password of {name}" for name in NAMES})


def scram_finder():
    users = ScramUsers()
    salted = salted_password(SCRAM_SHA_256, "secret", SALT, 4096)
    each = credential_of(SCRAM_SHA_256, salted, SALT, 4096)
    keys = (each.salt, each.stored_key, each.server_key, each.iterations)
    users.load([ScramRow(name, SCRAM_SHA_256.name, *keys) for name in NAMES])
    return users.finder(SCRAM_SHA_256)


PLAIN = Passwords([plain_users()], [])
SCRAM = Passwords([], [(SCRAM_SHA_256, scram_finder())])
BOTH = Passwords([plain_users()], [(SCRAM_SHA_256, scram_finder())])


class LooksFirst:
    """Authentication with a flaw: an unknown user costs no hashing."""

    def __init__(self, passwords):
        self._passwords = passwords

    async def verify(self, name, password):
        return await self._passwords.verify(name, password) if name in NAMES else None


@pytest.fixture
def here(monkeypatch):
    """Hash on the test's thread: the wait for another thread depends on the machine."""

    async def at_once(_pool, work):
        return work()

    monkeypatch.setattr("barnabas.broker.security.sasl.passwords.Pool.run", at_once)


CASES = pytest.mark.parametrize(
    ("passwords", "attempts"),
    [(PLAIN, ATTEMPTS), (SCRAM, SCRAM_ATTEMPTS), (BOTH, SCRAM_ATTEMPTS)],
    ids=["PLAIN", "SCRAM", "both"],
)


@pytest.fixture
def opened():
    doors = []

    def door(passwords):
        doors.append(Door(passwords))
        return doors[-1]

    yield door
    for each in doors:
        each.close()


@pytest.mark.usefixtures("here")
@CASES
def test_a_wrong_password_and_an_unknown_user_take_as_long(differs, opened, passwords, attempts):
    assert not differs(opened(passwords).attempt, attempts)


@pytest.mark.usefixtures("here")
@CASES
def test_to_look_for_the_user_first_would_be_found_out(differs, opened, passwords, attempts):
    assert differs(opened(LooksFirst(passwords)).attempt, attempts)


@pytest.mark.parametrize("passwords", [PLAIN, SCRAM, BOTH], ids=["PLAIN", "SCRAM", "both"])
def test_known_and_unknown_users_get_equal_responses(opened, passwords):
    door = opened(passwords)
    answers = [door.answer(name) for name in (NAMES[0], NOBODY[0])]
    assert all(isinstance(answer, Answer) and answer.status == 401 for answer in answers)
    one, other = ((each.status, each.headers, each.body) for each in answers)
    assert one == other
