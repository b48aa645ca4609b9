import gc

import pyarrow as pa
import pytest

from barnabas.spark_connector.errors import RecordTooLarge
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks import task
from barnabas.spark_connector.sinks.task import Attempt, borrowed_cluster, encode, write_prepared

OPTIONS = SinkOptions("localhost:9", "sink", topic="out")
OTHER = SinkOptions("localhost:9", "other", topic="out")
ATTEMPT = Attempt("query", 3, 1, 17, "abcd")
ROWS = pa.RecordBatch.from_pydict({"value": [b"a", b"b", None]})


class FakeCluster:
    def __init__(self):
        self.is_closed = False
        self.is_fresh = False

    def partition_count(self, topic):
        assert topic == "out"
        return 1

    def forget(self):
        self.is_fresh = True

    def close(self):
        self.is_closed = True


class FakeParticipant:
    made: list["FakeParticipant"]

    def __init__(self, options, **about):
        self.about = about
        self.written = []
        self.calls = []
        self.made.append(self)

    def write(self, batches):
        self.written += batches

    def prepared(self):
        self.calls.append("prepared")
        return "prepared"

    def discard(self):
        self.calls.append("discard")

    def close(self):
        self.calls.append("close")


@pytest.fixture(autouse=True)
def participants(monkeypatch):
    monkeypatch.setattr(task, "connected", lambda options: FakeCluster())
    monkeypatch.setattr(task, "_kept", [])
    monkeypatch.setattr(task, "Participant", FakeParticipant)
    FakeParticipant.made = []
    return FakeParticipant.made


def test_connections_are_kept_for_the_next_task_of_the_same_sink():
    with borrowed_cluster(OPTIONS) as first:
        pass
    with borrowed_cluster(OPTIONS) as second:
        assert second is first
        assert second.is_fresh  # Partitions may have been added in between.
    with borrowed_cluster(OTHER) as third:
        assert third is not first
        assert first.is_closed
    assert not third.is_closed


def test_connections_on_which_something_failed_are_not_kept():
    with pytest.raises(KeyError), borrowed_cluster(OPTIONS) as first:
        raise KeyError
    assert first.is_closed
    with borrowed_cluster(OPTIONS) as second:
        assert second is not first


def test_a_task_without_rows_encodes_nothing():
    assert list(encode(OPTIONS, [], FakeCluster().partition_count)) == []
    assert list(encode(OPTIONS, [ROWS.slice(0, 0)], FakeCluster().partition_count)) == []


def test_a_task_writes_all_its_rows_and_leaves_its_transaction_open(participants):
    assert write_prepared(OPTIONS, ATTEMPT, iter([ROWS, ROWS])) == "prepared"
    (participant,) = participants
    assert [batch.record_count for batch in participant.written] == [6]
    assert participant.calls == ["prepared", "close"]
    cluster = participant.about.pop("cluster")
    assert not cluster.is_closed
    assert participant.about == {
        "batch_id": 3,
        "query_id": "query",
        "partition": 1,
        "task_attempt_id": 17,
        "nonce": "abcd",
    }


def test_a_task_that_fails_aborts_its_own_transaction(participants):
    def rows():
        yield ROWS
        raise RecordTooLarge("one row")

    with pytest.raises(RecordTooLarge):
        write_prepared(OPTIONS, ATTEMPT, rows())
    (participant,) = participants
    assert participant.calls == ["discard", "close"]
    assert participant.about["cluster"].is_closed


def test_garbage_of_later_tasks_is_collected_and_what_was_imported_is_not_looked_at():
    gc.unfreeze()  # The product freezes it again.
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(2):
        with borrowed_cluster(OPTIONS):
            pass
        frozen = gc.get_freeze_count()
        assert frozen > before * 0.5
        assert len(gc.get_objects()) < before * 0.5
        garbage: list = []
        garbage.append(garbage)
        del garbage
        assert gc.collect() >= 1
