"""Produce responses that name the bad records of refused batches (KIP-467).

The inspector's thread looks for them once the batch is refused, and the response waits for it: the
loop has no part in this, and a request without such a batch runs none of it. Where too much waits
for that thread already, the response leaves without the list, as it does before version 8.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.broker.api.inspector import Inspector
from barnabas.broker.api.storage_errors import error_code_of
from barnabas.broker.api.waiting import without_refused
from barnabas.broker.api.waits import Aside, Durable
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
)
from barnabas.storage.batches.bad_records import (
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
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.record_rule import RecordRule

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
    """Number of records without a key, if the batch is refused for them."""


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


async def named(
    inspector: Inspector,
    response: ProduceResponse,
    group: CommitGroup | None,
    batches: list[BadBatch],
) -> ProduceResponse:
    """Return a response after naming its bad records and waiting for durability."""
    durable = None if group is None else Durable(group)
    room = NamingRoom()
    tasks = [BadRecords(each.records, each.rule, room) for each in batches]
    size_bytes = sum(len(each.records) for each in batches)
    found = await Aside(lambda: inspector.inspect_all(tasks, size_bytes))
    for batch, bad_records in zip(batches, found, strict=True):
        if bad_records:
            _name(batch, bad_records)
    refusal = None if durable is None else await durable
    return response if refusal is None else without_refused(response, refusal)


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
