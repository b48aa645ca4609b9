"""Batches that were appended and will never be durable, for the requests that wait for them.

In a cluster another place decides whether a flush is committed, all or nothing. No consumer has
seen what is refused. Each log with a refused batch, or with one appended after it, is closed: its
records below its high watermark are durable, those from there on are not.
"""

from collections.abc import Iterable
from typing import Protocol


class ClosedLog(Protocol):
    """Parts of a closed log that waiters use."""

    topic: str
    partition: int
    high_watermark: int

    @property
    def topic_id(self) -> bytes:
        """Topic ID, 16 bytes."""


class Refusal:
    """The durable end of each log with refused batches."""

    __slots__ = ("_ends",)

    def __init__(self, closed: Iterable[ClosedLog]) -> None:
        self._ends: dict[tuple[str | bytes, int], int] = {}
        for log in closed:
            self._note((log.topic_id, log.partition), log.high_watermark)
            self._note((log.topic, log.partition), log.high_watermark)

    def _note(self, key: tuple[str | bytes, int], end: int) -> None:
        """Record an end; for two topics of one name the lower end counts, which is safe."""
        self._ends[key] = min(end, self._ends.get(key, end))

    def takes_back(self, topic: str | bytes, partition: int, offset: int) -> bool:
        """Return whether a batch at ``offset`` is not durable; ``topic`` is its name or ID."""
        end = self._ends.get((topic, partition))
        return end is not None and offset >= end
