"""Quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.admin.exchange import Exchange, check, send
from barnabas.broker.security.quotas.quota_limits import ENTITY_TYPES
from barnabas.protocol.messages.alter_client_quotas import (
    ALTER_CLIENT_QUOTAS,
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from barnabas.protocol.messages.describe_client_quotas import (
    DESCRIBE_CLIENT_QUOTAS,
    ComponentData,
    DescribeClientQuotasRequest,
)

_EXACT, _DEFAULT = 0, 1
"""Kinds of comparison in DescribeClientQuotas."""
DEFAULT: Final = "<default>"
"""Entity of all users or clients without a quota of their own, as in Kafka's tools."""

Entity: TypeAlias = Mapping[str, str | None]
"""Names by type, ``None`` for all without a quota of their own."""


class Quota(NamedTuple):
    """The limits of one entity, by key."""

    entity: Entity
    limits: dict[str, float]

    @property
    def text(self) -> str:
        """The entity as ``user=alice client-id=app``."""
        kinds = (kind for kind in ENTITY_TYPES if kind in self.entity)
        return " ".join(f"{kind}={self.name(kind)}" for kind in kinds)

    def name(self, kind: str) -> str | None:
        """Return a name of the entity, or ``None`` if the entity has no such part."""
        return _name(self.entity, kind) if kind in self.entity else None


def list_quotas(entity: Entity, *, strict: bool = False) -> Exchange[list[Quota]]:
    """Return entities of which these are parts, or strictly this one, with their limits.

    Users come before client ids before addresses, and defaults last.
    """
    components = [
        ComponentData(kind, _DEFAULT if name is None else _EXACT, name)
        for kind, name in entity.items()
    ]
    request = DescribeClientQuotasRequest(components, strict)
    answer = yield from send(DESCRIBE_CLIENT_QUOTAS, request)
    check("quotas", answer.error_code, answer.error_message)
    found = [
        Quota(
            {part.entity_type: part.entity_name for part in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in answer.entries or []
    ]
    return sorted(found, key=_place)


def _place(quota: Quota) -> list[tuple[bool, bool, str]]:
    entity = quota.entity
    return [
        (kind not in entity, entity.get(kind) is None, entity.get(kind) or "")
        for kind in ENTITY_TYPES
    ]


def alter_quotas(
    entity: Entity, limits: Mapping[str, float | None], *, dry_run: bool
) -> Exchange[None]:
    """Set limits of an entity, and remove those that are ``None``; raises Rejected."""
    changes = [
        OpData(key, remove=True) if value is None else OpData(key, value)
        for key, value in limits.items()
    ]
    entry = EntryData([EntityData(*each) for each in entity.items()], changes)
    answer = yield from send(ALTER_CLIENT_QUOTAS, AlterClientQuotasRequest([entry], dry_run))
    names = ", ".join(f"{kind} {_name(entity, kind)}" for kind in entity)
    for each in answer.entries:
        check(names, each.error_code, each.error_message)


def _name(entity: Entity, kind: str) -> str:
    name = entity[kind]
    return DEFAULT if name is None else name
