"""Passwords that come as they are."""

import pytest

from barnabas.broker.security.sasl import passwords as module
from barnabas.broker.security.sasl.passwords import Passwords
from barnabas.broker.security.sasl.plain_users import PlainUsers
from barnabas.broker.security.sasl.scram_users import ScramUsers, row_of
from barnabas.protocol.sasl.scram import MECHANISMS, credential_of, salted_password


def scram_users(**passwords):
    rows = []
    for number, (name, password) in enumerate(passwords.items()):
        mechanism = list(MECHANISMS.values())[number % 2]
        salted = salted_password(mechanism, password, b"salt", 4096)
        rows.append(row_of(name, mechanism, credential_of(mechanism, salted, b"salt", 4096)))
    users = ScramUsers()
    users.load(rows)
    return users


@pytest.mark.parametrize(
    ("name", "password", "expected"),
    [
        ("alice", "a", True),
        ("alice", "other", True),  # That of another listener.
        ("alice", "b", False),
        ("bob", "b", True),
        ("carol", "c", True),
        ("carol", "b", False),
        ("bob", "", False),
        ("nobody", "a", False),
    ],
)
async def test_password_is_verified_for_its_user(name, password, expected):
    users = scram_users(bob="b", carol="c")
    plain = [PlainUsers({"user_alice": "a"}), PlainUsers({"user_alice": "other"})]
    passwords = Passwords(plain, [(each, users.finder(each)) for each in MECHANISMS.values()])
    assert passwords
    assert (await passwords.verify(name, password) is not None) is expected


async def test_a_credential_counts_for_mechanisms_that_are_offered():
    users = scram_users(bob="b", carol="c")
    first = next(iter(MECHANISMS.values()))
    passwords = Passwords([], [(first, users.finder(first))])
    assert await passwords.verify("bob", "b")
    assert not await passwords.verify("carol", "c")


async def test_a_login_holds_for_as_long_as_its_credential():
    users = scram_users(bob="b")
    kind = next(iter(MECHANISMS.values()))
    passwords = Passwords([], [(kind, users.finder(kind))])
    still_holds = await passwords.verify("bob", "b")
    assert still_holds()
    changed = salted_password(kind, "b", b"other salt", 4096)
    users.load([row_of("bob", kind, credential_of(kind, changed, b"other salt", 4096))])
    assert not still_holds()
    still_holds = await passwords.verify("bob", "b")
    users.load([])
    assert not still_holds()


async def test_a_credential_that_is_deleted_while_it_is_verified(monkeypatch):
    users = scram_users(bob="b")
    kind = next(iter(MECHANISMS.values()))
    passwords = Passwords([], [(kind, users.finder(kind))])
    match_all = module._match_all

    def deleted_meanwhile(*asked):
        users.load([])
        return match_all(*asked)

    monkeypatch.setattr(module, "_match_all", deleted_meanwhile)
    assert await passwords.verify("bob", "b") is None


async def test_no_password_is_valid_without_users():
    assert not Passwords([], [])
    assert not await Passwords([], []).verify("", "")
