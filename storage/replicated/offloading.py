"""Segments that leave the leader's disk, once the store has their records behind a snapshot.

The log's readers get them from the store from then on, as after a takeover. Small segments that
leave one after the other become one, or a disk with little room would leave thousands of them in
memory, and in the store. A compacted log keeps all of its segments here (``log_parts.py``). On the
loop, except ``excess``, ``largest`` and ``facts_of``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.storage.log.segment_names import OFFSET_DELTA_MAX
from barnabas.storage.replicated.log_parts import has_parts, part_of
from barnabas.storage.replicated.remote_segment import RemoteSegment

if TYPE_CHECKING:
    from barnabas.storage.log.config import LogConfig
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.log.segment import Segment
    from barnabas.storage.replicated.cold_store import ColdStore
    from barnabas.storage.replicated.log_index import LogPart
    from barnabas.storage.replicated.log_parts import PartFacts


JOINED_BYTES_MAX: Final = 64 * 1024 * 1024
JOINED_TRANSACTIONS_MAX: Final = 1000
"""Maximum size of a segment of several that have left, and number of its aborted transactions."""


class Leaving(NamedTuple):
    """A segment that the store has, too; the oldest sorts first."""

    max_timestamp_ms: int
    partition_id: int
    base_offset: int
    log: PartitionLog
    segment: Segment


class LogBytes(NamedTuple):
    """Some bytes of a log: those on the disk, for example, or those without a snapshot."""

    size_bytes: int
    log: PartitionLog


def leaving_of(log: PartitionLog, snapshot_offset: int) -> Iterator[Leaving]:
    """Yield the sealed segments of a log that end before its snapshot in the store."""
    if not has_parts(log) or log.directory.is_apart:
        return
    for segment in log.local_segments[:-1]:
        if segment.end_offset <= snapshot_offset:
            place = segment.max_timestamp_ms, log.partition_id, segment.base_offset
            yield Leaving(*place, log, segment)


def staying_of(log: PartitionLog, leaving: Iterable[Leaving]) -> LogBytes:
    """Return the bytes of a log that stay on the disk when the ``leaving`` ones have left.

    They can leave after a roll and a snapshot.
    """
    if not has_parts(log):
        return LogBytes(0, log)
    size_bytes = sum(segment.disk_bytes for segment in log.local_segments)
    return LogBytes(size_bytes - sum(each.segment.disk_bytes for each in leaving), log)


def largest(sizes: Iterable[LogBytes], excess_bytes: int) -> list[PartitionLog]:
    """Return the logs with the most bytes, so many that they have ``excess_bytes`` together."""
    found = []
    for size_bytes, log in sorted(sizes, key=lambda each: -each.size_bytes):
        if excess_bytes <= 0 or not size_bytes:
            break
        excess_bytes -= size_bytes
        found.append(log)
    return found


def excess(leaving: Iterable[Leaving], kept_bytes: int, left_bytes: int = 0) -> list[Leaving]:
    """Return the oldest segments, so that the others have at most ``kept_bytes``.

    ``left_bytes``: free space of the disk; if it is negative, as many bytes leave at least.
    """
    segments = sorted(leaving, key=lambda each: each[:3])
    excess_bytes = sum(each.segment.disk_bytes for each in segments) - kept_bytes
    excess_bytes = max(excess_bytes, -left_bytes)
    found = []
    for each in segments:
        if excess_bytes <= 0:
            break
        excess_bytes -= each.segment.disk_bytes
        found.append(each)
    return found


def facts_of(leaving: Leaving) -> tuple[LogPart, PartFacts]:
    """Return a segment as a part; may wait for the disk, which has its indexes.

    Raises Corrupt, OSError.
    """
    return part_of(leaving.segment)


def offload(leaving: Leaving, found: tuple[LogPart, PartFacts], cold: ColdStore) -> bool:
    """Replace a segment by a remote one; return False if it must stay, or has left its log since.

    ``found`` is the result of ``facts_of``. The next checkpoint removes the files.
    """
    log, segment = leaving.log, leaving.segment
    at = log.segment_at(segment.base_offset)
    if log.segments[at] is not segment or log.cleaning.scans or not has_parts(log):
        return False
    part, facts = found
    before = log.segments[at - 1] if at else None
    segment.discard()
    log.dirty_segments.discard(segment)
    if isinstance(before, RemoteSegment) and _fit(before, segment, log.config):
        log.segments[at - 1 : at + 1] = [before.joined(part, facts)]
        log.dropped_segments += [before, segment]
        return True
    log.segments[at] = RemoteSegment(
        log.partition_id,
        part,
        facts,
        cold,
        created_ms=segment.created_ms,
        first_timestamp_ms=segment.first_timestamp_ms,
    )
    log.dropped_segments.append(segment)
    return True


def _fit(before: RemoteSegment, segment: Segment, config: LogConfig) -> bool:
    """Whether one segment could have had the batches of both, so that retention notices nothing."""
    first_ms, last_ms = before.first_timestamp_ms, segment.max_timestamp_ms
    return (
        before.size_bytes + segment.size_bytes <= min(JOINED_BYTES_MAX, config.segment_bytes)
        and segment.end_offset - before.base_offset <= OFFSET_DELTA_MAX
        and len(before.transactions) + len(segment.transactions) <= JOINED_TRANSACTIONS_MAX
        and first_ms >= 0
        and 0 <= last_ms - first_ms <= config.segment_ms
    )
