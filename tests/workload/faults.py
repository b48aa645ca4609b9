"""Faults as data, and the nemesis that draws them from a seed and has an executor perform them.

An executor knows what there is to harm: the brokers of a World (``tests/cluster/nemesis.py``), a
broker as a process and its clients (``tests/torture/nemesis.py``), or a cluster of processes on
PostgreSQL (``tests/postgresql/cluster_nemesis.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import NamedTuple, Protocol

from barnabas.storage.runtime.clock import monotonic, sleep
from tests.history.model import Partition

LOOK_S = 0.05


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


Cure = Callable[[], object]


class Executor(Protocol):
    """Draws faults of what there is, and performs them."""

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        """Draw a fault; None if there is nothing now that it could harm.

        ``harmed``: brokers that a fault keeps from their work.
        """

    def begin(self, fault: Fault) -> Cure | None:
        """Perform a fault; return what heals it, unless it heals by itself."""

    def supervise(self, harmed: Collection[int]) -> None:
        """Start again what has to run; raise AssertionError for what must not have ended."""

    def finish(self) -> None:
        """Wait until all faults that heal by themselves are healed."""


class _Pending(NamedTuple):
    due_s: float
    fault: Fault
    cure: Cure


class Nemesis:
    """Performs one fault after the other, several at a time; heals everything at the end."""

    def __init__(
        self,
        executor: Executor,
        weights: Mapping[str, float],
        chance: Random,
        rest_s: tuple[float, float],
        say: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """``weights``: how often each kind of fault happens; ``rest_s``: time between two."""
        self.faults: Counter[str] = Counter()
        self._executor = executor
        self._weights = dict(weights)
        self._chance = chance
        self._rest_s = rest_s
        self._say = say
        self._pending: list[_Pending] = []

    @property
    def harmed(self) -> set[int]:
        """Brokers that a fault keeps from their work."""
        return {number for each in self._pending for number in each.fault.brokers}

    def run(self, duration_s: float) -> None:
        """Make faults until the time is up, then heal everything."""
        until_s = monotonic() + duration_s
        try:
            while monotonic() < until_s:
                self._wait_until(monotonic() + self._chance.uniform(*self._rest_s))
                (kind,) = self._chance.choices([*self._weights], [*self._weights.values()])
                self._make(kind)
                self._executor.supervise(self.harmed)
        finally:
            self._heal(float("inf"))
            self._executor.finish()
        self._executor.supervise(self.harmed)

    def _make(self, kind: str) -> None:
        fault = self._executor.draw(kind, self._chance, self.harmed)
        if fault is None:
            self._say(f"  {kind}: not now")
            return
        self._say(f"  {fault}")
        self.faults[kind] += 1
        cure = self._executor.begin(fault)
        if cure is not None:
            self._pending.append(_Pending(monotonic() + fault.seconds, fault, cure))

    def _wait_until(self, at_s: float) -> None:
        """Wait, and heal what is due meanwhile."""
        while (now_s := monotonic()) < at_s:
            self._heal(now_s)
            self._executor.supervise(self.harmed)
            due_s = min((each.due_s for each in self._pending), default=at_s)
            sleep(min(LOOK_S, max(0.0, min(due_s, at_s) - monotonic())))
        self._heal(monotonic())

    def _heal(self, now_s: float) -> None:
        due = [each for each in self._pending if each.due_s <= now_s]
        self._pending = [each for each in self._pending if each.due_s > now_s]
        # In an order of their own: a link may be mended before or after a broker is back.
        self._chance.shuffle(due)
        for each in due:
            each.cure()
