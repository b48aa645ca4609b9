"""The refusals of the data source, and the data for its tasks; no Spark is started."""

from __future__ import annotations

import pickle

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DecimalType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
)

from barnabas.spark_connector.errors import CheckpointMismatch, SinkError, WrongOption, WrongRows
from barnabas.spark_connector.ledger.prepared import Prepared
from barnabas.spark_connector.sinks import starting, stream_writer
from barnabas.spark_connector.sinks.data_source import BarnabasDataSource
from barnabas.spark_connector.sinks.stream_writer import Written

OPTIONS = {"kafka.bootstrap.servers": "localhost:9", "sinkId": "payments", "topic": "out"}
ROWS = (
    StructType().add("key", StringType()).add("value", BinaryType()).add("number", DecimalType(5))
)


def writer(rows=ROWS, **options):
    # As Spark does it: names in lower case.
    source = BarnabasDataSource(CaseInsensitiveDict({**OPTIONS, **options}))
    return source.streamWriter(rows, overwrite=False)


def test_every_attempt_at_a_batch_is_called_something_else():
    first, second = writer(), writer()
    assert first._nonce != second._nonce
    copy = pickle.loads(pickle.dumps(first))
    assert (copy._nonce, copy._options) == (first._nonce, first._options)
    assert first._options.sink_id == "payments"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sinkId": ""}, "sinkId is missing"),
        ({"kafka.acks": "1"}, "kafka.acks is not one of"),
        ({"asyncProgressTrackingEnabled": "true"}, "asyncProgressTrackingEnabled cannot be used"),
    ],
    ids=["no-sink-id", "unknown", "async-progress"],
)
def test_options_that_cannot_be_exact_are_refused(options, sentence):
    with pytest.raises(WrongOption, match=sentence):
        writer(**options)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (StructType().add("key", StringType()), "Required attribute 'value' not found"),
        (StructType().add("value", LongType()), "value attribute unsupported type"),
        (
            StructType().add("value", BinaryType()).add("headers", ArrayType(StringType())),
            "headers must be an array",
        ),
        (
            StructType().add("value", BinaryType()).add("timestamp", TimestampNTZType()),
            "timestamp must be a timestamp",
        ),
    ],
    ids=["no-value", "number-as-value", "headers", "local-time"],
)
def test_columns_that_cannot_be_records_are_refused(rows, sentence):
    with pytest.raises(WrongRows, match=sentence):
        writer(rows)


def test_data_source_rejects_batch_writes_and_reads():
    source = BarnabasDataSource(CaseInsensitiveDict(OPTIONS))
    with pytest.raises(SinkError, match="for streaming queries only"):
        source.writer(ROWS, overwrite=False)
    with pytest.raises(SinkError, match="only writes"):
        source.schema()


class Deciding:
    """Records the calls of a decider."""

    def __init__(self, monkeypatch):
        self.asked = []
        monkeypatch.setattr(stream_writer, "commit_with_decider", self)
        monkeypatch.setattr(stream_writer, "abort_with_decider", self)

    def __call__(self, options, query_id, *more):
        self.asked.append(query_id)
        more[-1](self)

    def commit(self, batch_id, prepared, fingerprint, offsets):
        self.asked.append(("commit", batch_id, prepared, fingerprint, offsets))

    def abort(self, batch_id, prepared):
        self.asked.append(("abort", batch_id, prepared))


PREPARED = Prepared("spark.payments.x", 7, 0, 5, 3, "the-query")


def test_messages_tell_the_query_and_the_checkpoint_the_end(monkeypatch, tmp_path):
    deciding = Deciding(monkeypatch)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{}\n{"in":{"0":12}}')
    one = writer(checkpointLocation=str(tmp_path))
    one.commit([Written(PREPARED), None], 3)
    query_id, (what, batch_id, prepared, fingerprint, offsets) = deciding.asked
    assert (query_id, what, batch_id) == ("the-query", "commit", 3)
    assert prepared == [PREPARED, None]
    assert (len(fingerprint), offsets) == (64, {("in", 0): 12})


def test_query_without_messages_is_read_from_the_checkpoint(monkeypatch, tmp_path):
    deciding = Deciding(monkeypatch)
    monkeypatch.setattr(starting, "find_refusal", lambda _options: None)
    (tmp_path / "metadata").write_text('{"id":"from-the-checkpoint"}')
    writer(checkpointLocation=str(tmp_path)).abort([None, None], 3)
    assert deciding.asked == ["from-the-checkpoint", ("abort", 3, [None, None])]
    deciding.asked.clear()
    writer().abort([None], 3)
    assert deciding.asked == [None, ("abort", 3, [None])]


def test_a_message_survives_its_way_to_the_driver():
    assert pickle.loads(pickle.dumps(Written(PREPARED))) == Written(PREPARED)


def test_failed_abort_is_logged_and_hides_no_error(monkeypatch, capsys):
    """Spark would report that writing failed, and not of what."""

    def fail(*_asked):
        raise CheckpointMismatch("not this query's checkpoint")

    monkeypatch.setattr(stream_writer, "abort_with_decider", fail)
    writer().abort([Written(PREPARED)], 3)
    said = capsys.readouterr().err
    assert said == (
        "batch 3 not aborted, left to the next start: CheckpointMismatch: not this query's"
        " checkpoint\n"
    )
