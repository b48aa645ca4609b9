"""Users of SCRAM over the wire: rules of Apache Kafka, and stricter ones of Barnabas."""

import pytest

from barnabas.broker.handlers import users
from barnabas.broker.metadata import user_credentials
from barnabas.broker.security.principals import user
from barnabas.broker.security.sasl import scram_users
from barnabas.broker.security.session import NOBODY, Session
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
    UserName,
)
from barnabas.protocol.sasl.scram import SCRAM_SHA_256, SCRAM_SHA_512, credential_of
from tests.broker.harness import Administration

SHA_256, SHA_512 = SCRAM_SHA_256.number, SCRAM_SHA_512.number
SALTED = {SHA_256: b"p" * 32, SHA_512: b"p" * 64}


def upsertion(name, mechanism=SHA_256, iterations=4096, salt=b"salt", salted=None):
    salted = SALTED.get(mechanism, b"p") if salted is None else salted
    return ScramCredentialUpsertion(name, mechanism, iterations, salt, salted)


async def alter(administration, upsertions=(), deletions=()):
    request = AlterUserScramCredentialsRequest(
        [ScramCredentialDeletion(*each) for each in deletions], list(upsertions)
    )
    response = await administration.ask(ALTER_USER_SCRAM_CREDENTIALS, request, 0)
    return {each.user: (each.error_code, each.error_message) for each in response.results}


async def describe(administration, *names):
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in names] or None)
    response = await administration.ask(DESCRIBE_USER_SCRAM_CREDENTIALS, request, 0)
    assert response.error_code == 0
    return {
        each.user: each.error_code
        or {info.mechanism: info.iterations for info in each.credential_infos}
        for each in response.results
    }


async def test_users_are_set_listed_and_deleted(administration):
    assert await describe(administration) == {}
    changed = await alter(administration, [upsertion("b"), upsertion("a", SHA_512, 8192)])
    assert changed == {"a": (0, None), "b": (0, None)}
    assert await alter(administration, [upsertion("a")]) == {"a": (0, None)}
    both = {SHA_256: 4096, SHA_512: 8192}
    assert await describe(administration) == {"a": both, "b": {SHA_256: 4096}}
    assert await describe(administration, "a") == {"a": both}
    assert await alter(administration, [], [("a", SHA_512), ("b", SHA_256)]) == {
        "a": (0, None),
        "b": (0, None),
    }
    assert await describe(administration) == {"a": {SHA_256: 4096}}


async def test_stored_credential_verifies_the_password_after_a_restart(administration):
    await alter(administration, [upsertion("a", SHA_256, 4097, b"pepper")])
    (row,) = administration.metastore.load().scram_credentials
    expected = credential_of(SCRAM_SHA_256, SALTED[SHA_256], b"pepper", 4097)
    assert (row.salt, row.iterations) == (b"pepper", 4097)
    assert (row.stored_key, row.server_key) == (expected.stored_key, expected.server_key)
    later = Administration(metastore=administration.metastore)
    assert later.users.finder(SCRAM_SHA_256)("a") == expected
    later.stop()


async def test_users_that_cannot_be_described(administration):
    await alter(administration, [upsertion("a")])
    assert await describe(administration, "a", "b", "c", "c") == {
        "a": {SHA_256: 4096},
        "b": ErrorCode.RESOURCE_NOT_FOUND,
        "c": ErrorCode.DUPLICATE_RESOURCE,
    }


