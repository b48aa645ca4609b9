"""A record batch as the encoder leaves it, and the stamp that makes it a producer's.

A task encodes before it knows, or on another machine than, the producer that will send: who sends
is patched into the header afterwards, and the checksum is computed once, then.
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
    """One whole v2 record batch for one partition; its producer is added by :func:`stamp`."""

    topic: str
    partition: int
    record_count: int
    """Records in it, which is also the number of sequences that it takes."""
    records: bytearray
    """The batch: base offset 0; no producer, no sequence and no right checksum yet."""


def stamp(batch: EncodedBatch, producer_id: int, epoch: int, base_sequence: int) -> None:
    """Make the batch part of a producer's open transaction, in place; may be done again."""
    records = batch.records
    (attributes,) = _ATTRIBUTES.unpack_from(records, CRC_START)
    _ATTRIBUTES.pack_into(records, CRC_START, attributes | TRANSACTIONAL_BIT)
    _PRODUCER.pack_into(records, _PRODUCER_AT, producer_id, epoch, base_sequence)
    with memoryview(records) as view:
        checksum = crc32c(view[CRC_START:])
    _CRC.pack_into(records, _CRC_AT, checksum)
