"""DescribeUserScramCredentials 0, AlterUserScramCredentials 0: there are no users.

No listener authenticates anybody, so a credential is refused instead of stored: it would protect
nothing. Requests are checked, and one answer is given for each user, by Kafka's rules.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TypeAlias

from barnabas.broker.api.dispatch import RequestContext, serves
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
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

Change: TypeAlias = ScramCredentialDeletion | ScramCredentialUpsertion

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16_384


class ScramMechanism(IntEnum):
    """Kafka's numbers of the mechanisms."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2


@serves(DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0))
def describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """List the users with credentials: there are none. A user that is named gets an error."""
    given = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(
        error_message="",
        results=[_described(name, times) for name, times in sorted(given.items())],
    )


def _described(name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        code = ErrorCode.DUPLICATE_RESOURCE
        message = "Cannot describe SCRAM credentials for the same user twice in a single request: "
    else:
        code = ErrorCode.RESOURCE_NOT_FOUND
        message = "Attempt to describe a user credential that does not exist: "
    return DescribeUserScramCredentialsResult(name, code, message + name)


def refuse_alter_users(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """Answer one error for every user, each once."""
    changes: list[Change] = [*request.deletions, *request.upsertions]
    names = sorted({change.name for change in changes})
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(name, code, message) for name in names]
    )


@serves(ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0), refuse=refuse_alter_users)
def alter_user_scram_credentials(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Refuse every credential, with one answer for each user."""
    refused: dict[str, AlterUserScramCredentialsResult] = {}
    changes: list[Change] = [*request.deletions, *request.upsertions]
    for change in changes:
        error = _refusal(change)
        result = AlterUserScramCredentialsResult(change.name, error.code, error.message)
        refused.setdefault(change.name, result)
    return AlterUserScramCredentialsResponse(results=[refused[name] for name in sorted(refused)])


def _refusal(change: Change) -> KafkaError:
    if not change.name:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in set(ScramMechanism):
        return KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        return KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        )
    if change.iterations < ITERATIONS_MIN:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        return KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return KafkaError(
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "No listener of this broker authenticates users: a credential would protect nothing.",
    )
