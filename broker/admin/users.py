"""SCRAM users, which the broker stores, with their credentials."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from barnabas.broker.admin.exchange import Exchange, check, send
from barnabas.broker.security.sasl.scram_users import new_salt
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
from barnabas.protocol.sasl.scram import ITERATIONS_MIN, MECHANISMS, salted_password

_BY_NUMBER: Final = {each.number: each.name for each in MECHANISMS.values()}

Credentials: TypeAlias = dict[str, int]
"""Iterations by mechanism."""


def list_users(names: Iterable[str] = ()) -> Exchange[dict[str, Credentials]]:
    """Return the credentials of all users, or of the named users that exist."""
    wanted = [UserName(name) for name in dict.fromkeys(names)] or None
    request = DescribeUserScramCredentialsRequest(wanted)
    answer = yield from send(DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    check("users", answer.error_code, answer.error_message)
    found: dict[str, Credentials] = {}
    for result in answer.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.user, result.error_code, result.error_message)
            found[result.user] = {
                _BY_NUMBER[each.mechanism]: each.iterations for each in result.credential_infos
            }
    return found


def credential_of(
    user: str, mechanism_name: str, password: str, iterations: int = ITERATIONS_MIN
) -> ScramCredentialUpsertion:
    """Return the values that verify a password, which takes long to compute."""
    mechanism, salt = MECHANISMS[mechanism_name], new_salt()
    salted = salted_password(mechanism, password, salt, iterations)
    return ScramCredentialUpsertion(user, mechanism.number, iterations, salt, salted)


def set_credential(credential: ScramCredentialUpsertion) -> Exchange[None]:
    """Store a credential; sessions authenticated with the former one end."""
    return _alter(AlterUserScramCredentialsRequest([], [credential]))


def delete_credential(user: str, mechanism_name: str) -> Exchange[None]:
    """Delete a credential of a user."""
    deletion = ScramCredentialDeletion(user, MECHANISMS[mechanism_name].number)
    return _alter(AlterUserScramCredentialsRequest([deletion], []))


def _alter(request: AlterUserScramCredentialsRequest) -> Exchange[None]:
    """Change one credential: a request may name a user only once."""
    for each in (yield from send(ALTER_USER_SCRAM_CREDENTIALS, request)).results:
        check(each.user, each.error_code, each.error_message)
