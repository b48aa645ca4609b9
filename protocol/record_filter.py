"""Taking records out of a batch without touching those that stay: what log compaction does.

Rules of this file:

1. A batch keeps its offsets, its sequences and its producer, even if all records are removed: first
   and last offset stay those it was written with, so that offsets never move and a producer's last
   sequence survives (K2, K4).
2. Records that stay keep their bytes. Only a delete horizon (KIP-534), which takes the place of the
   batch's base timestamp, makes them be written again, for their timestamps are relative to it.
3. The caller has checked the batch's checksum; what does not parse is :class:`InvalidBatch`.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.protocol import compression as codecs
from barnabas.protocol.compression import Buffer, CompressionError
from barnabas.protocol.record_decoding import read_headers, read_varint
from barnabas.protocol.records import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    InvalidBatch,
    seal,
    varint,
)

_MAX_VARLONG_BYTES = 10


class StoredRecord(NamedTuple):
    """Position of one record among its batch's expanded bytes, and the facts that decide about it.

    ``data[start:end]`` is the record with its length; its attributes are at ``body``, and ``rest``
    is the position after the timestamp.
    """

    start: int
    body: int
    rest: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def expand(header: BatchHeader, batch: Buffer, *, limit_bytes: int) -> bytes:
    """Return the bytes of a batch's records, expanded to ``limit_bytes`` at most."""
    body = memoryview(batch)[HEADER_BYTES : header.size]
    try:
        return bytes(codecs.decompress(header.compression, body, limit_bytes))
    except CompressionError as error:
        raise InvalidBatch(str(error)) from error


def find_records(header: BatchHeader, data: bytes) -> Iterator[StoredRecord]:
    """Yield a batch's expanded records; they are valid only after the last one."""
    position, end_of_data = 0, len(data)
    previous_delta = -1
    try:
        for _ in range(header.record_count):
            start = position
            length, body = read_varint(data, position)
            position = body + length
            if length < 0 or position > end_of_data:
                raise InvalidBatch(f"record length {length} does not fit into its batch")
            timestamp_delta, rest = read_varint(data, body + 1, _MAX_VARLONG_BYTES)
            offset_delta, at = read_varint(data, rest)
            if not previous_delta < offset_delta <= header.last_offset_delta:
                raise InvalidBatch(f"offset delta {offset_delta} after {previous_delta}")
            previous_delta = offset_delta
            key_length, at = read_varint(data, at)
            key = None
            if key_length >= 0:
                key = data[at : at + key_length]
                at += key_length
            value_length, at = read_varint(data, at)
            if at + max(value_length, 0) >= position:
                raise InvalidBatch("a key or value runs past the end of its record")
            if read_headers(data, at + max(value_length, 0), position)[1] != position:
                raise InvalidBatch(f"record of {length} bytes has another length than its fields")
            yield StoredRecord(
                start, body, rest, position, timestamp_delta, offset_delta, key, value_length >= 0
            )
    except IndexError as error:
        raise InvalidBatch("a record runs past the end of its batch") from error
    if position != end_of_data:
        raise InvalidBatch(f"{end_of_data - position} bytes after the last record")


def delete_horizon(header: BatchHeader) -> int | None:
    """Return the time when the batch's tombstones or marker may be removed, or None if unset."""
    return header.base_timestamp if header.attributes & DELETE_HORIZON_BIT else None


def keep_records(
    header: BatchHeader, data: bytes, kept: Sequence[StoredRecord], horizon_ms: int | None = None
) -> bytes:
    """Return the batch with the records ``kept`` only; ``horizon_ms`` sets its horizon."""
    if horizon_ms is None:
        body = b"".join([data[record.start : record.end] for record in kept])
        header = header._replace(max_timestamp=_newest(header, kept))
    else:
        newest = _newest(header, kept)
        body = _rebased(data, kept, header.base_timestamp - horizon_ms)
        header = header._replace(
            base_timestamp=horizon_ms,
            max_timestamp=newest,
            attributes=header.attributes | DELETE_HORIZON_BIT,
        )
    compressed = codecs.compress(header.compression, body)
    return seal(header._replace(record_count=len(kept)), compressed)


def _newest(header: BatchHeader, kept: Sequence[StoredRecord]) -> int:
    if header.timestamp_type == LOG_APPEND_TIME:
        return header.max_timestamp
    return header.base_timestamp + max(record.timestamp_delta for record in kept)


def _rebased(data: bytes, kept: Sequence[StoredRecord], by_ms: int) -> bytes:
    """Return the records with ``by_ms`` added to the distance from their base timestamp."""
    body = bytearray()
    for record in kept:
        attributes = data[record.body : record.body + 1]
        timestamp_delta = varint(record.timestamp_delta + by_ms)
        encoded = attributes + timestamp_delta + data[record.rest : record.end]
        body += varint(len(encoded))
        body += encoded
    return bytes(body)


def emptied(header: BatchHeader) -> bytes:
    """Return the batch without records, with its offsets and its producer."""
    return seal(
        header._replace(
            attributes=header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_BIT),
            base_timestamp=NO_TIMESTAMP,
            record_count=0,
        ),
        b"",
    )


def placeholder(header: BatchHeader) -> bytes:
    """Return an empty batch with the offsets of another batch, without its producer."""
    return emptied(
        header._replace(
            attributes=header.attributes & TIMESTAMP_TYPE_BIT,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
        )
    )
