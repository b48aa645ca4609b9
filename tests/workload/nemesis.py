"""Faults that are drawn one after the other, as long as a test wants: each of what there is then.

``barnabas prove`` performs and heals them, and itself follows a schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import Protocol

from barnabas.broker.cli.proving.faults import Fault, Healer, Performer
from barnabas.storage.runtime.clock import monotonic


class Executor(Performer, Protocol):
    """Draws faults of what there is, and performs them."""

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        """Draw a fault, or return None if nothing exists now that it could harm."""


class Nemesis(Healer):
    """Draws one fault after the other and performs it; heals everything at the end."""

    def __init__(
        self,
        executor: Executor,
        weights: Mapping[str, float],
        chance: Random,
        rest_s: tuple[float, float],
        print_line: Callable[[str], None] = lambda _text: None,
    ) -> None:
        """``weights``: how often each kind of fault happens; ``rest_s``: time between two."""
        super().__init__(executor, chance, print_line)
        self._executor = executor
        self._weights = dict(weights)
        self._rest_s = rest_s

    def run(self, duration_s: float) -> None:
        """Make faults until the time is up, then heal everything."""
        until_s = monotonic() + duration_s
        try:
            while monotonic() < until_s:
                self._wait_until(monotonic() + self._chance.uniform(*self._rest_s))
                (kind,) = self._chance.choices([*self._weights], [*self._weights.values()])
                fault = self._executor.draw(kind, self._chance, self.harmed)
                if fault is None:
                    self._print_line(f"  {kind}: not now")
                    self._executor.supervise(self.harmed)
                else:
                    self._perform(fault)
        finally:
            self._heal_all()
        self._executor.supervise(self.harmed)
