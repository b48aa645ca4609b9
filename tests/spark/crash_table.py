"""The rows of the crash tables, and how each is played: all on one Spark driver, or on two."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import create
from tests.interop.transactional import committed_offset
from tests.spark.harness import SparkDriver
from tests.spark.job import ALL_TABLES, DATA_SOURCE, SINGLE, TWO_PHASE, Job
from tests.spark.judge import PARTITIONS, feed, judge, open_transactions, until
from tests.spark.stateful import (
    AGGREGATION,
    AGGREGATION_APPEND,
    DROP_DUPLICATES,
    JOIN,
    TRANSFORM_WITH_STATE,
)
from tests.spark.tables import judge_table

BATCH = 200
RECORDS = 3 * BATCH
"""One batch is written before the crash, one in it, one after it."""
TRANSACTION_TIMEOUT_MS = 60_000
"""Long enough for a batch on a busy machine."""

SINGLE_PLACES = ("P1-fenced", "P1-middle", "P1-before-end", "P1-after-end")
TWO_PHASE_PLACES = (
    *("W1-middle", "W1", "C1", "C2-middle", "C3", "C4-before", "C4-after", "C5-middle"),
    "C5-after",
)
AT_A_START = ("C1", "C2-middle")
# The data source's worker keeps its decider between batches and does not fence again: there these
# are played by tests/interop/sink_cores.
DATA_SOURCE_PLACES = tuple(place for place in TWO_PHASE_PLACES if place not in AT_A_START)
PLACES = {SINGLE: SINGLE_PLACES, TWO_PHASE: TWO_PHASE_PLACES, DATA_SOURCE: DATA_SOURCE_PLACES}
STATEFUL = {
    SINGLE: (AGGREGATION, DROP_DUPLICATES, JOIN, TRANSFORM_WITH_STATE),
    TWO_PHASE: (AGGREGATION, DROP_DUPLICATES, JOIN, TRANSFORM_WITH_STATE),
    DATA_SOURCE: (AGGREGATION_APPEND, DROP_DUPLICATES, JOIN, TRANSFORM_WITH_STATE),
}
# With a table, what comes before and after it; the rest is as without one.
AT_A_TABLE = {
    "P1-parquet": ("T-begun", "T-aside", "T-written", "P1-before-end", "P1-after-end"),
    "P2-parquet": ("T-begun", "T-aside", "T-written", "W1", "C3", "C4-before", "C4-after"),
    "P1-delta": ("T-begun", "T-written", "P1-before-end", "P1-after-end"),
    "P2-delta": ("T-begun", "T-written", "W1", "C3", "C4-before", "C4-after", "C5-after"),
    "P1-iceberg": ("T-begun", "T-aside", "T-written", "P1-before-end", "P1-after-end"),
    "P2-iceberg": ("T-begun", "T-aside", "T-written", "W1", "C3", "C4-before", "C4-after"),
}


@dataclass(frozen=True)
class Row:
    """A sink at a place where something happens to it."""

    sink: str
    place: str
    loses_checkpoint: bool = False
    operator: str = ""
    """The stateful operator of its query; empty for a query without state."""
    state_format: int = 1

    def __str__(self) -> str:
        state = f"-{self.operator}-{self.state_format}" * bool(self.operator)
        lost = "-without-checkpoint" * self.loses_checkpoint
        return f"{self.sink}{state}-at-{self.place}{lost}"


class Play:
    """One row on a broker: its query, started in one driver, continued in another or the same."""

    def __init__(self, row: Row, what: str, broker: BrokerProcess, directory: Path) -> None:
        self.row = row
        self._broker = broker
        name = f"{what}-{row}"
        self.job = Job(
            broker.bootstrap_servers,
            row.sink,
            name,
            str(directory / name),
            per_trigger=BATCH,
            operator=row.operator,
            state_format=row.state_format,
        )
        # A stateful query has its first results in its second batch, and C2 commits again what the
        # batch before has listed.
        self._before = 2 * BATCH if row.operator else BATCH
        self._records = self._before + 2 * BATCH
        feed(self.job, range(self._before))

    def to_the_place(self, driver: SparkDriver, **options: str) -> None:
        """Write all input, add more, and pause at the place in the next batch."""
        self._first_batches(driver)
        self.job = replace(self.job, options=options)
        driver.begin_until(self.job, self.row.place)

    def to_the_end(self, driver: SparkDriver, effect: str) -> str | None:
        """Write all input, have the effect in the next batch, and return the query's error."""
        self._first_batches(driver)
        driver.arm(self.row.place, effect)
        driver.begin(self.job)
        error = driver.end(self.job)
        assert not (driver.failpoints / self.row.place).exists(), "the place was not reached"
        return error

    def _first_batches(self, driver: SparkDriver) -> None:
        driver.run(self.job)
        feed(self.job, range(self._before, self._records))

    def go_on(self, driver: SparkDriver) -> None:
        """Run the query, which starts again from its checkpoint or its group, and judge."""
        if self.row.loses_checkpoint:
            self._lose_checkpoint()
        driver.run(self.job)
        self.judge()

    def one_more_batch(self, driver: SparkDriver) -> None:
        """Run the query once more: it clears up what came too late for the batch before."""
        feed(self.job, range(self._records, self._records + BATCH))
        self._records += BATCH
        driver.run(self.job)
        self.judge()

    def judge(self, records: int | None = None) -> None:
        """Demand every result of the records once; by default of all that were fed."""
        records = self._records if records is None else records
        judge([self._broker], self.job, records)
        if self.job.sink in ALL_TABLES:
            judge_table(self.job, records)

    def _lose_checkpoint(self) -> None:
        shutil.rmtree(self.job.checkpoint)
        offsets = {
            str(partition): committed_offset(
                self.job.servers, self.job.group, self.job.input, partition
            )
            for partition in range(PARTITIONS)
        }
        starting = json.dumps({self.job.input: offsets})
        options = {**self.job.options, "newQuery": "true"}
        self.job = replace(self.job, starting_offsets=starting, options=options)


