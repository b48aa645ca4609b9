"""Latest events of a broker and the users that caused them, in a ring of limited size.

The ring is in memory only, for inspection; logs and the audit log are permanent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

SLOTS: Final = 1000
TEXT_MOST: Final = 256
"""Maximum length of a text; the rest is cut off."""
CHARACTERS_MOST: Final = 64 * 1024
"""Maximum length of all texts together; long texts leave room for fewer events."""


class Event(NamedTuple):
    """Event in a broker."""

    number: int
    """Number of the event, counted since the start."""
    time_ms: int
    kind: str
    words: str
    resource: str
    """Object of the event, as Kind:name, or "" for the broker."""
    user: str
    host: str
    """User and host that caused it, or "" for the broker itself or if unknown."""


class EventRing:
    """Latest events; new ones replace the oldest."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._events: deque[Event] = deque()
        self._characters = 0
        self._number = 0
        self.begun_ms = clock.now_ms()
        self.complete_since_ms = self.begun_ms
        """Time since which no event is missing."""

    def __len__(self) -> int:
        return len(self._events)

    def add_audited(self, event: Mapping[str, object]) -> None:
        """Add a line of the audit log (broker/security/audit.py)."""
        said = {name: str(value) for name, value in event.items()}
        kind = said.pop("event").replace(" ", "_")
        user = said.pop("principal", "") or said.pop("user", "")
        host, resource = said.pop("host", ""), said.pop("resource", "")
        words = ", ".join(f"{name} {value}" for name, value in said.items())
        self.add(kind, words, resource=resource, user=user, host=host)

    def add(
        self,
        kind: str,
        words: str,
        *,
        resource: str = "",
        user: str = "",
        host: str = "",
        time_ms: int | None = None,
    ) -> None:
        """Add an event, at the current time by default."""
        self._number += 1
        event = Event(
            self._number,
            self._clock.now_ms() if time_ms is None else time_ms,
            _cut(kind),
            _cut(words),
            _cut(resource),
            _cut(user),
            _cut(host),
        )
        self._events.append(event)
        self._characters += _size(event)
        while len(self._events) > SLOTS or self._characters > CHARACTERS_MOST:
            gone = self._events.popleft()
            self._characters -= _size(gone)
            self.complete_since_ms = max(self.complete_since_ms, gone.time_ms)

    def newest_first(self) -> Iterator[Event]:
        """Yield the events that existed at the first call, the newest first."""
        yield from reversed(list(self._events))


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MOST else f"{text[:TEXT_MOST]}..."


def _size(event: Event) -> int:
    return sum(map(len, event[2:]))
