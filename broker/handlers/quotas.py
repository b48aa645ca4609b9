"""DescribeClientQuotas 0-1, AlterClientQuotas 0-1: there are no quotas.

Version notes: nothing changed but the encoding.
A filter is checked by Kafka's rules and matches nothing. Removing a quota that is not there
succeeds, as in Kafka. Setting one is refused: it would be stored without effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    EntryDataResult,
)
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES = frozenset(("user", "client-id", "ip"))
KEYS = frozenset(
    (
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
        "connection_creation_rate",
    )
)


class MatchType(IntEnum):
    """How a filter names an entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


# -------------------------------------------------------------------------- DescribeClientQuotas


def refuse_describe_client_quotas(
    request: DescribeClientQuotasRequest, code: ErrorCode, message: str | None
) -> DescribeClientQuotasResponse:
    """Answer an error; there is no list then."""
    del request
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


@serves(DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), refuse=refuse_describe_client_quotas)
def describe_client_quotas(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """List the quotas that match: none."""
    _check_filter(request.components)
    return DescribeClientQuotasResponse(error_message="", entries=[])


def _check_filter(components: Sequence[ComponentData]) -> None:
    """Raise KafkaError for a filter that contradicts itself."""
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if kind in seen:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Entity type {kind} cannot appear more than once in the filter.",
            )
        seen.add(kind)
        _check_match(component)
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
    if "ip" in seen and len(seen) > 1:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        )


def _check_match(component: ComponentData) -> None:
    try:
        match_type = MatchType(component.match_type)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unknown match type {component.match_type}"
        ) from None
    if match_type is MatchType.EXACT and component.match is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        )
    if match_type is not MatchType.EXACT and component.match is not None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Request specified MATCH_TYPE_{match_type.name}, but also specified a match string.",
        )


# ----------------------------------------------------------------------------- AlterClientQuotas


def refuse_alter_client_quotas(
    request: AlterClientQuotasRequest, code: ErrorCode, message: str | None
) -> AlterClientQuotasResponse:
    """Answer one error for every entity."""
    return AlterClientQuotasResponse(
        entries=[_result(entry, code, message) for entry in request.entries]
    )


def _result(entry: EntryData, code: int = 0, message: str | None = None) -> EntryDataResult:
    entity = [EntityData(each.entity_type, each.entity_name) for each in entry.entity]
    return EntryDataResult(error_code=code, error_message=message, entity=entity)


@serves(ALTER_CLIENT_QUOTAS, versions=(0, 1), refuse=refuse_alter_client_quotas)
def alter_client_quotas(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Refuse every quota; each entity succeeds or fails by itself."""
    results = []
    for entry in request.entries:
        result = _result(entry)
        try:
            _check_change(entry)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        results.append(result)
    return AlterClientQuotasResponse(entries=results)


def _check_change(entry: EntryData) -> None:
    """Raise KafkaError unless the change leaves everything as it is."""
    if not entry.entity:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty client quota entity")
    for entity in entry.entity:
        if entity.entity_type not in ENTITY_TYPES:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unhandled client quota entity type: {entity.entity_type}",
            )
    for operation in entry.ops:
        if operation.key not in KEYS:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"Invalid configuration key {operation.key}"
            )
    if any(not operation.remove for operation in entry.ops):
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "This broker has no quotas: it would limit nobody."
        )
