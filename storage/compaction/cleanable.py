"""Eligibility of a log for compaction, and the plan of a pass. All on the loop.

Rules of this file (1 and 2 are Kafka's):

1. Only sealed segments, wholly below the last stable offset, none of whose records is younger than
   ``min.compaction.lag.ms`` (K2).
2. A pass is due when more of the log is dirty than ``min.cleanable.dirty.ratio``, or when a dirty
   record is older than ``max.compaction.lag.ms``.
3. A damaged segment, and each segment after it, is left alone: a tombstone or a marker there may be
   the only thing that hides a record inside the damage. The segments before it are compacted as
   usual.
4. A log is left alone while files of its last pass do not have their names, and while a reader
   walks over its segments.
5. Segments that only the store of a cluster has are compacted as the others are: a pass reads them
   piece by piece through the block cache.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.storage.log.cleaned_segment import CleaningPlan, SourceSegment, StoredSource
from barnabas.storage.log.config import LONG_MAX
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_read import ReadPlan

if TYPE_CHECKING:
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.log.producer_entry import ProducerEntry

_NO_OFFSET: Final = -1
_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Cleanable:
    """Clean and dirty bytes of a log, and whether a pass is overdue.

    ``segments`` is the number of segments that a pass would read; ``first_dirty_offset`` is the
    first offset whose keys count.
    """

    first_dirty_offset: int
    segments: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool

    @property
    def dirty_ratio(self) -> float:
        """Dirty share of the cleanable log."""
        return self.dirty_bytes / max(1, self.clean_bytes + self.dirty_bytes)

    def is_due(self, min_dirty_ratio: float) -> bool:
        """Return whether a pass is due."""
        return self.dirty_bytes > 0 and (self.is_overdue or self.dirty_ratio > min_dirty_ratio)


def survey(log: "PartitionLog", now_ms: int) -> Cleanable | None:
    """Return the log's bytes to compact, or None if it is not due."""
    cleaning = log.cleaning
    if (
        not log.config.is_compacted
        or log.closed
        or log.directory.is_apart
        or cleaning.failure is not None
        or cleaning.swaps_under_way
        or cleaning.scans
        or len(log.segments) == 1
    ):
        return None
    first_dirty_offset = max(cleaning.clean_offset, log.log_start_offset)
    first_dirty = log.segment_at(first_dirty_offset)
    end = _end(log, first_dirty, now_ms)
    dirty = log.segments[first_dirty:end]
    return Cleanable(
        first_dirty_offset,
        max(end, first_dirty),
        sum(segment.size_bytes for segment in log.segments[:first_dirty]),
        sum(segment.size_bytes for segment in dirty),
        _is_overdue(log, dirty, now_ms),
    )


def _end(log: "PartitionLog", first_dirty: int, now_ms: int) -> int:
    """Return the index of the first dirty segment that must not be cleaned."""
    stable_offset = min(log.high_watermark, log.last_stable_offset)
    lag_ms = log.config.min_compaction_lag_ms
    for at in range(first_dirty, len(log.segments) - 1):
        segment = log.segments[at]
        if segment.end_offset > stable_offset or segment.written_bytes < segment.size_bytes:
            return at
        if log.damaged and segment.end_offset > log.damaged[0].base_offset:
            return at
        if lag_ms > 0 and _youngest_ms(segment) > now_ms - lag_ms:
            return at
    return len(log.segments) - 1


def _youngest_ms(segment: ReadableSegment) -> int:
    """Return the newest timestamp, or the time when this process first saw the segment."""
    timestamp_ms = segment.max_timestamp_ms
    return timestamp_ms if timestamp_ms >= 0 else segment.created_ms


def _is_overdue(log: "PartitionLog", dirty: list[ReadableSegment], now_ms: int) -> bool:
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms == LONG_MAX:
        return False
    oldest_ms = [segment.oldest_timestamp_ms() for segment in dirty]
    return any(0 <= timestamp_ms < now_ms - lag_ms for timestamp_ms in oldest_ms)


def plan(
    log: "PartitionLog",
    cleanable: Cleanable,
    *,
    now_ms: int,
    map_bytes: int,
    salt: bytes,
) -> CleaningPlan:
    """Return the plan of a pass over the present ``log``."""
    segments = log.segments[: cleanable.segments]
    config = log.config
    return CleaningPlan(
        path=log.directory.path,
        make_directory=log.directory.make_if_missing,
        segments=tuple(
            SourceSegment(
                segment.base_offset,
                segment.end_offset,
                segment.size_bytes,
                segment.base_offset < max(log.cleaning.compacted_offset, log.log_start_offset),
                _elsewhere(segment, log.log_start_offset),
            )
            for segment in segments
        ),
        first_dirty_offset=cleanable.first_dirty_offset,
        aborted=tuple(log.aborted_transactions(segments[0].base_offset, segments[-1].end_offset)),
        producers=partial(_last_offsets, list(log.producers.entries()), segments[-1].end_offset),
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        index_bytes=config.index_size_max_bytes,
        index_interval_bytes=config.index_interval_bytes,
        map_bytes=map_bytes,
        generation=log.cleaning.new_generation(log.leader_epoch),
        salt=salt,
    )


def _elsewhere(segment: ReadableSegment, log_start_offset: int) -> StoredSource | None:
    """Return the records of a segment that has no file here; some before the start are deleted."""
    if isinstance(segment, Segment):
        return None
    begin = max(segment.base_offset, log_start_offset)
    return StoredSource(begin, segment.data_end_offset, partial(_plan_from, segment))


def _plan_from(segment: ReadableSegment, offset: int) -> ReadPlan:
    """Return the read of the next piece of a segment, whose gaps the pass checks."""
    return segment.span(offset, segment.end_offset, _PIECE_BYTES, (0, 0), has_gaps=True)


def _last_offsets(
    entries: Iterable["ProducerEntry"], end_offset: int
) -> dict[int, tuple[int, int]]:
    """Return last offset and epoch of each producer whose last batch is before ``end_offset``.

    There may be very many, so this runs on the pass's thread beside the loop: anything that the
    loop changes meanwhile is beyond the pass. A producer's new epoch is registered before the old
    epoch's batches are removed.
    """
    found = {}
    for entry in entries:
        last = entry.batches[-1:]
        last_offset = last[0].last_offset if last else _NO_OFFSET
        if last_offset < end_offset:
            found[entry.producer_id] = last_offset, entry.epoch
    return found
