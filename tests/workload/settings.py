"""Settings of a client, from its command line, and the topics of all clients."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Self

from tests.counterparts.logins import NOBODY, Login, Tls

LEFT, RIGHT, OUT = "left", "right", "out"
PARTITIONS = 3
TOPICS = (LEFT, RIGHT, OUT)
PLACES = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
INPUTS = [(LEFT, number) for number in range(PARTITIONS)]
GROUP = "transformers"
WIRE = {"wire", "wire_classic"}
"""Drivers without a library."""
TRANSACTION_TIMEOUT_MS = 3000
PATIENT_MS = 60_000
"""A transaction timeout that no takeover of a coordinator outlasts."""
LIBRDKAFKA: dict[str, str | int | float | bool | None] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    # When its only broker disconnects it would drop the broker and bootstrap again; a pending
    # request of a transaction then waits without end (2.16.0, whose main thread is stuck).
    "metadata.recovery.strategy": "none",
}
FENCED_PAUSE_S = 0.5
HUNG_EXIT_CODE = 4
FATAL_EXIT_CODE = 3
"""Exit code of a member whose library gave up: only a new member may take its place."""


class Kind(NamedTuple):
    """Role of a client and its library; its transactional id, if two clients share it.

    A transformer may read with another library than it writes with.
    """

    role: str
    library: str
    transactional_id: str = ""
    isolation: str = ""
    consumer: str = ""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS


@dataclass(frozen=True)
class Settings:
    """Settings of one client; a process gets them as JSON."""

    role: str
    """Name of one of the plans."""
    library: str
    name: str
    """Name of the client's process; all values that it writes begin with it."""
    servers: str
    journal: str
    """File of the journal, or an empty string to keep it in memory."""
    seed: int
    consumer: str = ""
    """Library that a transformer reads with."""
    transactional_id: str = ""
    isolation: str = ""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    login: Login = NOBODY
    rest_s: float | None = None
    """Longest time from one operation to the next, or ``None`` for that of the role."""
    pads: tuple[int, ...] = (0,)
    """Sizes of a bulk sender's padding, in bytes."""
    topics: tuple[str, ...] = ()
    """Topics of a sender, or ``()`` for those of the torture; topics of a member."""
    partitions: int = PARTITIONS
    """Number of partitions of each of ``topics``."""
    group: str = GROUP
    """Group of a member, with its settings:"""
    protocol: str = "classic"
    assignor: str = "range"
    instance: str = ""
    pattern: str = ""
    """Regular expression of topics, in place of ``topics``."""
    session_ms: int = 3000
    heartbeat_ms: int = 500
    leaves: float = 0.0
    """Share of a member's polls before which it leaves the group and joins it again."""

    @classmethod
    def of(cls, kind: Kind, name: str, servers: str, seed: int, **more: object) -> Self:
        """Return the settings of a client of one kind; ``more`` are further fields."""
        options: dict[str, Any] = {"journal": "", "transactional_id": kind.transactional_id or name}
        return cls(
            kind.role,
            kind.library,
            name,
            servers,
            seed=seed,
            consumer=kind.consumer or kind.library,
            isolation=kind.isolation,
            transaction_timeout_ms=kind.transaction_timeout_ms,
            **{**options, **more},
        )

    def as_json(self) -> str:
        """Return the arguments for the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the settings from the command line."""
        found = json.loads(text)
        login = found.pop("login")
        tls = login.pop("tls")
        for name in ("pads", "topics"):
            found[name] = tuple(found[name])
        return cls(**found, login=Login(**login, tls=Tls(**tls) if tls else None))
