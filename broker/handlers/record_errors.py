"""Produce responses that name the bad records of refused batches (KIP-467).

The inspector's thread looks for them once the batch is refused, and the response waits for it: the
loop has no part in this, and a request without such a batch runs none of it. Where too much waits
for that thread already, the response leaves without the list, as it does before version 8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.broker.api.dispatch import Deferred, RequestContext
from barnabas.broker.api.inspector import Inspected, Inspector
from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.api.waiting import without_refused
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
)
from barnabas.storage.bad_records import (
    LISTED_RECORDS_MAX,
    BadRecord,
    BadRecords,
    NamingRoom,
)
from barnabas.storage.errors import (
    CorruptMessage,
    LogClosed,
    RecordTooLarge,
    Rejected,
    StorageFull,
)
from barnabas.storage.file_system import Buffer
from barnabas.storage.journal import CommitGroup
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.record_rule import RecordRule
from barnabas.storage.refusal import Refusal

RECORD_ERRORS_SINCE: Final = 8
_NO_OFFSET: Final = -1
_WITHOUT_START: Final = (RecordTooLarge, CorruptMessage, StorageFull, LogClosed)
"""Errors that Apache Kafka reports without the log's start offset."""
_SHOWN: Final = 3
"""Number of errors that the message for the whole batch repeats, as in Apache Kafka."""


class BadBatch(NamedTuple):
    """A batch that a rule about its records has refused."""

    result: PartitionProduceResponse
    records: Buffer
    rule: RecordRule
    keyless: int
    """Number of records without a key, if that is what breaks the rule."""


def refused_by_log(log: PartitionLog, index: int, refused: Rejected) -> PartitionProduceResponse:
    """Return the result of a batch that its log has refused."""
    start_offset = -1 if isinstance(refused, _WITHOUT_START) else log.log_start_offset
    return PartitionProduceResponse(
        index,
        error_code_of(refused),
        _NO_OFFSET,
        log_start_offset=start_offset,
        error_message=str(refused),
    )


class Naming:
    """A response that waits until its bad records are named, and for what it promises."""

    def __init__(
        self,
        response: ProduceResponse,
        batches: list[BadBatch],
        on_done: Callable[[ProduceResponse], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        """``on_done`` gets the response, once and on the loop; ``on_failed`` an internal error."""
        self._response = response
        self._batches = batches
        self._on_done: Callable[[ProduceResponse], None] | None = on_done
        self._owed = 1
        room = NamingRoom()
        self._inspected: Inspected[list[BadRecord]] | None = Inspected(
            [BadRecords(each.records, each.rule, room) for each in batches],
            self._named,
            on_failed,
            sum(len(each.records) for each in batches),
        )

    def begin(self, inspector: Inspector, group: CommitGroup | None) -> None:
        """Wait for ``inspector``, and for ``group`` to be durable if there is one."""
        if group is not None:
            self._owed += 1
            group.add_waiter(self)
        assert self._inspected is not None
        inspector.inspect(self._inspected)

    def drop(self) -> None:
        """Stop looking: the client has gone."""
        if self._inspected is not None:
            self._inspected.dropped = True
        self._on_done = self._inspected = None
        self._batches = []

    def durable(self) -> None:
        """Continue: the appended batches of the request are on disk."""
        self._settle()

    def refused(self, refusal: Refusal) -> None:
        """Report an error for batches that the store refused after they were appended."""
        self._response = without_refused(self._response, refusal)
        self._settle()

    def _named(self, found: list[list[BadRecord]]) -> None:
        for batch, bad_records in zip(self._batches, found, strict=True):
            if bad_records:
                _name(batch, bad_records)
        self._batches = []
        self._inspected = None
        self._settle()

    def _settle(self) -> None:
        self._owed -= 1
        if not self._owed and self._on_done is not None:
            on_done, self._on_done = self._on_done, None  # It leads back to here.
            on_done(self._response)


def _name(batch: BadBatch, bad_records: list[BadRecord]) -> None:
    """Name the bad records in the result of their batch, with Apache Kafka's message and error.

    A record without a key that it needs is bad for that alone. If all bad records are such, the
    error is INVALID_RECORD, although the scan of the whole batch has found a bad timestamp.
    """
    result = batch.result
    result.record_errors = [
        BatchIndexAndErrorMessage(each.batch_index, each.reason) for each in bad_records
    ]
    is_whole = len(bad_records) < LISTED_RECORDS_MAX
    if any(each.is_out_of_time for each in bad_records) or (
        result.error_code == ErrorCode.INVALID_TIMESTAMP and not is_whole
    ):
        result.error_message = "One or more records have been rejected due to invalid timestamp"
        return
    result.error_code = ErrorCode.INVALID_RECORD
    count = max(batch.keyless, len(bad_records))
    shown = ", ".join(
        f"RecordError(batchIndex={each.batch_index}, message='{each.reason}')"
        for each in bad_records[:_SHOWN]
    )
    result.error_message = (
        f"One or more records have been rejected due to {count} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )


class NamingProduce(Deferred[ProduceResponse]):
    """A Produce whose batches have had their places, or none, and whose bad records get names."""

    __slots__ = ("_naming",)

    def __init__(
        self,
        inspector: Inspector,
        response: ProduceResponse,
        group: CommitGroup | None,
        batches: list[BadBatch],
        context: RequestContext,
    ) -> None:
        super().__init__()
        if not context.records_stay:  # What they point to is used again.
            batches = [each._replace(records=bytes(each.records)) for each in batches]
        self._naming = Naming(response, batches, self.complete, self.fail)
        self._naming.begin(inspector, group)

    def abandoned(self) -> None:
        """Stop looking: the client has gone."""
        self._naming.drop()
