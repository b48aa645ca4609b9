"""Segments that leave the leader's disk, once the store has their records behind a snapshot.

The log's readers get them from the store from then on, as after a takeover. Small segments that
leave one after the other become one, or a disk with little room would leave thousands of them in
memory, and in the store.

A segment that compaction has written leaves once the store has followed it
(``stored_compaction.py``): until then the store has other records. Segments that a running pass has
yet to read stay, and so does a log that its coordinator has yet to read. On the loop, except
``excess``, ``largest`` and ``facts_of``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


class LeavingFacts(NamedTuple):
    """A segment as a part, with its facts, and the offset after its last batch."""

    part: LogPart
    facts: PartFacts
    data_end_offset: int


class Local(NamedTuple):
    """The bytes of a log on the disk, by when they can leave it."""

    leaving: Sequence[Leaving]
    """Segments that can leave now."""
    later: LogBytes
    """Bytes that can leave after a roll and a snapshot."""
    stuck_bytes: int
    """Size of the segments that wait for a compaction."""


def can_leave(log: PartitionLog) -> bool:
    """Whether segments of a log may leave the disk."""
    return not (log.damaged or log.directory.is_apart or log.cleaning.awaits_replay)


def leaving_of(log: PartitionLog, snapshot_offset: int) -> Iterator[Leaving]:
    """Yield the sealed segments of a log that end before its snapshot in the store."""
    if not can_leave(log):
        return
    for segment in log.local_segments[:-1]:
        if segment.end_offset <= snapshot_offset and not _is_stuck(log, segment):
            place = segment.max_timestamp_ms, log.partition_id, segment.base_offset
            yield Leaving(*place, log, segment)


def local_of(log: PartitionLog, snapshot_offset: int) -> Local:
    """Return the bytes of a log on the disk."""
    if not can_leave(log):
        return Local((), LogBytes(0, log), 0)
    leaving = [*leaving_of(log, snapshot_offset)]
    segments = log.local_segments
    stuck_bytes = sum(each.disk_bytes for each in segments if _is_stuck(log, each))
    size_bytes = sum(each.disk_bytes for each in segments) - stuck_bytes
    size_bytes -= sum(each.segment.disk_bytes for each in leaving)
    return Local(leaving, LogBytes(size_bytes, log), stuck_bytes)


def _is_stuck(log: PartitionLog, segment: Segment) -> bool:
    """Whether a segment waits for the end of a pass, or for the store to follow one."""
    is_written = segment.differs_from_store or segment.is_pinned
    return is_written or segment.base_offset in log.cleaning.unread


def unfollowed_bytes(logs: Iterable[PartitionLog]) -> int:
    """Return the size of the segments that compaction has written, and the store not followed."""
    return sum(
        segment.size_bytes
        for log in logs
        if log.cleaning.swaps and not log.damaged
        for segment in log.local_segments
        if segment.differs_from_store
    )


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


def facts_of(leaving: Leaving) -> LeavingFacts:
    """Return the facts about a segment; may wait for the disk, which has its indexes.

    Raises Corrupt, OSError.
    """
    return LeavingFacts(*part_of(leaving.segment), leaving.segment.data_end_offset)


def offload(leaving: Leaving, found: LeavingFacts, cold: ColdStore) -> bool:
    """Replace a segment by a remote one; return False if it must stay, or has left its log since.

    ``found`` is the result of ``facts_of``. The next checkpoint removes the files.
    """
    log, segment = leaving.log, leaving.segment
    at = log.segment_at(segment.base_offset)
    if log.segments[at] is not segment or log.cleaning.scans or not can_leave(log):
        return False
    if _is_stuck(log, segment):
        return False
    part, facts, data_end_offset = found
    before = log.segments[at - 1] if at else None
    segment.discard()
    log.dirty_segments.discard(segment)
    if isinstance(before, RemoteSegment) and _fit(before, segment, log.config):
        log.segments[at - 1 : at + 1] = [before.joined(part, facts, data_end_offset)]
        log.dropped_segments += [before, segment]
        return True
    log.segments[at] = RemoteSegment(
        log.partition_id,
        part,
        facts,
        cold,
        created_ms=segment.created_ms,
        is_stored=has_parts(log),
        first_timestamp_ms=segment.first_timestamp_ms,
        data_end_offset=data_end_offset,
        has_gaps=not has_parts(log),
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
