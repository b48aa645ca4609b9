"""Segments that have outlived their topic's retention, by time and by size.

Never past the last stable offset (K5): a segment that holds the first unstable record, or anything
after it, stays. Removing is one durable move of the log start; the files follow.
"""

from barnabas.storage.journal.journal import CommitGroup, Journal
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_segment import ReadableSegment


def apply_retention(log: PartitionLog, journal: Journal, now_ms: int) -> CommitGroup | None:
    """Move the log start past expired segments; return None if none has expired."""
    if not log.config.deletes:
        return None
    offset = max(_expired_by_time(log, now_ms), _expired_by_size(log))
    if offset <= log.log_start_offset:
        return None
    if offset > log.active.base_offset:
        log.roll(journal.group_for(0))
    return log.delete_records(offset)


def _stable_end(log: PartitionLog) -> int:
    return min(log.high_watermark, log.last_stable_offset)


def _expired_by_time(log: PartitionLog, now_ms: int) -> int:
    """Return the end of the first segments that are too old; the active one may be among them."""
    retention_ms = log.config.retention_ms
    offset = log.log_start_offset
    if retention_ms < 0:
        return offset
    for segment in log.segments:
        if segment.size_bytes == 0 or now_ms - _youngest_ms(segment) <= retention_ms:
            break
        if segment.end_offset > _stable_end(log):
            break
        offset = segment.end_offset
    return offset


def _youngest_ms(segment: ReadableSegment) -> int:
    """Return the newest timestamp, or the time when this process first saw the segment."""
    timestamp_ms = segment.max_timestamp_ms
    return timestamp_ms if timestamp_ms >= 0 else segment.created_ms


def _expired_by_size(log: PartitionLog) -> int:
    """Return the end of the first segments beyond the size limit, without the active one."""
    retention_bytes = log.config.retention_bytes
    offset = log.log_start_offset
    if retention_bytes < 0:
        return offset
    excess = sum(segment.size_bytes for segment in log.segments) - retention_bytes
    for segment in log.segments[:-1]:
        excess -= segment.size_bytes
        if excess < 0 or segment.end_offset > _stable_end(log):
            break
        offset = segment.end_offset
    return offset
