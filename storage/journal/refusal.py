"""What was placed and will never be durable, for those who wait for it.

In a cluster it is decided elsewhere whether a flush is committed, all or nothing. What is refused
was shown to nobody. Each log with something in it, or placed behind it, is closed: what such a log
holds below its high watermark is durable, what lies from there on is not.
"""

from collections.abc import Iterable
from typing import Protocol


class ClosedLog(Protocol):
    """What has to be known of a log that was closed."""

    topic: str
    partition: int
    high_watermark: int

    @property
    def topic_id(self) -> bytes:
        """The topic's id, 16 bytes."""


class Refusal:
    """Up to where each log is durable of which something was refused."""

    __slots__ = ("_ends",)

    def __init__(self, closed: Iterable[ClosedLog]) -> None:
        self._ends: dict[tuple[str | bytes, int], int] = {}
        for log in closed:
            self._note((log.topic_id, log.partition), log.high_watermark)
            self._note((log.topic, log.partition), log.high_watermark)

    def _note(self, key: tuple[str | bytes, int], end: int) -> None:
        """Two topics may have had one name, one after the other: nothing too much is promised."""
        self._ends[key] = min(end, self._ends.get(key, end))

    def takes_back(self, topic: str | bytes, partition: int, offset: int) -> bool:
        """Whether what was placed at ``offset`` is not durable; ``topic`` is its name or its id."""
        end = self._ends.get((topic, partition))
        return end is not None and offset >= end
