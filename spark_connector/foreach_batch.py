"""The sinks for ``df.writeStream.foreachBatch(...)``, which run in the driver's own process.

``single_transaction`` needs no more than Kafka's transactions: executors encode, the driver
sends everything in one transaction. What is sent passes through the driver, a partition of the
DataFrame at a time, so one must fit into its memory, twice.

``two_phase`` is the protocol of the data source ``barnabas``. Here the driver recovers before
it launches any task, and evaluates a batch that was decided only for its state (`stateful.py`).

Both evaluate the DataFrame once, or leave that to the table that they are given: then the topic
gets what the table has (`table.py`), and a batch that was decided comes to neither. The query's id
comes from Spark, so a sink that is made once may be used for one query only.
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

from barnabas.spark_connector import checkpoint
from barnabas.spark_connector.checkpoint import BatchEnd
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.driver_sinks import note_batch
from barnabas.spark_connector.encoded import EncodedBatch
from barnabas.spark_connector.errors import RowsMissing, SinkError, WrongOption
from barnabas.spark_connector.failpoints import reach
from barnabas.spark_connector.options import SinkOptions
from barnabas.spark_connector.partitions import partitions_of
from barnabas.spark_connector.single import SingleTransactionSink
from barnabas.spark_connector.spark_schema import check_frame
from barnabas.spark_connector.stateful import evaluate_state
from barnabas.spark_connector.stream_writer import QUERY_ID
from barnabas.spark_connector.table import Batch, Table, rows_for_topic
from barnabas.spark_connector.task import Attempt, borrowed_cluster, encode, write_prepared
from barnabas.spark_connector.two_phase import Decider, Prepared
from barnabas.storage.runtime.chance import random_bytes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_END: Final = -1
"""In place of a topic's partition: a task's last message, with the count of the messages before."""
_MESSAGE = StructType().add("message", BinaryType())
"""Rows that tasks return. As types, since the JVM would parse a text of them in every batch."""

BatchFunction = Callable[["DataFrame", int], None]
Sink = TypeVar("Sink", bound=Closing)


def single_transaction(
    options: SinkOptions | Mapping[str, str], table: Table | None = None
) -> BatchFunction:
    """Write each batch in one transaction of the driver's; works with Apache Kafka, too."""
    return _SingleTransaction(_parsed(options), table)


def two_phase(
    options: SinkOptions | Mapping[str, str], table: Table | None = None
) -> BatchFunction:
    """Write each batch in transactions of its tasks, which the driver decides on together."""
    return _TwoPhase(_parsed(options), table)


def _parsed(options: SinkOptions | Mapping[str, str]) -> SinkOptions:
    return options if isinstance(options, SinkOptions) else SinkOptions.parse(options)


def query_id_of(frame: DataFrame) -> str:
    """The id of the streaming query that calls this function."""
    try:
        found = frame.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    except (AttributeError, NotImplementedError) as error:
        # PySpark's own errors for what Spark Connect has not are kinds of these.
        raise WrongOption(
            'With Spark Connect use the data source instead: writeStream.format("barnabas").'
        ) from error
    if found is None:
        raise WrongOption(
            "Pass the function to writeStream.foreachBatch(...): it cannot be called elsewhere."
        )
    return str(found)


class _Topic(NamedTuple):
    """What goes to the topic: the batch as it is or, with a table, what the table has of it."""

    options: SinkOptions
    table: Table | None

    def check(self, frame: DataFrame) -> None:
        """Refuse columns that cannot become records; a table may have any."""
        if self.table is None:
            check_frame(frame.schema, self.options.topic)

    def rows(
        self, sink: SingleTransactionSink | Decider, frame: DataFrame, batch_id: int, end: BatchEnd
    ) -> DataFrame:
        """Return the rows of a batch that was not decided."""
        if self.table is None:
            return frame
        was_begun = sink.begin_batch(batch_id, end.fingerprint)
        reach("T-begun")
        rows = rows_for_topic(self.table, frame, Batch(query_id_of(frame), batch_id))
        check_frame(rows.schema, self.options.topic)
        reach("T-written")
        if was_begun:
            # The table had the rows, perhaps, and did not evaluate them again.
            evaluate_state(frame, self.options.checkpoint_location)
        return rows


class _Kept(Generic[Sink]):
    """Keeps a sink from batch to batch, and closes it when no other can follow.

    Spark does not tell a function that its query has ended: it lets go of it, with the JVM's next
    garbage or at the end of the program.
    """

    def __init__(self) -> None:
        self._sink: Sink | None = None

    def put(self, sink: Sink) -> None:
        """Keep a sink for the next batch."""
        self._sink = sink
        self._closing = weakref.finalize(self, sink.close)

    def take(self) -> Sink | None:
        """Return the sink, whose connections are the caller's business from now on."""
        sink, self._sink = self._sink, None
        if sink is not None:
            self._closing.detach()
        return sink


# ----------------------------------------------------------------------------- single transaction


class _SingleTransaction:
    """Owns the sink from its first batch until something fails."""

    def __init__(self, options: SinkOptions, table: Table | None) -> None:
        self._options = options
        self._topic = _Topic(options, table)
        self._kept: _Kept[SingleTransactionSink] = _Kept()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write one batch, or nothing if the ledger has it."""
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
                # A generator: no task starts before the sink takes the first batch.
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
            f"Spark's Java process has handed over {count} record batches of a partition and then"
            " ended or run out of memory; nothing of the batch is visible, so start the query"
            " again."
        )


def _as_message(fields: tuple[Any, ...]) -> pa.RecordBatch:
    # A plain tuple, whose class the other side need not import.
    return pa.RecordBatch.from_pydict({"message": [pickle.dumps(tuple(fields), protocol=5)]})


# -------------------------------------------------------------------------------------- two phases


class _TwoPhase:
    """Owns the sink from its first batch until something fails."""

    def __init__(self, options: SinkOptions, table: Table | None) -> None:
        self._options = options
        self._topic = _Topic(options, table)
        self._kept: _Kept[Decider] = _Kept()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Write one batch, or only finish what was decided."""
        self._topic.check(frame)
        end = checkpoint.batch_end(self._options.checkpoint_location, batch_id)
        decider = self._kept.take()
        is_new = decider is None
        decider = decider or Decider(self._options, query_id_of(frame), hears_alone=True)
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
            # Unlike `collect` it raises if Java ends while it hands the messages over.
            table = frame.mapInArrow(write_partition, _MESSAGE).toArrow()
        except BaseException:
            # What this leaves the next start sweeps; what went wrong first is what counts.
            with suppress(SinkError):
                decider.abort(batch_id, [])
            raise
        # Written by the tasks above, a moment ago.
        messages = [pickle.loads(each) for each in table["message"].to_pylist()]  # noqa: S301
        return [Prepared(*cast("tuple[Any, ...]", message)) for message in messages]
