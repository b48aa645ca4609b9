"""The sinks for ``df.writeStream.foreachBatch(...)``, which run in the driver's own process.

``single_transaction`` needs only Kafka's transactions: executors encode, and the driver sends all
records in one transaction. The records pass through the driver, one partition of the DataFrame at a
time, so its memory must hold a partition twice.

``two_phase`` is the protocol of the data source ``barnabas``. Here the driver recovers before it
starts any task, and evaluates a decided batch only for its state (`stateful.py`).

Both evaluate the DataFrame once. If there is a table, the table's function does that, and the topic
gets the rows that it has read back (`table.py`). A decided batch is written to neither. The query's
ID comes from Spark, so one sink is for one query only.
"""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar, cast

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.types import BinaryType, StructType

from barnabas.spark_connector.checkpoint import checkpoint
from barnabas.spark_connector.checkpoint.checkpoint import BatchEnd
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.errors import RowsMissing, SinkError, WrongOption
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.ledger.driver_sinks import note_batch
from barnabas.spark_connector.rows.encoded import EncodedBatch
from barnabas.spark_connector.rows.partitions import partitions_of
from barnabas.spark_connector.rows.spark_schema import check_frame
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.single import SingleTransactionSink
from barnabas.spark_connector.sinks.stateful import evaluate_state
from barnabas.spark_connector.sinks.stream_writer import QUERY_ID
from barnabas.spark_connector.sinks.table import Batch, Table, rows_for_topic
from barnabas.spark_connector.sinks.task import Attempt, borrowed_cluster, encode, write_prepared
from barnabas.spark_connector.sinks.two_phase import Decider, Prepared
from barnabas.storage.runtime.chance import random_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_END: Final = -1
"""Partition in a task's last message, which has the number of the previous messages."""
_MESSAGE = StructType().add("message", BinaryType())
"""Schema of the rows that tasks return; an object, since the JVM parses text in each batch."""

BatchFunction = Callable[["DataFrame", int], None]
Sink = TypeVar("Sink", bound=Closing)


def single_transaction(
    options: SinkOptions | Mapping[str, str], table: Table | None = None
) -> BatchFunction:
    """Return a function that writes each batch in one transaction; works with Apache Kafka, too."""
    return _SingleTransaction(_parsed(options), table)


def two_phase(
    options: SinkOptions | Mapping[str, str], table: Table | None = None
) -> BatchFunction:
    """Return a function that writes a batch in transactions of its tasks; the driver decides."""
    return _TwoPhase(_parsed(options), table)


def _parsed(options: SinkOptions | Mapping[str, str]) -> SinkOptions:
    return options if isinstance(options, SinkOptions) else SinkOptions.parse(options)


def query_id_of(frame: DataFrame) -> str:
    """Return the ID of the streaming query that calls this function."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    except (AttributeError, NotImplementedError) as error:
        # PySpark raises subclasses of these for features that Spark Connect lacks.
        raise WrongOption(
            'With Spark Connect use the data source instead: writeStream.format("barnabas").'
        ) from error
    if found is None:
        raise WrongOption(
            "Pass the function to writeStream.foreachBatch(...): it cannot be called elsewhere."
        )
    return str(found)


class _Topic(NamedTuple):
    """Rows for the topic: those of the batch or, with a table, those that the table has."""

    options: SinkOptions
    table: Table | None

    def check(self, frame: DataFrame) -> None:
        """Refuse columns that cannot be written as records, unless a table takes them."""
        if self.table is None:
            check_frame(frame.schema, self.options.topic)

    def rows(
        self, sink: SingleTransactionSink | Decider, frame: DataFrame, batch_id: int, end: BatchEnd
    ) -> DataFrame:
        """Return the rows of an undecided batch."""
        if self.table is None:
            return frame
        has_started_before = sink.begin_batch(batch_id, end.fingerprint)
        reach("T-begun")
        rows = rows_for_topic(self.table, frame, Batch(query_id_of(frame), batch_id))
        check_frame(rows.schema, self.options.topic)
        reach("T-written")
        if has_started_before:
            # The table may have had the rows, and not evaluated them again.
            evaluate_state(frame, self.options.checkpoint_location)
        return rows


class _Kept(Generic[Sink]):
    """Holder of a sink between two batches, which closes the sink after the query has ended.

    Spark does not notify a function of its query's end. It drops the last reference at the JVM's
    next garbage collection, or at the end of the program.
    """

    def __init__(self) -> None:
        self._sink: Sink | None = None

    def put(self, sink: Sink) -> None:
        """Keep a sink for the next batch."""
        self._sink = sink
        self._closing = weakref.finalize(self, sink.close)

    def take(self) -> Sink | None:
        """Return the sink; from now on the caller closes it."""
        sink, self._sink = self._sink, None
        if sink is not None:
            self._closing.detach()
        return sink


# ----------------------------------------------------------------------------- single transaction


class _SingleTransaction:
    """Function that owns the sink from its first batch until a failure."""

    def __init__(self, options: SinkOptions, table: Table | None) -> None:
        self._options = options
        self._topic = _Topic(options, table)
        self._kept: _Kept[SingleTransactionSink] = _Kept()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, unless the ledger has it."""
        self._topic.check(frame)
        end = checkpoint.batch_end(self._options.checkpoint_location, batch_id)
        sink = self._kept.take()
        if sink is None:
            sink = SingleTransactionSink(self._options, query_id_of(frame))
            note_batch(query_id_of(frame), self._options)
        try:
            # Without a table `write_batch` checks this.
            is_new = self._topic.table is None or not sink.is_decided(
                batch_id, end.fingerprint, end.topics
            )
            if is_new:
                rows = self._topic.rows(sink, frame, batch_id, end)
                # A generator: no task starts before the sink requests the first record batch.
                with closing(self._encoded(rows)) as encoded:
                    is_new = sink.write_batch(batch_id, encoded, end.fingerprint, end.offsets)
            if not is_new:
                evaluate_state(frame, self._options.checkpoint_location)
            note_batch(query_id_of(frame), self._options, sink.measured)
        except BaseException:
            sink.close()
            raise
        self._kept.put(sink)

    def _encoded(self, frame: DataFrame) -> Generator[EncodedBatch, None, None]:
        options = self._options

        def encode_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            count = 0
            with borrowed_cluster(options) as cluster:
                for batch in encode(options, batches, cluster.partition_count):
                    count += 1
                    yield _as_message(batch)
            yield _as_message(EncodedBatch("", _END, count, bytearray()))

        for messages in partitions_of(frame.mapInArrow(encode_partition, _MESSAGE)):
            yield from _whole(messages)


