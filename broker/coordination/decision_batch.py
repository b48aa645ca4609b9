"""The records of a decision as they are appended: one batch, so all of them or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    from barnabas.coordinator.decision import Decision, Record


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


def encoded_record(record: Record, number: int, now_ms: int) -> bytes:
    """One record of a batch that ``sealed_batch`` makes, the ``number``-th from 0."""
    return encode_record(LogRecord(number, now_ms, *record.encode(), ()), 0, now_ms)


def sealed_batch(encoded: list[bytes], now_ms: int) -> memoryview:
    """One batch of records that were encoded one by one."""
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
