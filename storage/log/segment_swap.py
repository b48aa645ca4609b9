"""Putting cleaned segments in the place of old ones, so that a crash leaves one or the other.

The new files are durable under names of their own (``<stem>.log.<generation>.cleaned``) before the
swap begins. Then, in this order:

1. On the loop the log takes the new segment over in memory, through the file that is open already;
   readers that hold an old file keep it.
2. The next checkpoint says what the log consists of now, and names the swap: that is the moment
   from which only the new segment counts. A crash before it finds the old files untouched and
   removes the new ones; the journal still has what the checkpoint before did not.
3. The segment thread renames the new files over the old ones and removes the others. A crash in the
   middle of that is finished by recovery, which finds the swap in the checkpoint; doing it twice
   changes nothing.
4. The checkpoint after that no longer names the swap: it has synced the directory.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.storage.log.checkpoint import SegmentSwap
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_names import (
    CLEANED_SUFFIX,
    SEGMENT_SUFFIXES,
    cleaned_name,
    file_stem,
)

if TYPE_CHECKING:
    from barnabas.storage.log.cleaned_segment import CleanedGroup
    from barnabas.storage.log.log_directory import LogDirectory
    from barnabas.storage.log.partition_log import PartitionLog


def finish(swap: SegmentSwap, directory: "LogDirectory") -> None:
    """Do the remaining renames and removals of a swap. Syncs nothing."""
    if directory.removed:
        return
    for at, base_offset in enumerate(swap.replaced):
        for suffix in SEGMENT_SUFFIXES:
            name = file_stem(base_offset) + suffix
            if at:
                directory.unlink(name)
            else:
                directory.put_in_place(cleaned_name(name, swap.generation), name)


@dataclass(slots=True)
class PendingSwap:
    """A swap that no checkpoint has named yet, and the segment that waits for its files' names."""

    swap: SegmentSwap
    segment: Segment


@dataclass(slots=True)
class CleaningState:
    """Compaction state of a log; belongs to the loop."""

    clean_offset: int = 0
    """The offset below which no key occurs twice."""
    compacted_offset: int = 0
    """The offset below which offsets may be missing: a pass may end before all its work is done."""
    pending: list[PendingSwap] = field(default_factory=list)
    swaps_under_way: int = 0
    """Number of segments whose files do not have their names yet."""
    unread: range = range(0)
    """The offsets that a running pass has yet to read: their segments stay as they are."""
    awaits_replay: bool = False
    """Whether a coordinator has yet to read the log from its files."""
    scans: int = 0
    """Number of readers that walk over the segments, during which none may be replaced."""
    passes: int = 0
    """Number of passes that this process has planned."""
    swaps: int = 0
    """Number of times that segments were replaced. Batches that were read before a replacement, and
    their entries of the transaction index, may not exist after it."""
    failure: str | None = None
    """Reason why this log is excluded from compaction until the next start, or None."""
    unreadable_offset: int = -1
    """The offset below which all unreadable batches are known; they stay."""

    def new_generation(self, leader_epoch: int) -> int:
        """Return a number that no earlier pass over this log had, in any process.

        A checkpoint names a swap until the next one, and a crash finishes it again: by then a later
        pass may be writing a segment of the same base offset.
        """
        self.passes += 1
        return leader_epoch << 32 | self.passes

    def take_pending(self) -> list[PendingSwap]:
        """Return the swaps for the next checkpoint, and forget them."""
        pending, self.pending = self.pending, []
        return pending

    def finished(self, pending: PendingSwap) -> None:
        """Note that the files of a swap have their final names."""
        self.swaps_under_way -= 1
        pending.segment.unpin()


def take_over(log: "PartitionLog", group: "CleanedGroup") -> bool:
    """Put the new segment into ``log``; return False if the log has changed too much.

    Then the group's files are of no use: ``discard`` them.
    """
    if log.cleaning.scans or log.closed:
        return False
    if group.changed and not _replace(log, group):
        return False
    if group.last:
        log.cleaning.clean_offset = max(log.cleaning.clean_offset, group.clean_offset)
    return True


def _replace(log: "PartitionLog", group: "CleanedGroup") -> bool:
    found = _find(log, group.replaced)
    if found is None:
        return False
    start, end = found
    base_offset = group.replaced[0]
    segment = log.open_segment(base_offset)
    file = log.directory.open(cleaned_name(segment.log_name, group.generation))
    offsets = group.data_end_offset, group.end_offset
    segment.take_cleaned(file, group.index, group.transactions, group.size_bytes, offsets)
    for old in log.segments[start:end]:
        if isinstance(old, Segment):
            log.dirty_segments.discard(old)
            old.retire(segment)
        else:
            log.dropped_segments.append(old)
    log.segments[start:end] = [segment]
    swap = SegmentSwap(log.partition_id, group.generation, group.replaced)
    log.cleaning.pending.append(PendingSwap(swap, segment))
    log.cleaning.swaps_under_way += 1
    log.cleaning.swaps += 1
    log.cleaning.compacted_offset = max(log.cleaning.compacted_offset, group.end_offset)
    return True


def _find(log: "PartitionLog", bases: Sequence[int]) -> tuple[int, int] | None:
    """Return the range of the segments with these base offsets, or None unless all are adjacent."""
    start = log.segment_at(bases[0])
    end = start + len(bases)
    present = [segment.base_offset for segment in log.segments[start:end]]
    return (start, end) if present == list(bases) and end < len(log.segments) else None


def discard(directory: "LogDirectory", group: "CleanedGroup") -> None:
    """Remove the files of a cleaned group that is not used. Waits for the disk."""
    for suffix in SEGMENT_SUFFIXES:
        directory.unlink(cleaned_name(file_stem(group.replaced[0]) + suffix, group.generation))


def recover_swaps(
    directory: "LogDirectory", swaps: Sequence[SegmentSwap], names: Sequence[str]
) -> bool:
    """Finish the checkpoint's swaps, remove files of others; returns whether there was any.

    Durable on return: nothing after this may find a segment half in place.
    """
    leftovers = {name for name in names if name.endswith(CLEANED_SUFFIX)}
    if not swaps and not leftovers:
        return False
    for swap in swaps:
        finish(swap, directory)
    for name in leftovers:
        directory.unlink(name)
    directory.file_system.sync_directory(directory.path)
    return True
