"""Configured quotas, and the choice of the one that applies to a client.

An entity is a user, a client ID, both, or an address; None in the place of a name is the default
(``<default>``) of all that have no quota of their own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)

PRODUCER_BYTES: Final = "producer_byte_rate"
CONSUMER_BYTES: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATIONS: Final = "controller_mutation_rate"
CONNECTIONS: Final = "connection_creation_rate"

Entity: TypeAlias = tuple[tuple[str, str | None], ...]
"""Types and names, sorted by type."""


class Limit(NamedTuple):
    """Quota that applies to a client, and the clients that share it."""

    value: float
    user: str
    """User whose use is counted together, or "" if the quota belongs to a client ID alone."""
    client_id: str
    """Client ID, or "" if the quota is a user's, for all client IDs together."""


def entity(parts: Mapping[str, str | None]) -> Entity:
    """Return an entity of types and names."""
    return tuple(sorted(parts.items()))


def entity_text(named: Entity) -> str:
    """Return an entity as the text that is stored."""
    return json.dumps(named, separators=(",", ":"))


def entity_of(text: str) -> Entity:
    """Return the entity in a stored text."""
    return tuple((kind, name) for kind, name in json.loads(text))


class QuotaLimits:
    """All configured quotas."""

    def __init__(self, rows: Iterable[tuple[Entity, str, float]] = ()) -> None:
        self._values: dict[Entity, dict[str, float]] = {}
        for named, key, value in rows:
            self.set(named, key, value)

    def __len__(self) -> int:
        """Return the number of entities with quotas."""
        return len(self._values)

    @property
    def addresses(self) -> bool:
        """Whether any address has a limit."""
        return any(kind == IP for named in self._values for kind, _ in named)

    def items(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        """Yield each entity with quotas, and its quotas by key."""
        yield from self._values.items()

    def of(self, named: Entity) -> Mapping[str, float]:
        """Return the quotas of exactly this entity."""
        return self._values.get(named, {})

    def set(self, named: Entity, key: str, value: float | None) -> None:
        """Set a quota, or remove it by None."""
        values = self._values.setdefault(named, {})
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
        if not values:
            del self._values[named]

    def find(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the quota that applies to a client, the first one in Kafka's order, or None."""
        for named, of_user, of_client in (
            (entity({USER: user, CLIENT_ID: client_id}), user, client_id),
            (entity({USER: user, CLIENT_ID: None}), user, client_id),
            (entity({USER: user}), user, ""),
            (entity({USER: None, CLIENT_ID: client_id}), user, client_id),
            (entity({USER: None, CLIENT_ID: None}), user, client_id),
            (entity({USER: None}), user, ""),
            (entity({CLIENT_ID: client_id}), "", client_id),
            (entity({CLIENT_ID: None}), "", client_id),
        ):
            value = self._values.get(named, {}).get(key)
            if value is not None:
                return Limit(value, of_user, of_client)
        return None

    def of_address(self, address: str) -> float | None:
        """Return the connections per second that an address may open, or None without a quota."""
        for name in (address, None):
            value = self._values.get(entity({IP: name}), {}).get(CONNECTIONS)
            if value is not None:
                return value
        return None
