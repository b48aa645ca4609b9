"""A wrong password and an unknown user take the same time."""

from itertools import chain

import pytest

from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.broker.security.sasl.scram_users import ScramUsers
from barnabas.protocol.sasl.exchange import SaslFailed
from barnabas.protocol.sasl.plain import PlainServer
from barnabas.protocol.sasl.scram import (
    MECHANISMS,
    SCRAM_SHA_256,
    ScramCredential,
    ScramServer,
    credential_of,
    salted_password,
)
from barnabas.storage.metastore.interface import ScramRow
from tests.real.security.timing import DIFFERENCES, NAMES, NOBODY


def failing(server, token):
    def work():
        try:
            server.step(token)
        except SaslFailed:
            return
        raise AssertionError("let in")

    return work


@pytest.fixture(params=DIFFERENCES, ids=["calls", "time"])
def differs(request):
    """Return whether attempts with known and with unknown names differ."""
    return request.param


def plain_attempt(verify):
    return lambda name: failing(PlainServer(verify), f"\0{name}\0wrong-password".encode())


@pytest.fixture(scope="module")
def plain_users():
    return PlainUsers({f"user_{name}": f"password of {name}" for name in NAMES})


def test_plain(differs, plain_users):
    assert not differs(plain_attempt(plain_users.verify))


def test_plain_that_looks_for_the_user_first_would_be_found_out(differs, plain_users):
    def verify(user, password):
        return user in NAMES and plain_users.verify(user, password)

    assert differs(plain_attempt(verify))


@pytest.fixture(scope="module")
def scram_users():
    users = ScramUsers()
    rows = []
    for mechanism in MECHANISMS.values():
        salted = salted_password(mechanism, "secret", b"salt of 26 characters as k", 4096)
        each = credential_of(mechanism, salted, b"salt of 26 characters as k", 4096)
        keys = (each.salt, each.stored_key, each.server_key, each.iterations)
        rows += [ScramRow(name, mechanism.name, *keys) for name in NAMES]
    users.load(rows)
    return users


def first_attempt(mechanism, find):
    def attempt(name):
        server = ScramServer(mechanism, find, "server-nonce")
        token = f"n,,n={name},r=client-nonce".encode()
        return lambda: server.step(token)

    return attempt


def final_attempt(mechanism, find):
    proof = "A" * (43 if mechanism is SCRAM_SHA_256 else 86) + "=" * (
        1 if mechanism is SCRAM_SHA_256 else 2
    )
    final = f"c=biws,r=client-nonceserver-nonce,p={proof}".encode()

    def attempt(name):
        server = ScramServer(mechanism, find, "server-nonce")
        server.step(f"n,,n={name},r=client-nonce".encode())
        return failing(server, final)

    return attempt


CASES = [
    pytest.param(mechanism, attempt, id=f"{mechanism.name}-{attempt.__name__}")
    for mechanism in MECHANISMS.values()
    for attempt in (first_attempt, final_attempt)
]


@pytest.mark.parametrize(("mechanism", "attempt"), CASES)
def test_scram(differs, scram_users, mechanism, attempt):
    assert not differs(attempt(mechanism, scram_users.finder(mechanism)))


@pytest.mark.parametrize(("mechanism", "attempt"), CASES)
def test_timing_test_detects_salts_for_unknown_users_only(differs, scram_users, mechanism, attempt):
    find = scram_users.finder(mechanism)
    known = {name: find(name) for name in NAMES}
    assert all(isinstance(each, ScramCredential) for each in known.values())

    assert differs(attempt(mechanism, lambda name: known.get(name) or find(name)))


def test_names_are_as_long_as_each_other():
    assert {len(name) for name in chain(NAMES, NOBODY)} == {9}