def _whole(messages: Iterator[bytes]) -> Iterator[EncodedBatch]:
    """Yield the batches of a partition; raises RowsMissing without a fitting end mark."""
    count, marked = 0, None
    for message in messages:
        batch = EncodedBatch(*pickle.loads(message))  # noqa: S301 - of this batch's tasks
        if batch.partition == _END:
            marked = batch.record_count
            continue
        count += 1
        yield batch
    if marked != count:
        raise RowsMissing(
            f"Spark's Java process has delivered {count} record batches of a partition and then"
            " ended or run out of memory; nothing of the batch is visible, so start the query"
            " again."
        )


def _as_message(fields: tuple[Any, ...]) -> pa.RecordBatch:
    # A plain tuple, so that the driver imports no class to read it.
    return pa.RecordBatch.from_pydict({"message": [pickle.dumps(tuple(fields), protocol=5)]})


# -------------------------------------------------------------------------------------- two phases


class _TwoPhase:
    """Function that owns the sink from its first batch until a failure."""

    def __init__(self, options: SinkOptions, table: Table | None) -> None:
        self._options = options
        self._topic = _Topic(options, table)
        self._kept: _Kept[Decider] = _Kept()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write a batch, or only finish it if it is decided."""
        self._topic.check(frame)
        end = checkpoint.batch_end(self._options.checkpoint_location, batch_id)
        decider = self._kept.take()
        is_new = decider is None
        decider = decider or Decider(self._options, query_id_of(frame), is_sole_recipient=True)
        try:
            if is_new:
                note_batch(query_id_of(frame), self._options)
                decider.recover(batch_id)
            if decider.is_decided(batch_id, end.fingerprint, end.topics):
                evaluate_state(frame, self._options.checkpoint_location)
            else:
                rows = self._topic.rows(decider, frame, batch_id, end)
                prepared = self._run_tasks(rows, batch_id, decider)
                decider.commit(batch_id, prepared, end.fingerprint, end.offsets)
            note_batch(query_id_of(frame), self._options, decider.measured)
        except BaseException:
            decider.close()
            raise
        self._kept.put(decider)

    def _run_tasks(self, frame: DataFrame, batch_id: int, decider: Decider) -> list[Prepared]:
        options, query_id, nonce = self._options, query_id_of(frame), random_bytes(8).hex()

        def write_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context: Any = TaskContext.get()
            attempt = Attempt(
                query_id, batch_id, context.partitionId(), context.taskAttemptId(), nonce
            )
            prepared = write_prepared(options, attempt, batches)
            yield _as_message(prepared)

        try:
            # Unlike `collect`, this raises if Java ends while it delivers the messages.
            table = frame.mapInArrow(write_partition, _MESSAGE).toArrow()
        except BaseException:
            # The next start sweeps the leftovers of a failed abort; the first error is reported.
            with suppress(SinkError):
                decider.abort(batch_id, [])
            raise
        # Written by the tasks above, a moment ago.
        messages = [pickle.loads(each) for each in table["message"].to_pylist()]  # noqa: S301
        return [Prepared(*cast("tuple[Any, ...]", message)) for message in messages]
