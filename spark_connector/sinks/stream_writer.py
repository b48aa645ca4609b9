"""The writer behind ``format("barnabas")``: tasks write in parallel, the driver decides.

What Spark does that shapes this file (measured, and hardly documented):

1. ``streamWriter`` runs once per batch before the tasks, and again, in another process, before
   ``commit`` or ``abort``. So it must change nothing: a cleanup could abort the transactions of
   the batch that ``commit`` decides next.
2. ``write`` does not receive the batch's number, but the task's local properties have it.
   ``commit`` receives the batch but not the query, so messages carry the query's id.
3. Messages may be None in ``abort``, all of them. A batch without partitions has one empty task.
4. Losing, speculative and zombie attempts have already written. Each attempt has its own
   transactional ID, so none fences the winning one, and leftovers are swept.
5. Spark can run a decided batch again, and can call ``commit`` or ``abort`` again. The ledger shows
   in each case which batch is decided.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from barnabas.spark_connector.checkpoint import checkpoint
from barnabas.spark_connector.errors import SinkError, WrongOption
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.spark_connector.sinks.kept_decider import abort_with_decider, commit_with_decider
from barnabas.spark_connector.sinks.task import Attempt, write_prepared
from barnabas.spark_connector.sinks.two_phase import Prepared

BATCH_ID: Final = "streaming.sql.batchId"
QUERY_ID: Final = "sql.streaming.queryId"
"""Local properties that Spark gives every task of a streaming query."""


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """Message of a task to the driver."""

    prepared: Prepared


Messages = Sequence[WriterCommitMessage | None]


class BarnabasStreamWriter(DataSourceStreamArrowWriter):
    """One attempt at one batch; pickled to its tasks, created again for the commit."""

    def __init__(self, options: SinkOptions, nonce: str, refusal: SinkError | None = None) -> None:
        self._options = options
        self._nonce = nonce
        self._refusal = refusal

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of a task into an open transaction."""
        if self._refusal is not None:
            raise self._refusal
        return Written(write_prepared(self._options, self._attempt(), iterator))

    def _attempt(self) -> Attempt:
        context: Any = TaskContext.get()
        batch_id = context.getLocalProperty(BATCH_ID)
        query_id = context.getLocalProperty(QUERY_ID)
        if batch_id is None or query_id is None:
            raise WrongOption(
                "Spark does not say which batch this is: this sink works with micro-batches, not"
                " with continuous processing."
            )
        return Attempt(
            query_id, int(batch_id), context.partitionId(), context.taskAttemptId(), self._nonce
        )

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's name
        """Decide that all of these transactions count, and commit them. Runs on the driver."""
        prepared = _prepared(messages)
        location, store = self._options.checkpoint_location, self._options.checkpoint_store
        end = checkpoint.batch_end(location, batchId, store)
        query_id = next((one.query_id for one in prepared if one is not None), None)
        commit_with_decider(
            self._options,
            query_id or checkpoint.query_id(location, store),
            batchId,
            lambda decider: decider.commit(batchId, prepared, end.fingerprint, end.offsets),
        )

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803
        """Abort undecided transactions, and finish decided ones. Runs on the driver.

        It does not fail: Spark would report `Writing job failed` and not the reason. The next
        start sweeps what is left over.
        """
        try:
            self._abort(_prepared(messages), batchId)
        except SinkError as error:
            reason = f"{type(error).__name__}: {error}"
            sys.stderr.write(f"batch {batchId} not aborted, left to the next start: {reason}\n")
        except Exception:  # noqa: BLE001 - any error goes to Spark's log
            traceback.print_exc(file=sys.stderr)

    def _abort(self, prepared: Sequence[Prepared | None], batch_id: int) -> None:
        query_id = next((one.query_id for one in prepared if one is not None), None)
        options = self._options
        query_id = query_id or checkpoint.query_id(
            options.checkpoint_location, options.checkpoint_store
        )
        abort_with_decider(
            self._options, query_id, lambda decider: decider.abort(batch_id, prepared)
        )


def _prepared(messages: Messages) -> list[Prepared | None]:
    return [message.prepared if isinstance(message, Written) else None for message in messages]
