"""One query over each exactly-once sink, on a cluster whose brokers die one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.counterparts.broker_process import BrokerProcess
from tests.spark.harness import SparkDriver
from tests.spark.job import DATA_SOURCE, SINGLE, TWO_PHASE, Job
from tests.spark.judge import feed, judge
from tests.torture.killer import Killer, RollingRestart
from tests.torture.process_brokers import ProcessBrokers

PLACES = {SINGLE: "P1-before-end", TWO_PHASE: "C4-after", DATA_SOURCE: "W1"}
"""The place where each sink's driver dies: before the decision, after it, before the handover."""
BATCH = 50
ROUND = 2 * BATCH


class Pipelines:
    """Reads, writes and starts again as often as wanted; all records are judged at the end."""

    def __init__(
        self, brokers: Sequence[BrokerProcess], directory: Path, sinks: Iterable[str]
    ) -> None:
        self._brokers = brokers
        self.records = 0
        """The number of records that each query got."""
        servers = ",".join(each.bootstrap_servers for each in brokers)
        self._jobs = [
            Job(servers, sink, f"pipeline-{sink}", str(directory / sink), per_trigger=BATCH)
            for sink in sinks
        ]

    def go_on(self, driver: SparkDriver) -> None:
        """Give each query a few batches more, and wait until they are written."""
        self._feed()
        for job in self._jobs:
            driver.begin(job)
        for job in self._jobs:
            driver.finish(job)

    def kill_within_a_batch(self, driver: SparkDriver) -> None:
        """Kill the driver while each query is in the middle of a batch."""
        self._feed()
        for job in self._jobs:
            driver.begin_until(job, PLACES[job.sink])
        driver.kill()

    def judge(self) -> None:
        """Demand every record once, nothing open, and offsets that agree with the checkpoints."""
        for job in self._jobs:
            judge(self._brokers, job, self.records)

    def _feed(self) -> None:
        for job in self._jobs:
            feed(job, range(self.records, self.records + ROUND))
        self.records += ROUND


def write_while_brokers_die(
    brokers: ProcessBrokers,
    old: SparkDriver,
    new: SparkDriver,
    directory: Path,
    *,
    kills: int,
    sinks: Iterable[str] = PLACES,
) -> str:
    """Kill ``kills`` brokers twice, the first driver in between; restart all; judge.

    Return a summary of the faults and records.
    """
    pipelines = Pipelines(brokers.members, directory, sinks)
    with Killer(brokers) as killer:
        while killer.kills < kills:
            pipelines.go_on(old)
        pipelines.kill_within_a_batch(old)
        killed_before = killer.kills
        while killer.kills < killed_before + kills:
            pipelines.go_on(new)
    with RollingRestart(brokers) as restart:
        while not restart.is_over:
            pipelines.go_on(new)
    pipelines.go_on(new)
    pipelines.judge()
    return f"{pipelines.records} records written once by each sink, {killer.kills} kills"
