"""Whose turn it is: the commands for each key, in order.

What is decided for one key waits in the key's lane for what was decided before it. Commands that do
not read what others like them write (``shares_lane``) need not wait for each other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.coordination.coordinator_log import Admit
    from barnabas.broker.coordination.timers import Expiry

Respond = Callable[[Any], object]
Refuse = Callable[[ErrorCode], Any]


class Command(Protocol):
    """What has to be known of a command here."""

    @property
    def shares_lane(self) -> bool:
        """Whether it may be under way beside others of its key that share the lane."""


@dataclass(slots=True, eq=False)
class Submission:
    """A command, with all that it needs beside its decision."""

    key: str
    command: Command
    respond: Respond
    """Gets the response, once."""
    refuse: Refuse | None = None
    """Makes the response to an error of the log; None: a timer's command, which has no client."""
    ticket: int | None = None
    """What the answer is parked under, if a later decision gives it."""
    admit: Admit | None = None
    expiry: Expiry | None = None
    """Of the timer whose command it is."""


@dataclass(slots=True, eq=False)
class Lane:
    """What is under way for one key."""

    in_flight: int = 0
    shared: bool = True
    """Whether all that is in flight may share the lane."""
    waiting: deque[Submission] = field(default_factory=deque)

    def may_join(self, command: Command) -> bool:
        """Whether a command may be under way beside what is."""
        return not self.in_flight or (self.shared and command.shares_lane)


class Lanes:
    """The lanes of the keys for which something is under way."""

    def __init__(self) -> None:
        self._lanes: dict[str, Lane] = {}

    def __len__(self) -> int:
        """How many keys have one."""
        return len(self._lanes)

    def to_wait_in(self, key: str, command: Command) -> Lane | None:
        """The lane that a command has to wait in; None if nothing for its key is ahead of it."""
        lane = self._lanes.get(key)
        if lane is None or not (lane.waiting or not lane.may_join(command)):
            return None
        return lane

    def enter(self, key: str, command: Command) -> Lane:
        """Make it known to those who come after it that a command is in flight."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane()
        lane.in_flight += 1
        lane.shared = lane.shared and command.shares_lane
        return lane

    def next(self, key: str, lane: Lane) -> Submission | None:
        """Take out what may run now; None if nothing may. A lane that is empty goes."""
        if not lane.in_flight:
            lane.shared = True
        if lane.waiting:
            return lane.waiting.popleft() if lane.may_join(lane.waiting[0].command) else None
        if not lane.in_flight and self._lanes.get(key) is lane:
            del self._lanes[key]
        return None

    def drop(self, is_lost: Callable[[str], bool]) -> list[Submission]:
        """Drop the lanes of keys that are lost; returns what waited in them."""
        waiting: list[Submission] = []
        for key in [key for key in self._lanes if is_lost(key)]:
            lane = self._lanes.pop(key)
            waiting += lane.waiting
            lane.waiting.clear()
        return waiting
