"""The most telling rows of the crash tables; full_crash_table.py has all of them.

Spark takes long to start, so one driver has many queries: each is brought to its place and pauses
there, then the driver is killed for all of them, and another one continues them.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.products import for_the_night
from tests.spark.cluster import SPECULATION, spark_cluster
from tests.spark.crash_table import (
    Play,
    Row,
    kill_driver,
    kill_worker,
    lose_broker,
    overtake,
    raise_in,
    speculate,
    stop_query,
)
from tests.spark.harness import SparkDriver
from tests.spark.job import DATA_SOURCE, SINGLE, TWO_PHASE
from tests.spark.stateful import AGGREGATION, DROP_DUPLICATES, JOIN, TRANSFORM_WITH_STATE

pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]


class Rows(NamedTuple):
    """The rows that two drivers play together, since a driver takes long to start."""

    kills: tuple[Row, ...]
    overtaken: tuple[Row, ...]
    lost_brokers: tuple[Row, ...] = ()
    """Each costs the minute after which a transaction that no sink has pinned times out."""
    kills_on_kafka: tuple[Row, ...] = ()


FIRST = Rows(
    kills=(
        Row(SINGLE, "P1-before-end"),
        Row(TWO_PHASE, "C4-after", loses_checkpoint=True),
        Row(DATA_SOURCE, "C5-middle", operator=DROP_DUPLICATES, state_format=2),
        Row("P2-parquet", "T-written"),
    ),
    overtaken=(Row(DATA_SOURCE, "C4-after"),),
)
MORE = Rows(
    kills=(
        Row(DATA_SOURCE, "W1"),
        Row(TWO_PHASE, "C3", operator=AGGREGATION, state_format=1),
        Row("P1-parquet", "T-aside"),
        Row(SINGLE, "P1-after-end"),
        Row(TWO_PHASE, "C3"),
        Row(DATA_SOURCE, "C5-middle"),
        Row(TWO_PHASE, "C4-after", operator=AGGREGATION, state_format=1),
        Row(TWO_PHASE, "C4-after", operator=JOIN, state_format=2),
        Row(SINGLE, "P1-after-end", operator=AGGREGATION, state_format=2),
        Row(SINGLE, "P1-after-end", operator=TRANSFORM_WITH_STATE, state_format=1),
        Row(TWO_PHASE, "C5-after", operator=TRANSFORM_WITH_STATE, state_format=2),
        Row(TWO_PHASE, "C3", operator=DROP_DUPLICATES, state_format=1),
        # The table has the rows already, and its function does not evaluate them again.
        Row("P2-parquet", "T-written", operator=AGGREGATION, state_format=2),
    ),
    overtaken=(
        Row(SINGLE, "P1-before-end"),
        Row(TWO_PHASE, "C4-before"),
        Row("P2-parquet", "T-begun"),
    ),
    lost_brokers=(
        Row(SINGLE, "P1-before-end"),
        Row(TWO_PHASE, "C4-after"),
        Row(DATA_SOURCE, "C4-after"),
    ),
    kills_on_kafka=(Row(SINGLE, "P1-before-end"), Row(SINGLE, "P1-after-end")),
)
RAISING = (
    Row(SINGLE, "P1-after-end"),
    Row(TWO_PHASE, "C4-after"),
    Row(DATA_SOURCE, "C5-middle"),
)
KILLED_WORKERS = (
    Row(TWO_PHASE, "W1-middle"),
    Row(DATA_SOURCE, "W1"),
)
STOPPED = (
    Row(TWO_PHASE, "W1"),
    Row(DATA_SOURCE, "W1-middle"),
)
COPIED = Row(DATA_SOURCE, "W1")


@for_the_night(beside="tests/interop/sink_cores/test_crashes.py::test_a_crash_at_every_step")
@pytest.mark.parametrize(
    "rows",
    [FIRST, MORE],
    ids=["first", "more"],
)
def test_overtaken_and_dead_drivers_and_a_lost_broker_lose_no_record(
    rows, barnabas, driver, request, tmp_path
):
    with SparkDriver(tmp_path / "old") as old, ExitStack() as unavailable:
        if rows.lost_brokers:
            mortal = request.getfixturevalue("mortal")
            lost = [Play(row, "lost", mortal, tmp_path) for row in rows.lost_brokers]
            unavailable.enter_context(lose_broker(mortal, driver, lost))
        overtaken = [Play(row, "overtaken", barnabas, tmp_path) for row in rows.overtaken]
        overtake(old, driver, overtaken)
        plays = [Play(row, "killed", barnabas, tmp_path) for row in rows.kills]
        if rows.kills_on_kafka:
            kafka = request.getfixturevalue("kafka")
            plays += [Play(row, "killed-on-kafka", kafka, tmp_path) for row in rows.kills_on_kafka]
        kill_driver(old, driver, plays)


@for_the_night(beside="tests/interop/sink_cores/test_crashes.py::test_a_crash_at_every_step")
@pytest.mark.parametrize("row", RAISING, ids=str)
def test_a_commit_raises(row, barnabas, driver, tmp_path):
    raise_in(driver, Play(row, "raising", barnabas, tmp_path))


@for_the_night(
    beside="tests/interop/sink_cores/test_crashes.py"
    "::test_losing_and_zombie_tasks_are_invisible_and_block_no_reader"
)
@pytest.mark.parametrize("row", KILLED_WORKERS, ids=str)
def test_a_python_worker_dies(row, barnabas, driver, tmp_path):
    kill_worker(driver, Play(row, "worker", barnabas, tmp_path))


@for_the_night(
    beside="tests/interop/sink_cores/test_crashes.py"
    "::test_a_driver_that_comes_too_late_leaves_nothing_open"
)
@pytest.mark.parametrize("row", STOPPED, ids=str)
def test_a_query_is_stopped_and_leaves_a_task_behind(row, barnabas, driver, tmp_path):
    stop_query(driver, Play(row, "stopped", barnabas, tmp_path))


@for_the_night(
    beside="tests/interop/sink_cores/test_crashes.py"
    "::test_losing_and_zombie_tasks_are_invisible_and_block_no_reader"
)
def test_a_task_has_a_copy(barnabas, tmp_path):
    with (
        spark_cluster(tmp_path / "cluster") as cluster,
        SparkDriver(tmp_path / "driver", cluster.master, **SPECULATION) as driver,
    ):
        speculate(driver, Play(COPIED, "copied", barnabas, tmp_path))
