"""What a client is told on its command line, and the topics of all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Self

from tests.counterparts.logins import NOBODY, Login, Tls

LEFT, RIGHT, OUT = "left", "right", "out"
PARTITIONS = 3
TOPICS = (LEFT, RIGHT, OUT)
PLACES = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
GROUP = "transformers"
TRANSACTION_TIMEOUT_MS = 3000
LIBRDKAFKA: dict[str, str | int | float | bool | None] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
    "retry.backoff.ms": 20,
    # When its only broker is gone it would forget the broker and look for it anew; a transaction
    # that is asking for something then waits without end (2.16.0, whose main thread is stuck).
    "metadata.recovery.strategy": "none",
}
FENCED_PAUSE_S = 0.5
HUNG_EXIT_CODE = 4


@dataclass(frozen=True)
class Settings:
    """One client; given as JSON."""

    role: str
    """writer, sender, transformer or reader."""
    library: str
    name: str
    """Of this process; every value that it writes begins with it."""
    servers: str
    journal: str
    seed: int
    consumer: str = ""
    """The library that a transformer reads with."""
    transactional_id: str = ""
    isolation: str = ""
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS
    login: Login = NOBODY

    def as_json(self) -> str:
        """Return what goes on the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what was on the command line."""
        found = json.loads(text)
        login = found.pop("login")
        tls = login.pop("tls")
        return cls(**found, login=Login(**login, tls=Tls(**tls) if tls else None))
