"""Checkpoints on S3 (moto, on loopback): Spark reaches it as `s3a`, the commit worker by pyarrow.

Each query is brought to its place, the driver is killed with `kill -9`, and another one continues.
What of a store's files needs no Spark is in test_store_files.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.spark_connector.checkpoint.checkpoint import INCARNATION
from barnabas.spark_connector.checkpoint.object_store import CREDENTIALS
from barnabas.spark_connector.session.cache import cache_directory
from barnabas.spark_connector.settings.store_options import S3
from tests.counterparts.broker_process import BrokerProcess
from tests.counterparts.jars import s3a_jars, spark_kafka_jars
from tests.counterparts.s3 import S3Server
from tests.products import for_the_night
from tests.spark.conftest import BUCKET
from tests.spark.crash_table import BATCH, RECORDS, Play, Row, for_each
from tests.spark.harness import SparkDriver
from tests.spark.job import DATA_SOURCE, SINGLE, TWO_PHASE
from tests.spark.judge import feed, results

pytestmark = [pytest.mark.timeout(1500), pytest.mark.slow]

KILLS = (
    Row(DATA_SOURCE, "C4-after"),
    Row(DATA_SOURCE, "C3"),
    Row(TWO_PHASE, "C4-after"),
    Row(SINGLE, "P1-after-end"),
)


def settings(s3: S3Server) -> dict[str, str]:
    """Return the settings of a Spark that knows `s3a`."""
    jars = ",".join(map(str, [*spark_kafka_jars(), *s3a_jars()]))
    return {"spark.jars": jars, **s3.hadoop_settings()}


@pytest.fixture(scope="module")
def driver(store_driver: SparkDriver) -> SparkDriver:
    return store_driver


class StorePlay(Play):
    """A row whose checkpoint is on the store."""

    def __init__(
        self, row: Row, what: str, broker: BrokerProcess, directory: Path, s3: S3Server
    ) -> None:
        super().__init__(row, what, broker, directory)
        self._directory = directory
        self._s3 = s3
        # Only the commit worker of the format reaches the store without Spark's JVM.
        self.options: Mapping[str, str] = s3.sink_options() if row.sink == DATA_SOURCE else {}
        self.job = replace(
            self.job, checkpoint=f"s3a://{BUCKET}/{self.job.name}", options=self.options
        )

    @property
    def files(self) -> dict[str, bytes]:
        """Return the files of the checkpoint by their names in it."""
        prefix = f"{self.job.name}/"
        found = self._s3.objects(BUCKET, prefix)
        return {name.removeprefix(prefix): content for name, content in found.items()}

    def put(self, name: str, content: bytes) -> None:
        """Replace a file of the checkpoint."""
        self._s3.put(BUCKET, f"{self.job.name}/{name}", content)

    def judge(self, records: int | None = None) -> None:
        """Judge with a copy of the checkpoint."""
        local = self._directory / "copies" / self.job.name
        for name, content in self.files.items():
            (local / name).parent.mkdir(parents=True, exist_ok=True)
            (local / name).write_bytes(content)
        remote, self.job = self.job, replace(self.job, checkpoint=str(local))
        try:
            super().judge(records)
        finally:
            self.job = remote


@pytest.fixture
def _without_credentials(monkeypatch, tmp_path):
    """Set up `s3a` in Spark's Hadoop settings alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_directory().parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in CREDENTIALS[S3]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@for_the_night(beside="tests/spark/test_store_files.py::test_store_that_fails_is_one_sentence")
@pytest.mark.usefixtures("_without_credentials")
def test_killed_drivers_continue_from_checkpoint_on_s3(s3, barnabas, driver, tmp_path):
    plays = [StorePlay(row, "killed", barnabas, tmp_path, s3) for row in KILLS]
    with SparkDriver(tmp_path / "old", **settings(s3)) as old:
        worker_without_credentials_warns_once(old, barnabas, tmp_path, s3)
        for play in plays:
            play.to_the_place(old, **play.options)
        old.kill()
    for_each(plays, lambda play: play.go_on(driver))
    for play in plays:
        assert json.loads(play.files[INCARNATION])
        unfinished = [name for name in play.files if name.rpartition("/")[2].startswith(".")]
        assert unfinished == []
    assert "cannot be used from Python" not in driver.output(limit=10**9)


def worker_without_credentials_warns_once(driver, barnabas, tmp_path, s3):
    """Three batches, and two Python workers that cannot read the checkpoint."""
    play = StorePlay(Row(DATA_SOURCE, "C3"), "unknown", barnabas, tmp_path, s3)
    feed(play.job, range(BATCH, RECORDS))
    driver.run(replace(play.job, options={}))
    printed = driver.output(limit=10**9)
    assert printed.count("Python does not read Spark's Hadoop settings") == 1
    assert results(play.job, RECORDS).is_exact


@for_the_night(beside="tests/spark/test_store_files.py::test_store_that_fails_is_one_sentence")
def test_other_offsets_than_the_ledger_has_are_refused(s3, barnabas, driver, tmp_path):
    play = StorePlay(Row(DATA_SOURCE, "C3"), "replaced", barnabas, tmp_path, s3)
    driver.run(play.job)
    text = play.files["offsets/0"].decode()
    *lines, source = text.splitlines()
    ends = json.loads(source)
    ends[play.job.input]["0"] -= 1
    play.put("offsets/0", "\n".join([*lines, json.dumps(ends)]).encode())
    feed(play.job, range(BATCH, 2 * BATCH))
    driver.begin(play.job)
    assert "offsets" in driver.sentence(play.job)
    play.put("offsets/0", text.encode())
    driver.run(play.job)
    play.judge(2 * BATCH)


@for_the_night(beside="tests/spark/test_store_files.py::test_store_that_fails_is_one_sentence")
def test_worker_with_wrong_credentials_ends_the_query_with_one_sentence(
    s3, barnabas, driver, tmp_path
):
    play = StorePlay(Row(DATA_SOURCE, "C3"), "forbidden", barnabas, tmp_path, s3)
    wrong = replace(play.job, options={**play.options, "checkpoint.secretKey": "not-to-be-seen"})
    driver.begin(wrong)
    sentence = driver.sentence(wrong)
    assert f"The checkpoint {wrong.checkpoint} cannot be used from Python on " in sentence
    assert "access denied" in sentence
    assert "checkpoint.accessKey and checkpoint.secretKey" in sentence
    assert "not-to-be-seen" not in driver.output(limit=10**9)
    driver.run(play.job)
    play.judge(BATCH)
