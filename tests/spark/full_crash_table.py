"""All rows of the crash tables: `make spark-crash`. Its name keeps it out of the ordinary tests.

Every sink at every place, on Barnabas, and on Apache Kafka as far as its two-phase commit goes: it
has none, so there a decided transaction must not be left alone for longer than its timeout.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.spark_connector.session.spark_process import unix_sockets
from tests.spark.cluster import SPECULATION, spark_cluster
from tests.spark.crash_table import (
    AT_A_TABLE,
    PLACES,
    STATEFUL,
    Play,
    Row,
    kill_driver,
    kill_executors,
    kill_worker,
    lose_broker,
    overtake,
    raise_in,
    speculate,
    stop_query,
)
from tests.spark.harness import WITH_EXECUTORS, SparkDriver
from tests.spark.job import DATA_SOURCE, EXACT_SINKS, SINGLE, TABLES, TWO_PHASE, Job
from tests.spark.judge import feed, judge, open_transactions, until
from tests.spark.stateful import AGGREGATION, STATE_FORMATS
from tests.spark.tables import delta_settings

pytestmark = pytest.mark.timeout(3600)

IN_TASKS = ("W1-middle", "W1")
ROWS_OF_ONE_PARTITION = 100_000
"""About 3 MB when encoded."""
ROWS = {sink: [Row(sink, place) for place in PLACES[sink]] for sink in EXACT_SINKS}
EVERYWHERE = [row for rows in ROWS.values() for row in rows]
IN_DRIVER = [row for row in EVERYWHERE if row.place not in IN_TASKS]
IN_WORKERS = [row for row in EVERYWHERE if row.place in IN_TASKS]
ON_BOTH = [("barnabas", sink) for sink in EXACT_SINKS] + [("kafka", sink) for sink in EXACT_SINKS]
TABLES_ON_BOTH = [(where, sink) for where in ("barnabas", "kafka") for sink in TABLES]
WITHOUT_CHECKPOINT = {
    SINGLE: ("P1-middle", "P1-after-end"),
    TWO_PHASE: ("W1", "C3", "C4-after", "C5-middle"),
    DATA_SOURCE: ("W1", "C3", "C4-after", "C5-middle"),
}
"""Places at which the group's offsets are readable: no transaction has pending offsets for it."""


@pytest.fixture(scope="module")
def delta_driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkDriver]:
    """One that survives, and knows Delta."""
    with SparkDriver(tmp_path_factory.mktemp("delta"), **delta_settings()) as running:
        yield running


@pytest.mark.parametrize(("where", "sink"), ON_BOTH)
def test_a_driver_dies(where, sink, request, driver, tmp_path):
    broker = request.getfixturevalue(where)
    with SparkDriver(tmp_path / "old") as old:
        plays = [Play(row, f"killed-on-{where}", broker, tmp_path) for row in ROWS[sink]]
        kill_driver(old, driver, plays)


@pytest.mark.parametrize("state_format", STATE_FORMATS)
@pytest.mark.parametrize("sink", EXACT_SINKS)
def test_driver_of_stateful_queries_dies(sink, state_format, barnabas, driver, tmp_path):
    rows = [
        Row(sink, place, operator=operator, state_format=state_format)
        for place in PLACES[sink]
        for operator in STATEFUL[sink]
    ]
    with SparkDriver(tmp_path / "old") as old:
        kill_driver(old, driver, [Play(row, "killed", barnabas, tmp_path) for row in rows])


@pytest.mark.parametrize("state_format", STATE_FORMATS)
@pytest.mark.parametrize("sink", TABLES)
def test_driver_of_stateful_queries_with_a_table_dies(
    sink, state_format, barnabas, delta_driver, tmp_path
):
    rows = [
        Row(sink, place, operator=AGGREGATION, state_format=state_format)
        for place in AT_A_TABLE[sink]
    ]
    with SparkDriver(tmp_path / "old", **delta_settings()) as old:
        kill_driver(old, delta_driver, [Play(row, "killed", barnabas, tmp_path) for row in rows])


