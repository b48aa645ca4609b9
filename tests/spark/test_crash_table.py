"""The most telling rows of the crash tables; full_crash_table.py has all of them.

Spark takes long to start, so one driver has many queries: each is brought to its place and pauses
there, then the driver is killed for all of them, and another one goes on with them.
"""

from __future__ import annotations

import pytest

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

KILLS = (
    Row(SINGLE, "P1-before-end"),
    Row(SINGLE, "P1-after-end"),
    Row(TWO_PHASE, "C3"),
    Row(TWO_PHASE, "C4-after", loses_checkpoint=True),
    Row(DATA_SOURCE, "W1"),
    Row(DATA_SOURCE, "C5-middle"),
)
KILLS_ON_KAFKA = (Row(SINGLE, "P1-before-end"), Row(SINGLE, "P1-after-end"))
WITH_STATE = (
    Row(TWO_PHASE, "C4-after", operator=AGGREGATION, state_format=1),
    Row(TWO_PHASE, "C4-after", operator=JOIN, state_format=2),
    Row(SINGLE, "P1-after-end", operator=AGGREGATION, state_format=2),
    Row(SINGLE, "P1-after-end", operator=TRANSFORM_WITH_STATE, state_format=1),
    Row(TWO_PHASE, "C5-after", operator=TRANSFORM_WITH_STATE, state_format=2),
    Row(TWO_PHASE, "C3", operator=DROP_DUPLICATES, state_format=1),
    Row(DATA_SOURCE, "C5-middle", operator=DROP_DUPLICATES, state_format=2),
    # The table has the rows already, and its function does not evaluate them again.
    Row("P2-parquet", "T-written", operator=AGGREGATION, state_format=2),
)
OVERTAKEN = (
    Row(SINGLE, "P1-before-end"),
    Row(TWO_PHASE, "C4-before"),
    Row(DATA_SOURCE, "C4-after"),
)
LOST_BROKERS = (
    Row(SINGLE, "P1-before-end"),
    Row(TWO_PHASE, "C4-after"),
    Row(DATA_SOURCE, "C4-after"),
)
RAISING = (Row(SINGLE, "P1-after-end"), Row(TWO_PHASE, "C4-after"), Row(DATA_SOURCE, "C5-middle"))
KILLED_WORKERS = (Row(TWO_PHASE, "W1-middle"), Row(DATA_SOURCE, "W1"))
STOPPED = (Row(TWO_PHASE, "W1"), Row(DATA_SOURCE, "W1-middle"))
COPIED = Row(DATA_SOURCE, "W1")


def test_a_driver_is_overtaken_and_dies_and_a_broker_is_long_away(
    barnabas, kafka, mortal, driver, tmp_path
):
    """All that needs two drivers, since to start one is what takes the time."""
    with SparkDriver(tmp_path / "old") as old:
        lost = [Play(row, "lost", mortal, tmp_path) for row in LOST_BROKERS]
        with lose_broker(mortal, driver, lost):
            overtake(old, driver, [Play(row, "overtaken", barnabas, tmp_path) for row in OVERTAKEN])
            plays = [Play(row, "killed", barnabas, tmp_path) for row in (*KILLS, *WITH_STATE)]
            plays += [Play(row, "killed-on-kafka", kafka, tmp_path) for row in KILLS_ON_KAFKA]
            kill_driver(old, driver, plays)


@pytest.mark.parametrize("row", RAISING, ids=str)
def test_a_commit_raises(row, barnabas, driver, tmp_path):
    raise_in(driver, Play(row, "raising", barnabas, tmp_path))


@pytest.mark.parametrize("row", KILLED_WORKERS, ids=str)
def test_a_python_worker_dies(row, barnabas, driver, tmp_path):
    kill_worker(driver, Play(row, "worker", barnabas, tmp_path))


@pytest.mark.parametrize("row", STOPPED, ids=str)
def test_a_query_is_stopped_and_leaves_a_task_behind(row, barnabas, driver, tmp_path):
    stop_query(driver, Play(row, "stopped", barnabas, tmp_path))


def test_a_task_has_a_copy(barnabas, tmp_path):
    with (
        spark_cluster(tmp_path / "cluster") as cluster,
        SparkDriver(tmp_path / "driver", cluster.master, **SPECULATION) as driver,
    ):
        speculate(driver, Play(COPIED, "copied", barnabas, tmp_path))
