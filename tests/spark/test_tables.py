"""A table and a topic in one batch, with Parquet and with Delta: both exact, in spite of any death.

Rows have random numbers, so no run of a batch gives those of another: equal rows in the topic and
the table show that both come from one run. tests/spark/full_crash_table.py has all places.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.products import for_the_night
from tests.spark.crash_table import BATCH, RECORDS, Play, Row, for_each, overtake
from tests.spark.harness import SparkDriver
from tests.spark.job import DELTA, PARQUET, TABLES
from tests.spark.judge import feed
from tests.spark.tables import decided_rows, delta_settings, in_table, in_topic, rows_of

pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]

KILLS = (
    Row("P1-parquet", "T-aside"),
    Row("P1-parquet", "T-written"),
    Row("P1-parquet", "P1-after-end"),
    Row("P2-parquet", "T-written"),
    Row("P2-parquet", "C4-after"),
    Row("P1-delta", "T-written"),
    Row("P2-delta", "C3"),
    Row("P2-delta", "C4-after"),
    Row("P2-parquet", "T-written", loses_checkpoint=True),
)
OVERTAKEN = (
    Row("P1-parquet", "T-begun"),
    Row("P2-parquet", "T-aside"),
    Row("P2-delta", "T-begun"),
    Row("P1-delta", "T-written"),
)
UNDECIDED = ("T-written", "C3")


def driver_for(sink: str, request: pytest.FixtureRequest) -> SparkDriver:
    """Return a driver that files share; only Delta takes one with more jars."""
    driver: SparkDriver = request.getfixturevalue(
        "store_driver" if TABLES[sink][1] == DELTA else "driver"
    )
    return driver


# Rows with Parquet are also in test_crash_table.py.
@for_the_night(
    beside="tests/spark_connector/test_table.py::test_second_driver_sees_that_a_batch_was_started"
)
def test_a_driver_is_overtaken_and_dies_between_table_and_topic(barnabas, store_driver, tmp_path):
    driver = store_driver
    with SparkDriver(tmp_path / "old", **delta_settings()) as old:
        overtake(old, driver, [Play(row, "overtaken", barnabas, tmp_path) for row in OVERTAKEN])
        kills = [Play(row, "killed", barnabas, tmp_path) for row in KILLS]
        for play in kills:
            play.to_the_place(old)
        old.kill()
        for_each(kills, what_is_not_decided_can_be_told)
        for_each(kills, lambda play: play.go_on(driver))


def what_is_not_decided_can_be_told(play: Play) -> None:
    """Two batches have started, the first is decided; the table may have rows of the second."""
    in_table, in_decided = len(rows_of(play.job)), len(decided_rows(play.job))
    if play.row.place == "T-aside":
        assert (in_table, in_decided) == (BATCH, BATCH)
    else:
        assert in_table == 2 * BATCH
        assert in_decided == (BATCH if play.row.place in UNDECIDED else 2 * BATCH)


@for_the_night(
    beside="tests/spark_connector/test_table.py"
    "::test_started_batch_is_not_started_with_other_offsets"
)
@pytest.mark.parametrize("sink", TABLES)
def test_batch_is_not_started_with_other_offsets(sink, barnabas, request, tmp_path):
    """Spark plans the batch again, and longer, after the checkpoint was put back to before it."""
    driver = driver_for(sink, request)
    play = Play(Row(sink, "T-written"), "planned-anew", barnabas, tmp_path)
    driver.run(play.job)
    feed(play.job, range(BATCH, RECORDS))
    driver.arm("T-written", "raise")
    driver.begin(play.job)
    assert driver.end(play.job) is not None
    before = decided_rows(play.job)
    (batch,) = {row.batch for row in rows_of(play.job)} - {row.batch for row in before}
    for name in (str(batch), f".{batch}.crc"):
        (Path(play.job.checkpoint) / "offsets" / name).unlink()
    all_at_once = replace(play.job, per_trigger=RECORDS)
    driver.begin(all_at_once)
    sentence = driver.sentence(all_at_once)
    assert f"started batch {batch} with offsets that the checkpoint" in sentence
    assert f"set the option acceptNewPlan to {batch}" in sentence
    assert decided_rows(play.job) == before
    if TABLES[sink][1] == PARQUET:
        query = before[0].query
        shutil.rmtree(Path(play.job.table) / f"query={query}" / f"batch={batch}")
        driver.run(replace(all_at_once, options={"acceptNewPlan": str(batch)}))
        play.judge()


@for_the_night(
    beside="tests/spark_connector/test_table.py::test_started_batch_continues_with_its_own_offsets"
)
@pytest.mark.parametrize("sink", TABLES)
def test_a_batch_without_rows(sink, barnabas, request, tmp_path):
    driver = driver_for(sink, request)
    play = Play(Row(sink, "T-written"), "without-rows", barnabas, tmp_path)
    play.job = replace(play.job, least=BATCH)
    driver.run(play.job)
    assert (rows_of(play.job), in_topic(play.job)) == ([], Counter())
    feed(play.job, range(BATCH, 2 * BATCH))
    driver.run(play.job)
    assert {row.number for row in decided_rows(play.job)} == set(range(BATCH, 2 * BATCH))
    assert in_topic(play.job) == in_table(play.job)


@for_the_night(beside="tests/spark_connector/test_table.py::test_started_batch_is_not_decided")
def test_a_table_that_fails_is_said_so(barnabas, driver, tmp_path):
    play = Play(Row("P2-parquet", "T-aside"), "failing", barnabas, tmp_path)
    Path(play.job.table).write_text("no directory")
    driver.begin(play.job)
    assert driver.sentence(play.job).startswith("table raised ")
    Path(play.job.table).unlink()
    driver.run(play.job)
    play.judge(BATCH)
