"""Timeline of a run: events of the program, of the broker and of the faults, with their times."""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from barnabas.storage.runtime.clock import monotonic

EVENTS_MAX: Final = 200_000
"""Events that are kept, the newest ones."""


class Event(NamedTuple):
    """One event; ``subject`` is an instance, or empty for the broker and the command."""

    at_s: float
    subject: str
    text: str


class Timeline:
    """Events in the order in which they were noted, from any thread."""

    def __init__(self) -> None:
        self._begun_s = monotonic()
        self.events: deque[Event] = deque(maxlen=EVENTS_MAX)

    def now_s(self) -> float:
        """Return the seconds since the start of the run."""
        return monotonic() - self._begun_s

    def note(self, subject: str, text: str) -> None:
        """Add an event that happens now."""
        self.events.append(Event(self.now_s(), subject, text))
