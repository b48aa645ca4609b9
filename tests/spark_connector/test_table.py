"""Tables beside a topic, without Spark: started and decided batches."""

from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

from barnabas.spark import Batch, decided
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.errors import CheckpointMismatch, Fenced
from barnabas.spark_connector.ledger.entries import NO_ENTRY
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.refusals import WrongUse
from barnabas.testing import Broker
from tests.spark_connector.checkpointed import (
    SINGLE,
    TWO_PHASE,
    Driver,
    SparkCheckpoint,
    committed,
    options,
)

KINDS = (SINGLE, TWO_PHASE)


@pytest.fixture
def broker():
    with Broker(config={"transaction.two.phase.commit.enable": "true"}) as running:
        for topic in ("in", "out"):
            running.create_topic(topic, 2)
        yield running


@pytest.fixture
def files(tmp_path):
    return SparkCheckpoint(tmp_path / "checkpoint")


@pytest.fixture
def start(broker, files):
    """Start drivers; they are closed at the end."""
    made = []

    def start_one(kind, checkpoint=None, **more):
        chosen = checkpoint or files
        made.append(Driver(kind, options(broker, "sink", chosen, **more), chosen))
        return made[-1]

    yield start_one
    for each in made:
        each.close()


def condition(broker, sink_id="sink"):
    return decided(sink_id, servers=broker.bootstrap_servers, ledger_topic="ledger")


@pytest.mark.parametrize("kind", KINDS)
def test_started_batch_is_not_decided(broker, files, start, kind):
    assert condition(broker) == "false"
    with Cluster(broker.bootstrap_servers, client_id="test", timeout_ms=10_000) as cluster:
        assert not cluster.existing(["ledger"]), "who reads has made it"
    driver = start(kind)
    assert not driver.begin()
    assert condition(broker) == "false"
    driver.run(0)
    assert condition(broker) == f"(query = '{files.query_id}' AND batch <= 0)"
    assert not driver.begin()
    assert driver.begin()
    assert condition(broker) == f"(query = '{files.query_id}' AND batch <= 0)"
    driver.run(1)
    assert condition(broker) == f"(query = '{files.query_id}' AND batch <= 1)"
    assert condition(broker, "another") == "false"
    assert committed(broker) == {"0": 1, "1": 1}


def test_second_driver_sees_that_a_batch_was_started(broker, start):
    start(TWO_PHASE).begin()
    assert start(SINGLE).begin()


@pytest.mark.parametrize("kind", KINDS)
def test_all_queries_of_a_sink_count(broker, files, start, tmp_path, kind):
    start(kind).run(1)
    new = SparkCheckpoint(tmp_path / "new")
    start(kind, new, newQuery="true").run(0)
    assert condition(broker) == (
        f"(query = '{files.query_id}' AND batch <= 1) OR (query = '{new.query_id}' AND batch <= 0)"
    )


@pytest.mark.parametrize("kind", KINDS)
def test_started_batch_is_not_started_with_other_offsets(
    broker, files, start, tmp_path, monkeypatch, kind
):
    """Spark plans the batch again after the checkpoint was put back to before its plan."""
    running = start(kind)
    running.run(0)
    copy = files.copy_to(tmp_path / "copy")
    running.begin()
    with pytest.raises(CheckpointMismatch, match=r"started batch 1 with offsets that .*/copy do"):
        start(kind, copy).take()
    monkeypatch.setattr("tests.spark_connector.checkpointed.PER_BATCH", 7)
    copy.plan(1)
    for attempt in (start(kind, copy).take, start(kind, copy).begin):
        with pytest.raises(
            CheckpointMismatch, match=f"delete the rows of batch 1 and query {files.query_id}"
        ):
            attempt()
    # The refused driver fenced no other driver.
    running.begin()
    with pytest.raises(CheckpointMismatch, match="acceptNewPlan to 1"):
        start(kind, copy, acceptNewPlan="0").take()
    later = start(kind, copy, acceptNewPlan="1")
    later.take()
    with pytest.raises(Fenced):
        running.begin()
    later.begin()
    start(kind, copy).run(2)
    assert committed(broker) == {"0": 1, "1": 1, "2": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_started_batch_continues_with_its_own_offsets(broker, files, start, tmp_path, kind):
    start(kind).begin()
    moved = files.copy_to(tmp_path / "moved")
    driver = start(kind, moved)
    driver.take()
    driver.begin()
    driver.run(1)
    assert committed(broker) == {"0": 1, "1": 1}


def test_query_that_only_started_is_no_other_query_of_the_sink(broker, files, start, tmp_path):
    """The first batch failed, perhaps in its table, and the checkpoint was deleted."""
    start(SINGLE).begin()
    new = SparkCheckpoint(tmp_path / "new")
    start(TWO_PHASE, new).run(0)
    assert condition(broker) == f"(query = '{new.query_id}' AND batch <= 0)"
    with pytest.raises(CheckpointMismatch, match="newQuery"):
        start(SINGLE).take()


def test_no_query_id_of_the_ledger_can_be_other_sql(broker, files, start):
    def named_so(ledger, sink_id):
        return {"x' OR 'x' = 'x": NO_ENTRY._replace(batch_id=3)}, frozenset()

    start(SINGLE).run(0)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Ledger, "glimpse", named_so)
        with pytest.raises(WrongUse, match="is none of Spark's"):
            condition(broker)


def test_a_batch_is_found_by_its_columns():
    assert Batch("5e2c-f", 7).condition == "(query = '5e2c-f' AND batch = 7)"


class Rows:
    columns = ("account", "Batch")


def test_rows_may_not_have_the_columns_of_a_table():
    batch = Batch("q", 1)
    for write in (batch.marked, lambda rows: batch.write_parquet(rows, "/tmp/anywhere")):
        with pytest.raises(WrongUse, match="the rows for the table have a column 'Batch'"):
            write(Rows())


def test_a_file_system_that_copies_what_it_renames_is_refused():
    context = MagicMock()
    path = context._jvm.org.apache.hadoop.fs.Path.return_value
    path.getFileSystem.return_value.getUri.return_value.getScheme.return_value = "s3a"
    rows = SimpleNamespace(columns=["account"], sparkSession=SimpleNamespace(sparkContext=context))
    with pytest.raises(WrongUse, match=r"s3a://b/movements is in a file system \(s3a\) where"):
        Batch("q", 1).write_parquet(rows, "s3a://b/movements")
