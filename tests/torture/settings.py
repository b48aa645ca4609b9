"""What a client is told on its command line, and the topics of all."""

from __future__ import annotations

from dataclasses import dataclass

LEFT, RIGHT, OUT = "left", "right", "out"
PARTITIONS = 3
TOPICS = (LEFT, RIGHT, OUT)
PLACES = [(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
GROUP = "transformers"
TRANSACTION_TIMEOUT_MS = 3000
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
    transactional_id: str = ""
    isolation: str = ""
