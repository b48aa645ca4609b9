"""DescribeClientQuotas 0-1, AlterClientQuotas 0-1: what clients may use.

Version notes: nothing changed but the encoding.
Stricter than Kafka: an entity that names a type twice is refused, and an address must be one, not
the name of a host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from math import inf
from typing import Final

from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.config.addresses import address_of
from barnabas.broker.metadata.quota_rules import QuotaRules
from barnabas.broker.security.quotas.quota_limits import (
    CONNECTIONS,
    CONSUMER_BYTES,
    CONTROLLER_MUTATIONS,
    ENTITY_TYPES,
    IP,
    PRODUCER_BYTES,
    REQUEST_PERCENTAGE,
    Entity,
    entity,
)
from barnabas.broker.security.quotas.quotas import Change
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
    ValueData,
)
from barnabas.protocol.messages.describe_client_quotas import (
    EntityData as DescribedEntity,
)
from barnabas.protocol.messages.describe_client_quotas import (
    EntryData as DescribedEntry,
)

OF_CLIENTS: Final = frozenset(
    (PRODUCER_BYTES, CONSUMER_BYTES, REQUEST_PERCENTAGE, CONTROLLER_MUTATIONS)
)
OF_ADDRESSES: Final = frozenset((CONNECTIONS,))
WHOLE_NUMBERS: Final = frozenset((PRODUCER_BYTES, CONSUMER_BYTES, CONNECTIONS))
CHANGES_MAX: Final = 1000
"""Limits that one request may change: 10 ms of work for the MetaStore."""


class MatchType(IntEnum):
    """Way in which a filter names an entity."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


# -------------------------------------------------------------------------- DescribeClientQuotas


def refuse_describe_client_quotas(
    request: DescribeClientQuotasRequest, code: ErrorCode, message: str | None
) -> DescribeClientQuotasResponse:
    """Return an error without a list."""
    del request
    return DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)


@serves(DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), refuse=refuse_describe_client_quotas)
def describe_client_quotas(
    quota_rules: QuotaRules, context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """List the quotas of the entities that match a filter."""
    _check_filter(request.components)
    return DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            DescribedEntry(
                [DescribedEntity(kind, name) for kind, name in named],
                [ValueData(key, value) for key, value in sorted(values.items())],
            )
            for named, values in quota_rules.limits.items()
            if _is_meant(dict(named), request)
        ],
    )


def _is_meant(named: Mapping[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    """Return whether an entity matches a filter; a strict one allows no other component."""
    if request.strict and (not request.components or len(named) != len(request.components)):
        return False
    return all(_matches(named, component) for component in request.components)


def _matches(named: Mapping[str, str | None], component: ComponentData) -> bool:
    kind = component.entity_type
    if kind not in named:
        return False
    match MatchType(component.match_type):
        case MatchType.EXACT:
            address = address_of(component.match or "") if kind == IP else None
            return named[kind] == (component.match if address is None else str(address))
        case MatchType.DEFAULT:
            return named[kind] is None
        case MatchType.SPECIFIED:
            return True


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
    if IP in seen and len(seen) > 1:
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
    """Report one error for every entity."""
    return AlterClientQuotasResponse(
        entries=[EntryDataResult(code, message, _named(entry)) for entry in request.entries]
    )


def _named(entry: EntryData) -> list[EntityData]:
    return [EntityData(each.entity_type, each.entity_name) for each in entry.entity]


@serves(ALTER_CLIENT_QUOTAS, versions=(0, 1), refuse=refuse_alter_client_quotas)
async def alter_client_quotas(
    quota_rules: QuotaRules, context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse:
    """Set and remove quotas in one commit; each entity has its own result."""
    if sum(1 + len(entry.ops) for entry in request.entries) > CHANGES_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"at most {CHANGES_MAX} entities and changes per request"
        )
    results = []
    changes: list[Change] = []
    for entry in request.entries:
        result = EntryDataResult(error_message=None, entity=_named(entry))
        try:
            changes += _changes_of(entry)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        results.append(result)
    if changes and not request.validate_only:
        await quota_rules.change(changes)
    return AlterClientQuotasResponse(entries=results)


def _changes_of(entry: EntryData) -> list[Change]:
    """Return the changes of an entry; raises KafkaError where Kafka would."""
    named = _entity_of(entry)
    keys = [operation.key for operation in entry.ops]
    if len(set(keys)) < len(keys):
        raise _invalid("A quota key may only be there once for each entity")
    changes: list[Change] = []
    for operation in entry.ops:
        if operation.remove:
            changes.append((named, operation.key, None))
        else:
            _check_value(dict(named), operation.key, operation.value)
            changes.append((named, operation.key, operation.value))
    return changes


def _entity_of(entry: EntryData) -> Entity:
    if not entry.entity:
        raise _invalid("Invalid empty client quota entity")
    parts: dict[str, str | None] = {}
    for each in entry.entity:
        if each.entity_type not in ENTITY_TYPES:
            raise _invalid(f"Unhandled client quota entity type: {each.entity_type}")
        if each.entity_name == "":
            raise _invalid(f"Empty {each.entity_type} not supported")
        if each.entity_type in parts:
            raise _invalid(f"The entity type {each.entity_type} may only be there once")
        parts[each.entity_type] = each.entity_name
    if IP in parts:
        if len(parts) > 1:
            raise _invalid("An ip entity cannot be combined with a user or a client id")
        parts[IP] = _address(parts[IP])
    return entity(parts)


def _address(text: str | None) -> str | None:
    """Return an address in the form that connections have; raises KafkaError for an invalid one."""
    if text is None:
        return None
    address = address_of(text)
    if address is None:
        raise _invalid(f"{text} is not a valid IP address")
    return str(address)


def _check_value(named: Mapping[str, str | None], key: str, value: float) -> None:
    known = OF_ADDRESSES if IP in named else OF_CLIENTS
    if key not in known:
        raise _invalid(f"Invalid configuration key {key}")
    if not value > 0 or value == inf:
        raise _invalid(f"Quota {key} must be greater than 0")
    if key in WHOLE_NUMBERS and value != int(value):
        raise _invalid(f"Quota {key} must be a whole number")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