def test_java_dies_while_it_hands_over_a_partition(barnabas, driver, tmp_path):
    """A batch must not be decided without the rows that Python has not received."""
    job = Job(
        *(barnabas.bootstrap_servers, SINGLE, "java-dies", str(tmp_path / "java-dies")),
        per_trigger=ROWS_OF_ONE_PARTITION,
        tasks=1,
        options={"batchMaxBytes": "16384"},
    )
    feed(job, range(ROWS_OF_ONE_PARTITION))
    # Their buffers hold less than a tenth of the partition.
    with unix_sockets() as settings, SparkDriver(tmp_path / "old", **settings) as old:
        old.begin_until(job, "P1-middle")
        old.kill_java()
        old.release(job)
        until(lambda: open_transactions(barnabas, f"spark.{job.name}"), [], "it does not end")
    driver.run(job)
    judge([barnabas], job, ROWS_OF_ONE_PARTITION)


@pytest.mark.parametrize(("where", "sink"), TABLES_ON_BOTH)
def test_a_driver_that_writes_a_table_dies(where, sink, request, delta_driver, tmp_path):
    broker = request.getfixturevalue(where)
    with SparkDriver(tmp_path / "old", **delta_settings()) as old:
        rows = [Row(sink, place) for place in AT_A_TABLE[sink]]
        kill_driver(old, delta_driver, [Play(row, "killed", broker, tmp_path) for row in rows])


@pytest.mark.parametrize(("where", "sink"), TABLES_ON_BOTH)
def test_a_driver_that_writes_a_table_is_overtaken(where, sink, request, delta_driver, tmp_path):
    broker = request.getfixturevalue(where)
    with SparkDriver(tmp_path / "old", **delta_settings()) as old:
        rows = [Row(sink, place) for place in AT_A_TABLE[sink]]
        overtake(old, delta_driver, [Play(row, "overtaken", broker, tmp_path) for row in rows])


@pytest.mark.parametrize("sink", EXACT_SINKS)
def test_a_driver_dies_and_its_checkpoint_is_deleted(sink, barnabas, driver, tmp_path):
    rows = [Row(sink, place, loses_checkpoint=True) for place in WITHOUT_CHECKPOINT[sink]]
    with SparkDriver(tmp_path / "old") as old:
        kill_driver(old, driver, [Play(row, "deleted", barnabas, tmp_path) for row in rows])


@pytest.mark.parametrize(("where", "sink"), ON_BOTH)
def test_a_driver_is_overtaken(where, sink, request, driver, tmp_path):
    broker = request.getfixturevalue(where)
    with SparkDriver(tmp_path / "old") as old:
        plays = [Play(row, f"overtaken-on-{where}", broker, tmp_path) for row in ROWS[sink]]
        overtake(old, driver, plays)


@pytest.mark.parametrize("sink", EXACT_SINKS)
def test_broker_outage_longer_than_the_transaction_timeout_loses_no_record(
    sink, mortal, driver, tmp_path
):
    plays = [Play(row, "lost", mortal, tmp_path) for row in ROWS[sink]]
    with lose_broker(mortal, driver, plays):
        pass


@pytest.mark.parametrize("where", ["barnabas", "kafka"])
@pytest.mark.parametrize("row", IN_DRIVER, ids=str)
def test_a_commit_raises(row, where, request, driver, tmp_path):
    broker = request.getfixturevalue(where)
    raise_in(driver, Play(row, f"raising-on-{where}", broker, tmp_path))


@pytest.mark.parametrize("row", IN_WORKERS, ids=str)
def test_a_python_worker_dies(row, barnabas, driver, tmp_path):
    kill_worker(driver, Play(row, "worker", barnabas, tmp_path))


@pytest.mark.parametrize("row", IN_WORKERS, ids=str)
def test_a_query_is_stopped_and_leaves_a_task_behind(row, barnabas, driver, tmp_path):
    stop_query(driver, Play(row, "stopped", barnabas, tmp_path))


def test_all_executors_die(barnabas, tmp_path):
    rows = [Row(SINGLE, "P1-middle"), Row(TWO_PHASE, "W1"), Row(DATA_SOURCE, "W1-middle")]
    with SparkDriver(tmp_path / "cluster", WITH_EXECUTORS) as driver:
        for row in rows:
            kill_executors(driver, Play(row, "executors", barnabas, tmp_path))


def test_a_task_has_a_copy(barnabas, tmp_path):
    with (
        spark_cluster(tmp_path / "cluster") as cluster,
        SparkDriver(tmp_path / "driver", cluster.master, **SPECULATION) as driver,
    ):
        for row in IN_WORKERS:
            speculate(driver, Play(row, "copied", barnabas, tmp_path))
