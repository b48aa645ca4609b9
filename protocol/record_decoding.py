"""Records and markers of a batch, decoded.

A batch is checked and read here record by record; records.py knows its header and its encoding.
``InvalidBatch`` means that the bytes are not exactly the records that the header counts.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from barnabas.protocol import compression as codecs
from barnabas.protocol.compression import Buffer, CompressionError
from barnabas.protocol.records import (
    ABORT,
    COMMIT,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    MARKER_KEY,
    MARKER_VALUE,
    BatchHeader,
    InvalidBatch,
    Record,
    read_header,
)

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1
_UINT64_MAX: Final = (1 << 64) - 1
_NULL: Final = 1  # length -1 as a varint
_MAX_VARINT_BYTES: Final = 5
_MAX_VARLONG_BYTES: Final = 10
_HEADERS_MAX: Final = (1 << 31) - 1


def iterate_records(
    view: Buffer, *, limit_bytes: int, headers_max: int = _HEADERS_MAX
) -> Iterator[Record]:
    """Decode the records of one batch, expanded to ``limit_bytes`` at most.

    A header of two bytes is an object of 72, so ``headers_max`` of one record limits memory, too.
    Raises :class:`InvalidBatch` for anything that is not exactly ``record_count`` well-formed
    records within the batch's offsets.
    """
    header = read_header(view)
    body = memoryview(view)[HEADER_BYTES : header.size]
    try:
        data = bytes(codecs.decompress(header.compression, body, limit_bytes))
        yield from _decode_records(header, data, headers_max)
    except CompressionError as error:
        raise InvalidBatch(str(error)) from error
    except IndexError as error:
        raise InvalidBatch("a record runs past the end of its batch") from error


def sole_record(header: BatchHeader, view: Buffer) -> Record | None:
    """Return the record of a plain batch with only one, or None if it takes ``iterate_records``.

    Coordinators write such batches, and read hundreds of thousands of them at a start.
    """
    if header.record_count != 1 or header.compression or header.timestamp_type == LOG_APPEND_TIME:
        return None
    data = bytes(view[HEADER_BYTES : header.size])
    try:
        length, position = read_varint(data, 0)
        end = position + length
        timestamp_delta, position = read_varint(data, position + 1, _MAX_VARLONG_BYTES)
        delta, position = read_varint(data, position)
        key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        is_whole = data[position] == 0 and position + 1 == end == len(data)
    except (IndexError, InvalidBatch):
        return None
    if not is_whole or not 0 <= delta <= header.last_offset_delta:
        return None
    timestamp = header.base_timestamp + timestamp_delta
    return Record(header.base_offset + delta, timestamp, key, value)


def _decode_records(header: BatchHeader, data: bytes, headers_max: int) -> Iterator[Record]:
    position = 0
    previous_delta = -1
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    append_time = header.max_timestamp if header.timestamp_type == LOG_APPEND_TIME else None
    end_of_data = len(data)
    for _ in range(header.record_count):
        length, position = read_varint(data, position)
        end = position + length
        if length < 0 or end > end_of_data:
            raise InvalidBatch(f"record length {length} does not fit into its batch")
        timestamp_delta, position = read_varint(data, position + 1, _MAX_VARLONG_BYTES)
        delta, position = read_varint(data, position)
        if not previous_delta < delta <= header.last_offset_delta:
            raise InvalidBatch(f"offset delta {delta} after {previous_delta}")
        previous_delta = delta
        if data[position] == _NULL:
            key, position = None, position + 1
        else:
            key, position = _read_bytes(data, position, end)
        value, position = _read_bytes(data, position, end)
        headers: Sequence[tuple[str, bytes | None]] = ()
        if data[position] == 0:
            position += 1
        else:
            headers, position = read_headers(data, position, end, headers_max)
        if position != end:
            raise InvalidBatch(f"record of {length} bytes has another length than its fields")
        timestamp = base_timestamp + timestamp_delta
        if not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise InvalidBatch("a timestamp is too far from the others")
        if append_time is not None:
            timestamp = append_time
        yield Record(base_offset + delta, timestamp, key, value, headers)
    if position != len(data):
        raise InvalidBatch(f"{len(data) - position} bytes after the last record")


def read_varint(data: bytes, position: int, max_bytes: int = _MAX_VARINT_BYTES) -> tuple[int, int]:
    """Read a zig-zag varint; return its value and the position after it."""
    byte = data[position]
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), position + 1
    second = data[position + 1]
    if second < 0x80:
        byte += (second << 7) - 0x80
        return (byte >> 1) ^ -(byte & 1), position + 2
    result = byte & 0x7F | (second & 0x7F) << 7
    for index in range(2, max_bytes):
        byte = data[position + index]
        result |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if result > _UINT64_MAX:
                break
            return (result >> 1) ^ -(result & 1), position + index + 1
    raise InvalidBatch("a variable-length number is too long")


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position)
    if length < 0:
        if length == -1:
            return None, position
        raise InvalidBatch(f"length {length} of a key, value or header")
    if position + length > end:
        raise InvalidBatch("a key, value or header runs past the end of its record")
    return data[position : position + length], position + length


def read_headers(
    data: bytes, position: int, end: int, headers_max: int = _HEADERS_MAX
) -> tuple[Sequence[tuple[str, bytes | None]], int]:
    """Return the headers of a record, which end at ``end`` at most, and the position after them."""
    count, position = read_varint(data, position)
    if count == 0:
        return (), position
    if not 0 < count <= min(end - position, headers_max):
        raise InvalidBatch(f"{count} headers in one record")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        if name is None:
            raise InvalidBatch("a header without a name")
        value, position = _read_bytes(data, position, end)
        # As Java's clients read it: what is not UTF-8 is no reason to refuse a record.
        headers.append((name.decode(errors="replace"), value))
    return tuple(headers), position


class Marker(NamedTuple):
    """The content of a control batch: the end of its producer's transaction."""

    commit: bool
    coordinator_epoch: int


def read_marker(view: Buffer) -> Marker | None:
    """Decode a control batch; return None for an emptied one or another control type.

    Later versions may append fields to key and value; they are ignored.
    """
    header = read_header(view)
    if header.record_count == 0:
        return None
    record = next(iterate_records(view, limit_bytes=header.size))
    key, value = record.key or b"", record.value or b""
    if len(key) < MARKER_KEY.size:
        raise InvalidBatch("a control record without a type")
    _, control_type = MARKER_KEY.unpack_from(key)
    if control_type not in (ABORT, COMMIT):
        return None
    if len(value) < MARKER_VALUE.size:
        raise InvalidBatch("a transaction marker without a coordinator epoch")
    _, coordinator_epoch = MARKER_VALUE.unpack_from(value)
    return Marker(control_type == COMMIT, coordinator_epoch)
