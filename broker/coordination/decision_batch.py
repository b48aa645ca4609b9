"""The records of a decision as they are appended: one batch, so all of them or none."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from barnabas.protocol.records import (
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    BatchHeader,
    encode_batch,
    encode_record,
    encode_single,
    seal,
)
from barnabas.protocol.records import NO_PRODUCER_ID as NO_PRODUCER
from barnabas.protocol.records import Record as LogRecord

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Decision, LongDecision, Record

RECORDS_PER_SLICE: Final = 250
"""Records encoded before the loop may get a turn: a few milliseconds' work."""


def decision_batch(decision: Decision, now_ms: int) -> memoryview:
    """The records of a decision, of which there is at least one."""
    records, producer = decision.records, decision.producer
    if len(records) == 1 and producer is None:
        key, value = records[0].encode()
        return memoryview(encode_single(now_ms, key, value))
    encoded = [
        LogRecord(number, now_ms, *record.encode(), ()) for number, record in enumerate(records)
    ]
    if producer is None:
        return memoryview(encode_batch(encoded))
    # Kafka's coordinator numbers what it writes for a producer from 0 each time (measured).
    batch = encode_batch(
        encoded,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=0,
        transactional=True,
    )
    return memoryview(batch)


def batch_in_slices(
    decision: LongDecision, now_ms: int, refuse_too_large: Callable[[int], None]
) -> Generator[None, None, memoryview | None]:
    """Return the records of a long decision as one batch, or None if it has none.

    ``refuse_too_large`` is called with the size so far, and raises if that is too large.
    """
    encoded: list[bytes] = []
    size_bytes = 0
    for number, record in enumerate(decision.records):
        data = _encoded_record(record, number, now_ms)
        encoded.append(data)
        size_bytes += len(data)
        if number % RECORDS_PER_SLICE == 0:
            refuse_too_large(size_bytes)
            yield
    refuse_too_large(size_bytes)
    return _sealed_batch(encoded, now_ms) if encoded else None


def _encoded_record(record: Record, number: int, now_ms: int) -> bytes:
    return encode_record(LogRecord(number, now_ms, *record.encode(), ()), 0, now_ms)


def _sealed_batch(encoded: list[bytes], now_ms: int) -> memoryview:
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=len(encoded) - 1,
        base_timestamp=now_ms,
        max_timestamp=now_ms,
        producer_id=NO_PRODUCER,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=len(encoded),
    )
    return memoryview(seal(header, b"".join(encoded)))
