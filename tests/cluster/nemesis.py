"""What happens to a cluster at random: brokers die, stand still, are cut off, partitions move.

Every harm has an end, drawn with it, and harms overlap: a link that is cut may be mended before or
after the broker that was killed meanwhile has come back. One broker at least always works.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from barnabas.storage.runtime.clock import monotonic, sleep
from barnabas.testing import Cluster

LONGEST_DEAFNESS_S = 0.1


class Pace(NamedTuple):
    """How quickly things happen, in seconds."""

    longest_harm_s: float = 0.6
    between_harms_s: float = 0.15
    """The longest time from one harm to the next."""
    between_requests_s: float = 0.0
    """The longest rest of a client between two of its operations."""


HURRIED = Pace()
STEADY = Pace(longest_harm_s=15, between_harms_s=5, between_requests_s=1)
"""Harms outlast a lease of 10 s now and then."""


class Cure(NamedTuple):
    """What ends a harm, and when."""

    due_s: float
    broker: int | None
    """Whom it keeps from its work; None: nobody."""
    do: Callable[[], object]


class Nemesis:
    """Harms a cluster, and heals it; everything it draws comes from its seed."""

    def __init__(
        self,
        cluster: Cluster,
        seed: int,
        partitions: list[tuple[str, int]],
        pace: Pace = HURRIED,
    ) -> None:
        """``partitions`` are moved."""
        self.cluster = cluster
        self.pace = pace
        self.random = Random(f"{seed} nemesis")
        self.partitions = partitions
        self.done: Counter[str] = Counter()
        self._cures: list[Cure] = []
        self._harms: list[Callable[[], None]] = [
            self.kill,
            self.stop,
            self.pause,
            self.overtake,
            self.expire,
            self.cut,
            self.cut_from_store,
            self.move,
            self.move,
            self.move,
        ]

    def run(self, seconds: float, look: Callable[[], None]) -> None:
        """Harm it for a while; ``look`` is called again and again. Everything is healed then."""
        until_s = monotonic() + seconds
        while monotonic() < until_s:
            self._cure(monotonic())
            harm = self.random.choice(self._harms)
            harm()
            look()
            sleep(self.random.random() * self.pace.between_harms_s)
        self.heal()

    def heal(self) -> None:
        """End all harms, in an order of its own."""
        self.random.shuffle(self._cures)
        self._cure(float("inf"))

    # ----------------------------------------------------------------------------------- harms

    def kill(self) -> None:
        if (victim := self._victim()) is not None:
            self.cluster.kill(victim, expire=self.random.random() < 0.8)
            self._harmed("kill", victim, lambda: self.cluster.restart(victim))

    def stop(self) -> None:
        if (victim := self._victim()) is not None:
            self.cluster.stop(victim)
            self._harmed("stop", victim, lambda: self.cluster.restart(victim))

    def pause(self) -> None:
        if (victim := self._victim()) is not None:
            self.cluster.pause(victim, expire=self.random.random() < 0.7)
            self._harmed("pause", victim, lambda: self.cluster.resume(victim))

    def overtake(self) -> None:
        """Somebody stands still, is overtaken, and goes on before he can hear of it."""
        if (victim := self._victim()) is not None:
            cluster, deaf_s = self.cluster, self.random.random() * LONGEST_DEAFNESS_S

            def cure() -> None:
                cluster.resume(victim)
                sleep(deaf_s)
                cluster.mend_to_store(victim)

            cluster.pause(victim, expire=True)
            cluster.cut_from_store(victim)
            self._harmed("overtake", victim, cure)

    def expire(self) -> None:
        """Somebody's lease runs out who goes on."""
        running = self.cluster.running
        self.cluster.expire(self.random.choice(running))
        self.done["expire"] += 1

    def cut_from_store(self) -> None:
        if (victim := self._victim()) is not None:
            self.cluster.cut_from_store(victim, expire=self.random.random() < 0.5)
            self._harmed("cut from store", victim, lambda: self.cluster.mend_to_store(victim))

    def cut(self) -> None:
        one, other = self.random.sample(range(len(self.cluster.brokers)), 2)
        self.cluster.cut(one, other)
        self._harmed("cut", None, lambda: self.cluster.mend(one, other))

    def move(self) -> None:
        """Somebody is asked for a partition; whether it comes to that is nobody's promise."""
        topic, index = self.random.choice(self.partitions)
        self.cluster.want(topic, index, self.random.choice(self.cluster.running))
        self.done["move"] += 1

    # --------------------------------------------------------------------------------- private

    def _victim(self) -> int | None:
        """Draw who is harmed; None when too few are left."""
        harmed = {cure.broker for cure in self._cures}
        left = [each for each in self.cluster.running if each not in harmed]
        return self.random.choice(left) if len(left) > 1 else None

    def _harmed(self, kind: str, broker: int | None, cure: Callable[[], object]) -> None:
        self.done[kind] += 1
        due_s = monotonic() + self.random.random() * self.pace.longest_harm_s
        self._cures.append(Cure(due_s, broker, cure))

    def _cure(self, now_s: float) -> None:
        due = [each for each in self._cures if each.due_s <= now_s]
        self._cures = [each for each in self._cures if each.due_s > now_s]
        for each in due:
            each.do()
