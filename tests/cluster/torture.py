"""Torture test: random failures of three brokers in a world, while clients send requests.

The responses to the clients and the final state of the cluster must agree. Each acknowledged record
exists exactly once and in order. Each transaction is complete or has no effect. Committed offsets
never decrease. No transaction stays open. The memory of the coordinators agrees with their logs.

``python -m tests.cluster.torture --seeds 200 --seconds 600`` runs one world for each seed, in a
process of its own.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Queue
from typing import NamedTuple

from barnabas.testing import Cluster, World
from tests.broker.coordinators_inside import check_coordinators
from tests.broker.leadership_inside import check_at_rest, check_leadership
from tests.cluster.nemesis import HURRIED, STEADY, Pace, nemesis_of
from tests.seeds import SEED
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


def survives(seed: int, seconds: float, *, is_hurried: bool) -> bool:
    """Torture a cluster and print the result; return whether everything agreed."""
    # Nearly all objects are the history of this world and live to its end. The search for cycles
    # among them would be a sixth of the work.
    gc.disable()
    started_s, computed_s = time.monotonic(), time.process_time()
    try:
        found = torture(seed, seconds, HURRIED if is_hurried else STEADY)
    except Exception:  # noqa: BLE001  Printed, and counted in the exit code.
        traceback.print_exc()
        print(
            f"failed: python -m tests.cluster.torture --seed {seed} --seconds {seconds:g}"
            f"{' --hurried' if is_hurried else ''}"
        )
        return False
    print(
        f"seed={seed} simulated={found.passed_s:.0f} s "
        f"wall={time.monotonic() - started_s:.1f} s "
        f"cpu={time.process_time() - computed_s:.1f} s "
        f"operations={sum(found.done.values())} digest={found.digest[:16]}",
        flush=True,
    )
    return True


def survives_apart(seed: int, words: list[str]) -> bool:
    """Torture a cluster in a process of its own, on the core of this thread."""
    command = [sys.executable, "-m", "tests.cluster.torture", *words, f"--seed={seed}", "--seeds=1"]
    return subprocess.run(command, check=False).returncode == 0


def stay_on(cores: Queue[int]) -> None:
    """Run this thread, and the processes it starts, on one core.

    The threads of a world take turns; between two cores each turn costs the waking of the other.
    """
    os.sched_setaffinity(0, {cores.get_nowait()})


def main(words: list[str]) -> int:
    """Torture one cluster for each seed; return the number of failed seeds."""
    parser = argparse.ArgumentParser(description="Torture three simulated brokers.")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, one on each core")
    parser.add_argument("--seed", type=int, default=SEED, help="first seed")
    parser.add_argument(
        "--seconds", type=float, default=600, help="simulated seconds for each seed"
    )
    parser.add_argument(
        "--hurried",
        action="store_true",
        help="run short failures (milliseconds) in quick succession",
    )
    options = parser.parse_args(words)
    if options.seeds == 1:
        return int(not survives(options.seed, options.seconds, is_hurried=options.hurried))
    seeds = range(options.seed, options.seed + options.seeds)
    cores: Queue[int] = Queue()
    for core in os.sched_getaffinity(0):
        cores.put(core)
    with ThreadPoolExecutor(cores.qsize(), initializer=stay_on, initargs=(cores,)) as threads:
        survived = threads.map(partial(survives_apart, words=words), seeds)
        failed = [seed for seed, is_well in zip(seeds, survived, strict=True) if not is_well]
    print(f"{len(seeds) - len(failed)} of {len(seeds)} seeds passed; failed: {failed or 'none'}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