def kill_driver(old: SparkDriver, new: SparkDriver, plays: list[Play]) -> None:
    """Bring all queries to their places, kill the driver of them all, continue in another."""
    for play in plays:
        play.to_the_place(old)
    old.kill()
    for_each(plays, lambda play: play.go_on(new))


def overtake(old: SparkDriver, new: SparkDriver, plays: list[Play]) -> None:
    """Run the rest of the paused driver's work in another driver; the paused one must give up."""
    for play in plays:
        play.to_the_place(old)

    def one(play: Play) -> None:
        new.run(play.job)
        old.release(play.job)
        assert old.end(play.job) is not None, "the old driver went on as if nothing had happened"
        play.judge()

    for_each(plays, one)


@contextmanager
def lose_broker(broker: BrokerProcess, driver: SparkDriver, plays: list[Play]) -> Iterator[None]:
    """Kill the broker under paused queries for longer than transactions may last.

    The block runs during the outage. A transaction that no sink has pinned times out.
    """
    for play in plays:
        play.to_the_place(driver, transactionTimeoutMs=str(TRANSACTION_TIMEOUT_MS))
    ordinary = f"ordinary-{plays[0].job.name}"
    with TransactionClient(broker) as client:
        create(broker.bootstrap_servers, ordinary, partitions=1)
        client.begin(ordinary, ordinary, 0, timeout_ms=TRANSACTION_TIMEOUT_MS)
    broker.kill()
    over_s = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
    yield
    time.sleep(max(0.0, over_s - time.monotonic()))
    broker.restart()
    until(lambda: open_transactions(broker, ordinary), [], "it does not time out")

    def one(play: Play) -> None:
        driver.release(play.job)
        driver.end(play.job)
        play.go_on(driver)

    for_each(plays, one)


def raise_in(driver: SparkDriver, play: Play) -> None:
    """Make the sink raise on the driver; Spark ends the query, and the test restarts it."""
    error = play.to_the_end(driver, "raise")
    assert error is not None
    assert play.row.place in error
    play.go_on(driver)


def kill_worker(driver: SparkDriver, play: Play) -> None:
    """Kill a Python worker: Spark tries the task again, what it had opened before is swept."""
    error = play.to_the_end(driver, "kill")
    assert error is None, error
    play.judge()


def kill_executors(driver: SparkDriver, play: Play) -> None:
    """Kill all executors at once: Spark starts others and tries their tasks again."""
    play.to_the_place(driver)
    for pid in driver.executors():
        os.kill(pid, signal.SIGKILL)
    driver.release(play.job)
    driver.finish(play.job)
    play.one_more_batch(driver)


def speculate(driver: SparkDriver, play: Play) -> None:
    """Pause a task until Spark has a copy of it write the batch, then continue it."""
    play.to_the_place(driver)
    driver.finish(play.job)
    driver.release(play.job)
    play.one_more_batch(driver)


def stop_query(driver: SparkDriver, play: Play) -> None:
    """Stop a query and leave a task: a zombie that continues after others wrote its batch."""
    play.to_the_place(driver)
    driver.stop(play.job)
    driver.end(play.job)
    driver.run(play.job)
    driver.release(play.job)
    play.one_more_batch(driver)


def for_each(plays: list[Play], do: Callable[[Play], None]) -> None:
    """Do something with all rows, also when it goes wrong with one, and say with which."""
    wrong = {}
    for play in plays:
        try:
            do(play)
        except Exception as error:  # noqa: BLE001 - any error is a finding
            wrong[play.job.name] = error
    assert not wrong, "\n".join(f"{name}: {error!r}" for name, error in wrong.items())
