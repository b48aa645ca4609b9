"""Faults as data, and what performs them by a schedule and heals them.

A performer has the objects to harm: the program of ``barnabas prove`` (``disturbance.py``), the
brokers of a simulation, or brokers and clients as processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import NamedTuple, Protocol, TypeAlias

from barnabas.storage.runtime.clock import monotonic, sleep

_INTERVAL_S = 0.05
_DELAYED = 2.0
"""Duration of a delayed run, as a multiple of the planned one."""

Partition: TypeAlias = tuple[str, int]


class Fault(NamedTuple):
    """A fault, with everything that was drawn for it."""

    kind: str
    seconds: float = 0.0
    """Time until it is healed."""
    brokers: tuple[int, ...] = ()
    """Brokers that it keeps from their work, or whose link it cuts."""
    expires: bool = False
    """Whether the lease of the broker ends at once."""
    client: str = ""
    partition: Partition | None = None
    share: float = 0.0
    """Share of what is harmed, or a number that the executor chooses by."""
    how: str = ""

    def __str__(self) -> str:
        """Return the fields that were drawn."""
        drawn = {k: v for k, v in self._asdict().items() if v != Fault._field_defaults.get(k)}
        kind = drawn.pop("kind")
        return " ".join([kind, *(f"{name}={value}" for name, value in drawn.items())])


class Planned(NamedTuple):
    """A fault with its time from the start of the schedule."""

    at_s: float
    fault: Fault


Cure: TypeAlias = Callable[[], object]


class Performer(Protocol):
    """Performs faults."""

    def begin(self, fault: Fault) -> Cure | None:
        """Perform a fault; return what heals it, unless it heals by itself."""

    def supervise(self, harmed: Collection[int]) -> None:
        """Start ended processes again; raise AssertionError for an end that no fault explains.

        ``harmed``: brokers that a fault keeps from their work.
        """

    def finish(self) -> None:
        """Wait until all faults that heal by themselves are healed."""


class _Pending(NamedTuple):
    due_s: float
    fault: Fault
    cure: Cure


class Healer:
    """Performs faults, several at a time, and heals each in its time."""

    def __init__(
        self,
        performer: Performer,
        chance: Random,
        print_line: Callable[[str], None] = lambda _text: None,
        is_enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """``chance``: order of cures that are due together; ``print_line`` gets each fault.

        ``is_enough`` returns whether the rest of a schedule can be left out.
        """
        self.faults: Counter[str] = Counter()
        self._performer = performer
        self._chance = chance
        self._print_line = print_line
        self._is_enough = is_enough
        self._pending: list[_Pending] = []

    @property
    def harmed(self) -> set[int]:
        """Brokers that a fault keeps from their work."""
        return {number for each in self._pending for number in each.fault.brokers}

    def follow(self, schedule: Iterable[Planned], duration_s: float) -> None:
        """Perform the faults of a schedule, then heal everything.

        A fault that takes long, as the start of a broker does, delays the later ones, which keep
        their distances. A run that takes twice its duration leaves out the rest of the schedule.
        """
        now_s = monotonic()
        until_s, last_s = now_s + _DELAYED * duration_s, 0.0
        is_interrupted = False
        try:
            for at_s, fault in schedule:
                self._wait_until(min(monotonic() + at_s - last_s, until_s))
                if monotonic() >= until_s or self._is_enough():
                    break
                last_s = at_s
                self._perform(fault)
            self._wait_until(min(monotonic() + duration_s - last_s, until_s))
        except KeyboardInterrupt:  # Everything ends: nothing is worth its healing.
            is_interrupted = True
            raise
        finally:
            if not is_interrupted:
                self._heal_all()
        self._performer.supervise(self.harmed)

    def _perform(self, fault: Fault) -> None:
        self._print_line(f"  {fault}")
        self.faults[fault.kind] += 1
        cure = self._performer.begin(fault)
        if cure is not None:
            self._pending.append(_Pending(monotonic() + fault.seconds, fault, cure))
        self._performer.supervise(self.harmed)

    def _heal_all(self) -> None:
        self._heal(float("inf"))
        self._performer.finish()

    def _wait_until(self, at_s: float) -> None:
        """Wait, and heal what is due meanwhile."""
        while (now_s := monotonic()) < at_s and not self._is_enough():
            self._heal(now_s)
            self._performer.supervise(self.harmed)
            due_s = min((each.due_s for each in self._pending), default=at_s)
            sleep(min(_INTERVAL_S, max(0.0, min(due_s, at_s) - monotonic())))
        self._heal(monotonic())

    def _heal(self, now_s: float) -> None:
        due = [each for each in self._pending if each.due_s <= now_s]
        self._pending = [each for each in self._pending if each.due_s > now_s]
        # In an order of their own: a link may be mended before or after a broker is back.
        self._chance.shuffle(due)
        for each in due:
            each.cure()
