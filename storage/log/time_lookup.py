"""Offsets by timestamp, exact: the batch by index, then the record inside it.

A search is a generator: it looks at the log on the loop and yields the work that may take long
(reading the disk, decompressing) for its driver to do, here or on a thread. ``run`` is the driver
that does it here.
"""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.record_decoding import iterate_records
from barnabas.protocol.records import BatchHeader, InvalidBatch, Record, iterate_batches
from barnabas.storage.batches.batch_contents import DECOMPRESSED_BYTES_MAX
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_log import READ_UNCOMMITTED
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment_read import LoadedSpan, ReadPlan, read_waiting
from barnabas.storage.runtime.clock import sleep

_PIECE_BYTES: Final = 256 * 1024
RECORDS_IN_A_ROW: Final = 1024
"""Number of records after which the interpreter is released for the loop: 0.3 ms."""


class TimestampOffset(NamedTuple):
    """A record's timestamp (ms), its offset, and the leader epoch of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


Found: TypeAlias = LoadedSpan | TimestampOffset | None
Work: TypeAlias = Callable[[], Found]
Search: TypeAlias = Generator[Work, Found, TimestampOffset | None]


def run(search: Search) -> TimestampOffset | None:
    """Drive a search in the caller's thread, waiting for the disk."""
    try:
        work = next(search)
        while True:
            work = search.send(work())
    except StopIteration as stop:
        found: TimestampOffset | None = stop.value
        return found


def offset_for_timestamp(
    log: PartitionLog, timestamp_ms: int, isolation: int = READ_UNCOMMITTED
) -> Search:
    """Search the first visible record that is at least as young as ``timestamp_ms``."""
    for segment in list(log.segments):
        if segment.max_timestamp_ms < timestamp_ms:
            continue
        # Up to this entry every batch is older; an entry of the very time may come too late.
        start = segment.index.times.lookup(timestamp_ms - 1).offset
        return (yield from _first_since(log, start, timestamp_ms, isolation))
    return None


def offset_of_max_timestamp(log: PartitionLog, isolation: int = READ_UNCOMMITTED) -> Search:
    """Search the first visible record with the largest timestamp."""
    end = log.high_watermark if isolation == READ_UNCOMMITTED else log.last_stable_offset
    youngest = -1
    for segment in sorted(log.segments, key=_youngest_first):
        if segment.max_timestamp_ms <= youngest:
            break
        # A segment's index also knows what is not visible yet, or no more: then its rest counts.
        of_segment = segment.max_timestamp_ms
        if (
            segment.base_offset < log.log_start_offset
            or end <= segment.index.offset_of_max_timestamp
        ):
            of_segment = yield from _youngest_visible_ms(log, segment, isolation)
        youngest = max(youngest, of_segment)
    if youngest < 0:
        return None
    return (yield from offset_for_timestamp(log, youngest, isolation))


def _youngest_first(segment: ReadableSegment) -> tuple[int, int]:
    return -segment.max_timestamp_ms, segment.base_offset


def _youngest_visible_ms(
    log: PartitionLog, segment: ReadableSegment, isolation: int
) -> Generator[Work, Found, int]:
    """Return the largest timestamp among the visible records of a segment, or -1."""
    youngest = -1
    start_offset = log.log_start_offset
    position = max(segment.base_offset, start_offset)
    while position < segment.end_offset:
        chunks = yield from _visible_piece(log, position, isolation)
        if not chunks:
            break
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                position = header.next_offset
                if header.base_offset >= start_offset:
                    youngest = max(youngest, header.newest_timestamp)
                    continue
                batch = chunk[at : at + header.size]
                found = yield partial(_youngest_record_in, header, batch, start_offset)
                assert isinstance(found, TimestampOffset)
                youngest = max(youngest, found.timestamp_ms)
    return youngest


def _youngest_record_in(
    header: BatchHeader, batch: memoryview, start_offset: int
) -> TimestampOffset:
    records = _records(batch)
    try:
        kept = (record for record in records if record.offset >= start_offset)
        youngest = max(kept, key=_timestamp, default=None)
    except InvalidBatch:
        # Its header is all that is known of it.
        return TimestampOffset(header.max_timestamp, start_offset, header.partition_leader_epoch)
    if youngest is None:
        return TimestampOffset(-1, -1, -1)
    return TimestampOffset(youngest.timestamp, youngest.offset, header.partition_leader_epoch)


def _records(batch: memoryview) -> Iterator[Record]:
    """Yield the records of a batch, with pauses for other threads."""
    for number, record in enumerate(iterate_records(batch, limit_bytes=DECOMPRESSED_BYTES_MAX), 1):
        yield record
        if number % RECORDS_IN_A_ROW == 0:
            sleep(0)


def _timestamp(record: Record) -> int:
    return record.timestamp


def _first_since(log: PartitionLog, offset: int, timestamp_ms: int, isolation: int) -> Search:
    """Search the visible batches from ``offset`` on."""
    position = offset
    while chunks := (yield from _visible_piece(log, position, isolation)):
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                position = header.next_offset
                if header.max_timestamp < timestamp_ms:
                    continue
                batch = chunk[at : at + header.size]
                found = yield partial(_record_in, header, batch, timestamp_ms, log.log_start_offset)
                if isinstance(found, TimestampOffset):
                    return found
    return None


def _visible_piece(
    log: PartitionLog, offset: int, isolation: int
) -> Generator[Work, Found, list[memoryview]]:
    """Return the next visible batches from ``offset`` on; empty at the end."""
    plan = log.plan_read(max(offset, log.log_start_offset), _PIECE_BYTES, isolation)
    if plan is None:
        return []
    if isinstance(plan, MemorySlice):
        return plan.chunks
    loaded = yield partial(_load, plan)
    assert isinstance(loaded, LoadedSpan)
    return [loaded.data] if len(loaded.data) else []


def _load(plan: ReadPlan) -> LoadedSpan | None:
    try:
        return plan.load(read_waiting)
    except OSError as error:
        raise Corrupt(plan.path, plan.position, f"cannot be read: {error}") from error


def _record_in(
    header: BatchHeader, batch: memoryview, timestamp_ms: int, log_start_offset: int
) -> TimestampOffset | None:
    try:
        for record in _records(batch):
            if record.timestamp >= timestamp_ms and record.offset >= log_start_offset:
                return TimestampOffset(
                    record.timestamp, record.offset, header.partition_leader_epoch
                )
    except InvalidBatch:
        # The record cannot be determined: a reader from the batch's start on misses none.
        first = max(header.base_offset, log_start_offset)
        return TimestampOffset(header.max_timestamp, first, header.partition_leader_epoch)
    return None
