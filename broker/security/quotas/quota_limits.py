"""Which limits were set for whom, and which of them counts for a client.

An entity is a user, a client id, both, or an address; None in the place of a name stands for every
one that has no limit of its own (``<default>``).
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
    """The limit that counts for a client, and with whom it is shared."""

    value: float
    user: str
    """Whose use counts together: "" where the limit is of a client id alone."""
    client_id: str
    """"" where the limit is of a user, for all client ids together."""


def entity(parts: Mapping[str, str | None]) -> Entity:
    """Return an entity of types and names."""
    return tuple(sorted(parts.items()))


def entity_text(named: Entity) -> str:
    """Return how an entity is stored: one text for each."""
    return json.dumps(named, separators=(",", ":"))


def entity_of(text: str) -> Entity:
    """Return the entity that was stored."""
    return tuple((kind, name) for kind, name in json.loads(text))


class QuotaLimits:
    """All limits that were set."""

    def __init__(self, rows: Iterable[tuple[Entity, str, float]] = ()) -> None:
        self._values: dict[Entity, dict[str, float]] = {}
        for named, key, value in rows:
            self.set(named, key, value)

    def __len__(self) -> int:
        """How many entities have limits."""
        return len(self._values)

    @property
    def addresses(self) -> bool:
        """Whether any address has a limit."""
        return any(kind == IP for named in self._values for kind, _ in named)

    def items(self) -> Iterator[tuple[Entity, Mapping[str, float]]]:
        """Yield each entity that has limits, and its limits by key."""
        yield from self._values.items()

    def of(self, named: Entity) -> Mapping[str, float]:
        """Return the limits that were set for exactly this entity."""
        return self._values.get(named, {})

    def set(self, named: Entity, key: str, value: float | None) -> None:
        """Set a limit; None takes it away."""
        values = self._values.setdefault(named, {})
        if value is None:
            values.pop(key, None)
        else:
            values[key] = value
        if not values:
            del self._values[named]

    def find(self, key: str, user: str, client_id: str) -> Limit | None:
        """Return the limit that counts for a client: the first there is, as in Kafka."""
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
        """Return how many connections a second an address may make; None: no limit."""
        for name in (address, None):
            value = self._values.get(entity({IP: name}), {}).get(CONNECTIONS)
            if value is not None:
                return value
        return None
