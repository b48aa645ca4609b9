"""Segments that leave the leader's disk, once the store has their records behind a snapshot.

The log's readers get them from the store from then on, as after a takeover. A compacted log keeps
all of its segments here (``log_parts.py``). On the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from barnabas.storage.replicated.log_parts import has_parts, part_of
from barnabas.storage.replicated.remote_segment import RemoteSegment

if TYPE_CHECKING:
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.log.segment import Segment
    from barnabas.storage.replicated.cold_store import ColdStore


class Leaving(NamedTuple):
    """A segment that the store has, too; the oldest sorts first."""

    max_timestamp_ms: int
    partition_id: int
    base_offset: int
    log: PartitionLog
    segment: Segment


def leaving_of(log: PartitionLog, snapshot_offset: int) -> Iterator[Leaving]:
    """Yield the segments of a log that are complete here, and before its snapshot in the store."""
    if not has_parts(log) or log.directory.is_apart:
        return
    for segment in log.local_segments[:-1]:
        if segment.end_offset <= snapshot_offset and segment.is_settled:
            place = segment.max_timestamp_ms, log.partition_id, segment.base_offset
            yield Leaving(*place, log, segment)


def offload(leaving: Iterable[Leaving], kept_bytes: int, cold: ColdStore) -> int:
    """Replace the oldest segments by remote ones until the others have at most ``kept_bytes``.

    Returns their number. The next checkpoint removes their files.
    """
    segments = sorted(leaving, key=lambda each: each[:3])
    excess_bytes = sum(each.segment.size_bytes for each in segments) - kept_bytes
    count = 0
    for each in segments:
        if excess_bytes <= 0:
            break
        excess_bytes -= each.segment.size_bytes
        count += _replace(each.log, each.segment, cold)
    return count


def _replace(log: PartitionLog, segment: Segment, cold: ColdStore) -> bool:
    at = log.segment_at(segment.base_offset)
    if log.segments[at] is not segment or log.cleaning.scans:
        return False
    part, facts = part_of(segment)
    remote = RemoteSegment(log.partition_id, part, facts, cold, created_ms=segment.created_ms)
    log.segments[at] = remote
    log.dirty_segments.discard(segment)
    log.dropped_segments.append(segment)
    return True
