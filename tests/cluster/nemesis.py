"""Faults of a cluster in a World: brokers die, are paused, are cut off; partitions move.

Every fault has an end, drawn with it, and faults overlap: a cut link may be restored before or
after a broker that was killed meanwhile has returned. One broker at least always works.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from random import Random
from typing import NamedTuple

from barnabas.broker.cli.proving.faults import Cure, Fault
from barnabas.storage.runtime.clock import sleep
from barnabas.testing import Cluster
from tests.history.model import Partition
from tests.workload.nemesis import Nemesis

LONGEST_DEAFNESS_S = 0.1
WEIGHTS = {
    "kill": 1,
    "stop": 1,
    "pause": 1,
    "overtake": 1,
    "expire": 1,
    "cut": 1,
    "cut from store": 1,
    "move": 3,
}
EXPIRES = {"kill": 0.8, "pause": 0.7, "overtake": 1, "cut from store": 0.5}
"""Shares of faults that end the lease at once."""


class Pace(NamedTuple):
    """Durations of faults, in seconds."""

    longest_harm_s: float = 0.6
    between_harms_s: float = 0.15
    """The longest time from one fault to the next."""
    between_requests_s: float = 0.0
    """The longest rest of a client between two of its operations."""
    assignment_interval_ms: int = 1000
    """The shortest time between two assignments of a group, as in Kafka by default."""


HURRIED = Pace(assignment_interval_ms=0)
"""Members stay in their group for milliseconds: with a longer interval they would own nothing."""
STEADY = Pace(longest_harm_s=15, between_harms_s=5, between_requests_s=2)
"""Faults outlast a lease of 10 s now and then."""


class ClusterFaults:
    """Performs faults on the brokers of a cluster, and moves its partitions."""

    def __init__(
        self,
        cluster: Cluster,
        partitions: Sequence[Partition],
        pace: Pace,
        look: Callable[[], None],
    ) -> None:
        """``look`` is called again and again, and raises what is wrong with clients."""
        self._cluster = cluster
        self._partitions = partitions
        self._pace = pace
        self._check = look

    def draw(self, kind: str, chance: Random, harmed: Collection[int]) -> Fault | None:
        running = self._cluster.running
        if kind == "move":
            place = chance.choice(self._partitions)
            return Fault(kind, brokers=(chance.choice(running),), partition=place)
        if kind == "expire":
            return Fault(kind, brokers=(chance.choice(running),))
        seconds = chance.random() * self._pace.longest_harm_s
        if kind == "cut":
            ends = chance.sample(range(len(self._cluster.brokers)), 2)
            return Fault(kind, seconds, how=f"{ends[0]}-{ends[1]}")
        left = [each for each in running if each not in harmed]
        if len(left) < 2:
            return None
        victim, draw = chance.choice(left), chance.random()
        expires = draw < EXPIRES.get(kind, 0)
        return Fault(kind, seconds, (victim,), expires, share=chance.random())

    def begin(self, fault: Fault) -> Cure | None:
        cluster, expire = self._cluster, fault.expires
        if fault.kind == "cut":
            one, other = map(int, fault.how.split("-"))
            cluster.cut(one, other)
            return lambda: cluster.mend(one, other)
        (broker,) = fault.brokers
        match fault.kind:
            case "kill":
                cluster.kill(broker, expire=expire)
                return lambda: cluster.restart(broker)
            case "stop":
                cluster.stop(broker)
                return lambda: cluster.restart(broker)
            case "pause":
                cluster.pause(broker, expire=expire)
                return lambda: cluster.resume(broker)
            case "overtake":
                # It is replaced while it is paused, and continues before it can notice.
                cluster.pause(broker, expire=expire)
                cluster.cut_from_store(broker)
                return lambda: self._let_hear_late(broker, fault.share * LONGEST_DEAFNESS_S)
            case "expire":
                cluster.expire(broker)
            case "cut from store":
                cluster.cut_from_store(broker, expire=expire)
                return lambda: cluster.mend_to_store(broker)
            case "move":
                # A wish: the partition may or may not move.
                assert fault.partition is not None
                cluster.want(*fault.partition, broker)
        return None

    def supervise(self, _harmed: Collection[int]) -> None:
        self._check()

    def finish(self) -> None:
        """Faults without an end of their own."""

    def _let_hear_late(self, broker: int, after_s: float) -> None:
        self._cluster.resume(broker)
        sleep(after_s)
        self._cluster.mend_to_store(broker)


def nemesis_of(
    cluster: Cluster,
    seed: int,
    partitions: Sequence[Partition],
    pace: Pace,
    look: Callable[[], None],
) -> Nemesis:
    """Return a nemesis of a cluster; everything that it draws comes from its seed."""
    faults = ClusterFaults(cluster, partitions, pace, look)
    chance = Random(f"{seed} nemesis")
    return Nemesis(faults, WEIGHTS, chance, (0, pace.between_harms_s))
