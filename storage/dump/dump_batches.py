"""Rows of a file of record batches: a log segment, or a snapshot of Kafka's metadata log."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from barnabas.protocol.compression import NAMES
from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import (
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    read_header,
    verify_batch,
)
from barnabas.storage.files.file_system import File

_READ_BYTES: Final = 1024 * 1024
_EXPANDED_BYTES_MAX: Final = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Row:
    """One item of a file; ids and keys are bytes."""

    kind: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that cannot be right, at a byte of the file."""

    position: int
    reason: str


def dump_batches(file: File, base_offset: int, *, records: bool) -> Iterator[Row | Problem]:
    """Yield every batch, its records if requested, and all problems."""
    expected = base_offset
    for found in _batches(file, 0):
        if isinstance(found, Problem):
            yield found
            return
        position, header, batch = found
        corruption = _corruption_of(batch)
        yield Row("batch", _describe(header, position, valid=not corruption))
        if problem := corruption or _disorder_of(header, expected):
            yield Problem(position, f"batch of offset {header.base_offset}: {problem}")
        elif records:
            yield from _records(header, batch, position)
        expected = max(expected, header.next_offset)


def headers_of(file: File, position: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield position and header of the batches up to the end or an invalid header."""
    for found in _batches(file, position):
        if isinstance(found, Problem):
            return
        yield found[:2]


def _batches(file: File, position: int) -> Iterator[tuple[int, BatchHeader, memoryview] | Problem]:
    """Yield the file's batches; the last item may be the problem that ended the file early."""
    size = file.size()
    view, start = memoryview(b""), position
    while position < size:
        at = position - start
        if len(view) - at < HEADER_BYTES:
            view, start, at = memoryview(file.pread(_READ_BYTES, position)), position, 0
        if len(view) < HEADER_BYTES:
            yield Problem(position, f"the file ends after {size - position} bytes of a batch")
            return
        header = read_header(view, at)
        if header.magic != MAGIC or header.batch_length < HEADER_BYTES - LENGTH_OVERHEAD:
            yield Problem(position, f"no batch starts here, {size - position} bytes are left")
            return
        if header.size > size - position:
            reason = f"the file ends after {size - position} of the batch's {header.size} bytes"
            yield Problem(position, reason)
            return
        if len(view) - at < header.size:
            wanted = max(header.size, _READ_BYTES)
            view, start, at = memoryview(file.pread(wanted, position)), position, 0
        yield position, header, view[at : at + header.size]
        position += header.size


def _corruption_of(batch: memoryview) -> str:
    """Return the corruption of a batch with a valid header, or an empty string."""
    try:
        verify_batch(batch)
    except CorruptBatch as error:
        return str(error)
    return ""


def _disorder_of(header: BatchHeader, expected: int) -> str:
    """Return the error in the offsets of a batch, or an empty string."""
    if header.base_offset < expected:
        return f"an offset of at least {expected} should follow"
    if header.last_offset_delta < 0:
        return f"it ends at offset {header.last_offset}, before it begins"
    return ""


def _describe(header: BatchHeader, position: int, *, valid: bool) -> dict[str, Any]:
    # Where a delete horizon is set, it takes the place of the base timestamp (KIP-534).
    has_horizon = bool(header.attributes & DELETE_HORIZON_BIT)
    codec = header.compression
    return {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "count": header.record_count,
        "position": position,
        "size": header.size,
        "compression": NAMES[codec] if codec < len(NAMES) else str(codec),
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
        "last_sequence": header.last_sequence,
        "leader_epoch": header.partition_leader_epoch,
        "transactional": header.is_transactional,
        "control": header.is_control,
        "timestamp_type": (
            "LogAppendTime" if header.timestamp_type == LOG_APPEND_TIME else "CreateTime"
        ),
        "max_timestamp": header.max_timestamp,
        "delete_horizon": header.base_timestamp if has_horizon else None,
        "crc": header.crc,
        "valid": valid,
    }


def _records(header: BatchHeader, batch: memoryview, position: int) -> Iterator[Row | Problem]:
    try:
        if header.is_control and (marker := read_marker(batch)) is not None:
            yield Row(
                "marker",
                {
                    "offset": header.base_offset,
                    "type": "COMMIT" if marker.commit else "ABORT",
                    "coordinator_epoch": marker.coordinator_epoch,
                },
            )
            return
        for record in iterate_records(batch, limit_bytes=_EXPANDED_BYTES_MAX):
            yield Row("record", {**record._asdict(), "control": header.is_control})
    except InvalidBatch as error:
        yield Problem(position, f"batch of offset {header.base_offset}: {error}")
