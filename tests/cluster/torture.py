"""Torture test: random failures of three brokers in a world, while clients send requests.

The responses to the clients and the final state of the cluster must agree. Each acknowledged record
exists exactly once and in order. Each transaction is complete or has no effect. Committed offsets
never decrease. No transaction stays open. The memory of the coordinators agrees with their logs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.testing import Cluster, World
from tests.broker.coordinators_inside import check_coordinators
from tests.broker.leadership_inside import check_at_rest, check_leadership
from tests.cluster.nemesis import Pace, nemesis_of
from tests.workload.settings import PARTITIONS, PLACES, TOPICS
from tests.workload.simulated import Workload

COMMIT_MS = 6
FIRST_CHECK_AT = 5
"""Number of failures before the memory of the brokers is checked for the first time."""
INTERNAL = [
    (topic, index) for topic in ("__consumer_offsets", "__transaction_state") for index in range(3)
]


class Tortured(NamedTuple):
    """Result of the torture test for one seed."""

    digest: str
    passed_s: float
    """Duration of the world in simulated seconds."""
    harms: Counter[str]
    done: dict[str, int]
    """Number of operations of each client."""


class Inspector:
    """Checks the memory of the brokers, after twice as many failures each time.

    A check reads all logs of the coordinators; this number of checks costs as much as reading them
    once.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._failures = 0
        self._check_at = FIRST_CHECK_AT

    def count_failure(self) -> None:
        """Count a failure, and check the brokers if it is time."""
        self._failures += 1
        if self._failures == self._check_at:
            self._check_at *= 2
            self.check()

    def check(self) -> None:
        """Check all brokers that run."""
        for number in self._cluster.running:
            check_coordinators(self._cluster.brokers[number])
            check_leadership(self._cluster.brokers[number])


def torture(
    seed: int, seconds: float, pace: Pace, config: Mapping[str, str] | None = None
) -> Tortured:
    """Torture a cluster for ``seconds`` of simulated time; raises AssertionError on a failure.

    ``config`` has settings of all brokers.
    """
    with World(seed) as world:
        harms, done = _live(seed, seconds, pace, config)
        passed_s = world.now_s
    # The digest includes the last events of the threads, which end with the world.
    return Tortured(world.digest, passed_s, harms, done)


def _live(
    seed: int, seconds: float, pace: Pace, config: Mapping[str, str] | None
) -> tuple[Counter[str], dict[str, int]]:
    """Run the clients and the failures in a new cluster, then check its history."""
    groups = {"group.consumer.assignment.interval.ms": str(pace.assignment_interval_ms)}
    settings = {**groups, **(config or {})}
    with Cluster(brokers=3, config=settings, commit_ms=COMMIT_MS, seed=seed) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, PARTITIONS)
        with Workload(cluster.bootstrap_servers, seed, pace.between_requests_s) as workload:
            workload.goes_on()
            places = [*PLACES, *INTERNAL]
            inspector = Inspector(cluster)

            def look() -> None:
                workload.raise_errors()
                inspector.count_failure()

            nemesis = nemesis_of(cluster, seed, places, pace, look)
            nemesis.run(seconds)
            print(f"seed={seed} {dict(nemesis.faults)}")
            cluster.wait_until_served()
            workload.goes_on()
            workload.end()
            workload.judge()
            inspector.check()
            check_at_rest(cluster)
            return nemesis.faults, workload.done
