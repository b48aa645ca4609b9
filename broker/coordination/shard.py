"""One partition of a coordinator's topic: its log, its state machine, and whose turn it is.

Rules of this file:

* What is decided for one key waits in the key's lane for what was decided before it, in order.
  Commands that do not read what others like them write (``shares_lane``) need not wait for each
  other.
* A marker that ends a transaction over very many offsets is taken in a part at a time. From the
  moment that it is durable until its last part is taken in, no command of the partition runs: who
  hears of the marker and asks then is shown all of it (KAFKA-17507).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Decision, Effect, Now, Record
    from barnabas.storage.partition_log import PartitionLog

Respond = Callable[[Any], object]
Refuse = Callable[[ErrorCode], Any]


class Machine(Protocol):
    """What a coordinator decides for the keys of one partition."""

    def decide(self, command: Any, now: Now) -> Decision:  # noqa: ANN401
        """Judge a command; changes nothing."""

    def apply(self, record: Record, offset: int) -> None:
        """Take in a durable record."""

    def end_transaction(self, producer_id: int, *, commit: bool) -> Iterator[None] | None:
        """Take in the marker that ends a producer's transaction on the partition.

        Returns the steps that are left where that takes long. Nothing is decided before the last
        of them is taken.
        """

    def change(self, change: object) -> None:
        """Take in a volatile change."""

    def begin(self, now: Now) -> tuple[Effect, ...]:
        """What is due after a start."""

    def keys(self) -> list[str]:
        """Every key there is."""


@dataclass(slots=True)
class Waiting:
    """A command in its lane."""

    command: Any
    respond: Respond
    refuse: Refuse | None


@dataclass(slots=True)
class Lane:
    """What is under way for one key."""

    in_flight: int = 0
    shared: bool = True
    """Whether all that is in flight may share the lane."""
    waiting: deque[Waiting] = field(default_factory=deque)

    def may_join(self, command: object) -> bool:
        """Whether a command may be under way beside what is."""
        return not self.in_flight or (self.shared and _shares(command))


class Shard:
    """One partition of the internal topic with its machine."""

    __slots__ = ("endings", "held", "is_gone", "is_loaded", "lanes", "log", "machine")

    def __init__(self, log: PartitionLog, machine: Machine) -> None:
        self.log = log
        self.machine = machine
        self.lanes: dict[str, Lane] = {}
        self.is_loaded = False
        self.is_gone = False
        """Whether the topic was deleted: what is under way comes to nothing."""
        self.endings: deque[Iterator[None]] = deque()
        """Markers that are durable and not taken in yet: nothing is decided before they are."""
        self.held: deque[Callable[[], None]] = deque()
        """What goes on after that, in order."""

    def must_wait(self, key: str, command: object) -> bool:
        """Whether a command for ``key`` would have to wait now."""
        return bool(self.endings) or self.lane_of_waiting(key, command) is not None

    def lane_of_waiting(self, key: str, command: object) -> Lane | None:
        """The lane that a command has to wait in; None if nothing for its key is ahead of it."""
        lane = self.lanes.get(key)
        if lane is None or not (lane.waiting or not lane.may_join(command)):
            return None
        return lane

    def enter_lane(self, key: str, command: object) -> Lane:
        """Let what is ``in_flight`` be known to those who come after it."""
        lane = self.lanes.get(key)
        if lane is None:
            lane = self.lanes[key] = Lane()
        lane.in_flight += 1
        lane.shared = lane.shared and _shares(command)
        return lane

    def release(self) -> None:
        """Let go on what waited until all markers were taken in."""
        held, self.held = self.held, deque()
        for go_on in held:
            go_on()


def _shares(command: object) -> bool:
    return bool(getattr(command, "shares_lane", False))
