"""Offsets by timestamp, exact: the batch by index, then the record inside it (design §9)."""

from typing import NamedTuple

from protocol.records import BatchHeader, iterate_records
from storage.batches import visible_batches
from storage.partition_log import DECOMPRESSED_BYTES_MAX, READ_UNCOMMITTED, PartitionLog
from storage.segment import Segment


class TimestampOffset(NamedTuple):
    """A record's timestamp (ms), its offset, and the leader epoch of its batch."""

    timestamp_ms: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(
    log: PartitionLog, timestamp_ms: int, isolation: int = READ_UNCOMMITTED
) -> TimestampOffset | None:
    """The first visible record that is at least as young as ``timestamp_ms``; None if none is."""
    for segment in log.segments:
        if segment.max_timestamp_ms < timestamp_ms:
            continue
        # Up to this entry every batch is older; an entry of the very time may come too late.
        start = segment.index.times.lookup(timestamp_ms - 1).offset
        for header, batch in visible_batches(log, max(start, log.log_start_offset), isolation):
            if header.max_timestamp < timestamp_ms or header.is_control:
                continue
            found = _record_at(log, header, batch, timestamp_ms)
            if found is not None:
                return found
        return None
    return None


def offset_of_max_timestamp(
    log: PartitionLog, isolation: int = READ_UNCOMMITTED
) -> TimestampOffset | None:
    """The first visible record with the largest timestamp; None without records or timestamps."""
    candidates = [segment for segment in log.segments if segment.max_timestamp_ms >= 0]
    # A segment's index also knows batches that are not visible yet: then the next best one counts.
    for segment in sorted(candidates, key=_largest_first):
        found = _max_in_segment(log, segment, isolation)
        if found is not None:
            return found
    return None


def _largest_first(segment: Segment) -> tuple[int, int]:
    return -segment.max_timestamp_ms, segment.base_offset


def _max_in_segment(log: PartitionLog, segment: Segment, isolation: int) -> TimestampOffset | None:
    offset = segment.index.offset_of_max_timestamp
    if offset < log.high_watermark:
        return offset_for_timestamp(log, segment.max_timestamp_ms, isolation)
    best = -1
    for header, _ in visible_batches(
        log, max(segment.base_offset, log.log_start_offset), isolation
    ):
        best = max(best, header.max_timestamp)
    return offset_for_timestamp(log, best, isolation) if best >= 0 else None


def _record_at(
    log: PartitionLog, header: BatchHeader, batch: memoryview, timestamp_ms: int
) -> TimestampOffset | None:
    for record in iterate_records(batch, limit_bytes=DECOMPRESSED_BYTES_MAX):
        if record.timestamp >= timestamp_ms and record.offset >= log.log_start_offset:
            return TimestampOffset(record.timestamp, record.offset, header.partition_leader_epoch)
    return None
