"""States of a partition that this broker can lead, and the state that follows from each event."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class State(Enum):
    """Progress of this broker with one partition."""

    AWAY = auto()
    """Leadership of another broker or of none, as far as this broker knows."""
    READING = auto()
    """Leadership of this broker, which reads the durable part of the log."""
    OPENED = auto()
    """The log takes batches. The coordinator of the partition, if any, does not serve it yet."""
    SERVED = auto()
    DRAINING = auto()
    """The log takes no more batches; its batches in flight become durable or are refused."""


class Event(Enum):
    """Event of one partition."""

    LED_HERE = auto()
    """Leadership of this broker, in a later epoch than before."""
    LED_ELSEWHERE = auto()
    """Another broker or no broker leads the partition, or this broker in another epoch."""
    READ = auto()
    WRITTEN = auto()
    """All batches that were read are in the segments."""
    RELEASED = auto()
    """The partition moves to another broker."""
    DRAINED = auto()
    """All batches that were placed in the log are durable or refused."""
    TAKEN = auto()
    """The store reports another leader, or that the session of this broker has ended."""
    DROPPED = auto()
    """The store of logs forgot the log after a refusal for other partitions, or its files are
    damaged. This broker still leads the partition."""


_LOST: Final = {
    Event.LED_HERE: State.READING,
    Event.LED_ELSEWHERE: State.AWAY,
    Event.TAKEN: State.AWAY,
}
"""Events that end a leadership in every state with one."""
_WITH_LOG: Final = {
    **_LOST,
    Event.RELEASED: State.DRAINING,
    Event.DROPPED: State.READING,
}

AFTER: Final[dict[State, dict[Event, State]]] = {
    State.AWAY: {Event.LED_HERE: State.READING},
    State.READING: {**_LOST, Event.READ: State.OPENED, Event.RELEASED: State.AWAY},
    State.OPENED: {**_WITH_LOG, Event.WRITTEN: State.SERVED},
    State.SERVED: _WITH_LOG,
    State.DRAINING: {**_LOST, Event.DRAINED: State.AWAY, Event.DROPPED: State.AWAY},
}
"""The next state for an event; without an entry the event changes nothing."""

KEEPS_LOG: Final = {
    (State.OPENED, State.SERVED),
    (State.OPENED, State.DRAINING),
    (State.SERVED, State.DRAINING),
}
"""The steps over which a partition keeps its log. With all others it gets one, or loses it."""
COMING: Final = {State.READING, State.OPENED}
"""States in which this broker leads the partition, but does not serve it yet."""