REFUSED = {
    "too few iterations": (upsertion("a", iterations=4095), 93, "Too few iterations"),
    "too many iterations": (upsertion("a", iterations=16_385), 93, "Too many iterations"),
    "no name": (upsertion(""), 93, "Username must not be empty"),
    "no mechanism": (upsertion("a", 0), 33, "Unknown SCRAM mechanism"),
    "an unknown mechanism": (upsertion("a", 3), 33, "Unknown SCRAM mechanism"),
    "no salt": (upsertion("a", salt=b""), 93, "The salt must have 1 to 1024 bytes"),
    "a long salt": (upsertion("a", salt=bytes(1025)), 93, "The salt must have 1 to 1024 bytes"),
    "no password": (
        upsertion("a", salted=b""),
        93,
        "A salted password of SCRAM-SHA-256 has 32 bytes",
    ),
    "another mechanism's password": (
        upsertion("a", SHA_512, salted=b"p" * 32),
        93,
        "A salted password of SCRAM-SHA-512 has 64 bytes",
    ),
    "a long name": (
        upsertion("a" * 1025),
        93,
        "Username is too long, or has a NUL in it",
    ),
    "a name that no message can carry": (
        upsertion("a\0"),
        93,
        "Username is too long, or has a NUL in it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_credential_that_is_refused_and_one_beside_it_that_is_not(administration, case):
    bad, code, message = REFUSED[case]
    changed = await alter(administration, [bad, upsertion("good", iterations=16_384)])
    assert changed == {bad.name: (code, message), "good": (0, None)}
    assert await describe(administration) == {"good": {SHA_256: 16_384}}


@pytest.mark.parametrize(
    ("upsertions", "deletions", "code"),
    [
        ([upsertion("a"), upsertion("a", SHA_512)], [], ErrorCode.DUPLICATE_RESOURCE),
        ([upsertion("a"), upsertion("a"), upsertion("a")], [], ErrorCode.DUPLICATE_RESOURCE),
        ([upsertion("a", SHA_512)], [("a", SHA_256)], ErrorCode.DUPLICATE_RESOURCE),
        ([], [("a", SHA_256), ("a", SHA_256)], ErrorCode.DUPLICATE_RESOURCE),
        # The first error of a user counts.
        ([upsertion("a", iterations=1), upsertion("a")], [], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsertion("a")], [("a", SHA_512)], ErrorCode.RESOURCE_NOT_FOUND),
        ([], [("a", SHA_512)], ErrorCode.RESOURCE_NOT_FOUND),
        ([], [("a", 7)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
    ],
)
async def test_a_user_is_changed_once_in_a_request(administration, upsertions, deletions, code):
    before = upsertion("a", iterations=5000)
    await alter(administration, [before])
    changed = await alter(administration, [*upsertions, upsertion("b")], deletions)
    assert {name: found[0] for name, found in changed.items()} == {"a": code, "b": 0}
    assert await describe(administration) == {"a": {SHA_256: 5000}, "b": {SHA_256: 4096}}


async def test_requests_and_users_have_limits(administration, monkeypatch):
    monkeypatch.setattr(users, "CHANGES_MAX", 2)
    changed = await alter(administration, [upsertion(name) for name in "abc"])
    assert {found[0] for found in changed.values()} == {ErrorCode.INVALID_REQUEST}
    monkeypatch.setattr(user_credentials, "USERS_MAX", 2)
    assert await alter(administration, [upsertion("a"), upsertion("b")]) == {
        "a": (0, None),
        "b": (0, None),
    }
    changed = await alter(administration, [upsertion("c")])
    assert changed["c"][0] == ErrorCode.POLICY_VIOLATION
    # An existing user can be changed.
    assert await alter(administration, [upsertion("a", iterations=5000)]) == {"a": (0, None)}
    assert scram_users.USERS_MAX == 100_000


def session(name, mechanism):
    return Session(user(name), NOBODY.access, mechanism)


async def test_sessions_of_a_credential_that_changes_end(administration):
    await alter(administration, [upsertion("a"), upsertion("b"), upsertion("c")])
    await alter(administration, [upsertion("a", SHA_512)])
    assert administration.ended_sessions == []  # The user did not exist before.
    await alter(administration, [upsertion("b")])
    assert administration.ended_sessions == []  # The same once more.
    await alter(administration, [upsertion("b", salt=b"new")], [("a", SHA_256)])
    (ended,) = administration.ended_sessions
    assert ended(session("a", "SCRAM-SHA-256"))
    assert ended(session("b", "SCRAM-SHA-256"))
    assert not ended(session("a", "SCRAM-SHA-512"))
    assert not ended(session("a", "PLAIN"))
    assert not ended(session("c", "SCRAM-SHA-256"))
    assert not ended(NOBODY)


async def test_a_store_that_refuses_leaves_everything_as_it_was(administration, monkeypatch):
    from barnabas.storage.metastore.interface import MetaStoreRefused

    await alter(administration, [upsertion("a")])

    def refuse(*_):
        raise MetaStoreRefused("no space")

    monkeypatch.setattr(administration.metastore, "change_scram_credentials", refuse)
    changed = await alter(administration, [upsertion("b")], [("a", SHA_256)])
    assert {found[0] for found in changed.values()} == {ErrorCode.KAFKA_STORAGE_ERROR}
    assert await describe(administration) == {"a": {SHA_256: 4096}}
    assert administration.ended_sessions == []
