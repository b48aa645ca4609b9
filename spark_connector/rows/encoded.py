"""Encoded record batch, and the stamp that adds a producer to its header.

A task encodes before the producer is known, perhaps on another machine. The producer is written to
the header afterwards, and only then the checksum is computed.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import CRC_START, TRANSACTIONAL_BIT

_CRC = struct.Struct(">I")
_CRC_AT = 17
_ATTRIBUTES = struct.Struct(">h")
_PRODUCER = struct.Struct(">qhi")  # producer id, producer epoch, base sequence
_PRODUCER_AT = 43


class EncodedBatch(NamedTuple):
    """One complete v2 record batch for one partition; :func:`stamp` adds its producer."""

    topic: str
    partition: int
    record_count: int
    """Number of records, and of the sequence numbers that it uses."""
    records: bytearray
    """Bytes of the batch: base offset 0, no producer, no sequence, and no valid checksum yet."""


def stamp(batch: EncodedBatch, producer_id: int, epoch: int, base_sequence: int) -> None:
    """Add the batch to a producer's open transaction, in place; can be repeated."""
    records = batch.records
    (attributes,) = _ATTRIBUTES.unpack_from(records, CRC_START)
    _ATTRIBUTES.pack_into(records, CRC_START, attributes | TRANSACTIONAL_BIT)
    _PRODUCER.pack_into(records, _PRODUCER_AT, producer_id, epoch, base_sequence)
    with memoryview(records) as view:
        checksum = crc32c(view[CRC_START:])
    _CRC.pack_into(records, _CRC_AT, checksum)
