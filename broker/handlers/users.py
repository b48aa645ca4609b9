"""DescribeUserScramCredentials 0, AlterUserScramCredentials 0: the users of SCRAM.

Rules and words are Apache Kafka's. A request may name a user once, so both mechanisms of a user
take two of them. Stricter: an empty salt, a salted password that the mechanism cannot have made,
and names and salts without end are refused.
A client without permission gets an error, where Kafka 4.3.0 never responds to a request for all
users.

Sessions that have used a credential end when it changes, the one that changes it after its
response.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, TypeAlias

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.metadata.user_credentials import UserCredentials
from barnabas.broker.network.socket_server import SocketServer
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.sasl.scram_users import Owner, ScramUsers, row_of
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_user_scram_credentials import (
    ALTER_USER_SCRAM_CREDENTIALS,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.protocol.sasl.scram import (
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    MECHANISMS,
    credential_of,
)
from barnabas.storage.metastore.interface import ScramRow

Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion

CHANGES_MAX: Final = 2000
"""Users that one request may change: 20 ms of work for the MetaStore."""
PER_TURN: Final = 250
"""Users that are processed before the loop gets a turn."""
NAME_MAX: Final = 1024
SALT_BYTES_MAX: Final = 1024
_BY_NUMBER: Final = {each.number: each for each in MECHANISMS.values()}


@serves(DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def describe_user_scram_credentials(
    user_credentials: UserCredentials,
    context: RequestContext,
    request: DescribeUserScramCredentialsRequest,
) -> DescribeUserScramCredentialsResponse:
    """List for which mechanisms users have a credential, and its iterations."""
    users = user_credentials.users
    if request.users:
        given = Counter(user.name for user in request.users)
        results = [_described(users, name, times) for name, times in sorted(given.items())]
    else:
        results = [_described(users, name, 1) for name in users.names()]
    return DescribeUserScramCredentialsResponse(error_message="", results=results)


def _described(users: ScramUsers, name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = "Cannot describe SCRAM credentials for the same user twice in a single request: "
        return DescribeUserScramCredentialsResult(name, code, message + name)
    infos = [CredentialInfo(each.number, count) for each, count in users.iterations_of(name)]
    if not infos:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = "Attempt to describe a user credential that does not exist: "
        return DescribeUserScramCredentialsResult(name, code, message + name)
    return DescribeUserScramCredentialsResult(name, ErrorCode.NONE, None, infos)


def refuse_alter(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Report one error for every user."""
    names = {each.name for each in request.deletions} | {each.name for each in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(name, code, message) for name in sorted(names)]
    )


@serves(ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0), refuse=refuse_alter, in_slices=True)
async def alter_user_scram_credentials(
    user_credentials: UserCredentials,
    sockets: SocketServer,
    context: RequestContext,
    request: AlterUserScramCredentialsRequest,
) -> AlterUserScramCredentialsResponse:
    """Set and delete credentials; each user has its own result."""
    if len(request.deletions) + len(request.upsertions) > CHANGES_MAX:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"at most {CHANGES_MAX} users per request")
    errors = _refused(user_credentials.users, [*request.deletions, *request.upsertions])
    deleted = {
        each.name: Owner(each.name, _BY_NUMBER[each.mechanism].name)
        for each in request.deletions
        if each.name not in errors
    }
    upserted: dict[str, ScramRow] = {}
    for number, upsertion in enumerate(request.upsertions, 1):
        if number % PER_TURN == 0:
            await next_turn()
        if upsertion.name not in errors:
            upserted[upsertion.name] = _row(upsertion)
    if upserted or deleted:
        errors |= await user_credentials.alter(
            upserted, deleted, lambda ended: sockets.close_sessions(ended, context.connection)
        )
    results = {name: AlterUserScramCredentialsResult(name, 0, None) for name in upserted | deleted}
    for name, error in errors.items():
        results[name] = AlterUserScramCredentialsResult(name, error.code, error.message)
    return AlterUserScramCredentialsResponse(results=[results[name] for name in sorted(results)])


def _refused(users: ScramUsers, changes: Iterable[Change]) -> dict[str, KafkaError]:
    """Return the errors of users: of the first change, or for a repeated user."""
    errors: dict[str, KafkaError] = {}
    seen: set[str] = set()
    for change in changes:
        if change.name in errors:
            continue
        if change.name in seen:
            errors[change.name] = KafkaError(
                ErrorCode.DUPLICATE_RESOURCE,
                "A user credential cannot be altered twice in the same request",
            )
            continue
        seen.add(change.name)
        error = _refusal(users, change)
        if error is not None:
            errors[change.name] = error
    return errors


def _refusal(users: ScramUsers, change: Change) -> KafkaError | None:
    if not change.name:
        return _unacceptable("Username must not be empty")
    mechanism = _BY_NUMBER.get(change.mechanism)
    if mechanism is None:
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if Owner(change.name, mechanism.name) in users:
            return None
        return KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    if change.iterations < ITERATIONS_MIN:
        return _unacceptable("Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        return _unacceptable("Too many iterations")
    if len(change.name) > NAME_MAX or "\0" in change.name:
        return _unacceptable("Username is too long, or has a NUL in it")
    if not 0 < len(change.salt) <= SALT_BYTES_MAX:
        return _unacceptable(f"The salt must have 1 to {SALT_BYTES_MAX} bytes")
    if len(change.salted_password) != mechanism.digest_bytes:
        return _unacceptable(
            f"A salted password of {mechanism.name} has {mechanism.digest_bytes} bytes"
        )
    return None


def _unacceptable(message: str) -> KafkaError:
    return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)


def _row(upsertion: ScramCredentialUpsertion) -> ScramRow:
    mechanism = _BY_NUMBER[upsertion.mechanism]
    salted, salt = bytes(upsertion.salted_password), bytes(upsertion.salt)
    credential = credential_of(mechanism, salted, salt, upsertion.iterations)
    return row_of(upsertion.name, mechanism, credential)
