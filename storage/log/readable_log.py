"""The part of a partition's log that its readers use: its bounds, its segments, and its batches.

``PartitionLog`` adds the part that changes them.
"""

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter
from typing import Final

from barnabas.storage.errors import Corrupt, LogClosed, OffsetOffline, OffsetOutOfRange
from barnabas.storage.journal.journal import StoredBatches
from barnabas.storage.log.damage import DamagedRange, range_at, sound_part
from barnabas.storage.log.index import AbortedTransaction
from barnabas.storage.log.leader_epochs import end_of_epoch, epoch_at
from barnabas.storage.log.log_directory import LogDirectory
from barnabas.storage.log.memory_read import MemorySlice, read_memory
from barnabas.storage.log.producers import ProducerState
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.segment_read import ReadPlan
from barnabas.storage.log.segment_swap import CleaningState

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1

NOWHERE: Final = -1
"""The end offset of a forgotten log: it is below each offset that a reader may request."""

_base_offset = attrgetter("base_offset")


class ReadableLog:
    """Bounds, segments and visible batches of one partition; on the loop."""

    def __init__(
        self,
        directory: LogDirectory,
        now_ms: Callable[[], int],
        *,
        partition_id: int,
        topic: str,
        partition: int,
        leader_epoch: int,
    ) -> None:
        """Create an empty log without a segment, at offset 0. ``now_ms``: the wall clock."""
        self._now_ms = now_ms
        self.directory = directory
        self.partition_id = partition_id
        self.topic = topic
        self.partition = partition
        self.segments: list[ReadableSegment] = []
        self.leader_epoch = leader_epoch
        self.log_start_offset = 0
        self.next_offset = 0
        self.high_watermark = 0
        self.producers = ProducerState()
        self.leader_epochs: list[tuple[int, int]] = []
        self.unflushed: list[StoredBatches] = []
        self.cleaning = CleaningState()
        self.damaged: list[DamagedRange] = []
        """The ranges of this log that cannot be served, in the order of offsets."""

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.partition}>"

    @property
    def topic_id(self) -> bytes:
        """Topic ID, 16 bytes."""
        return self.directory.topic_id

    def now_ms(self) -> int:
        """Return the time of the broker's wall clock."""
        return self._now_ms()

    @property
    def local_segments(self) -> list[Segment]:
        """The segments whose files are in this broker's data directory, the active one last."""
        return [segment for segment in self.segments if isinstance(segment, Segment)]

    def segment_at(self, offset: int) -> int:
        """Return the index in ``segments`` of the segment that holds ``offset``."""
        return max(0, bisect_right(self.segments, offset, key=_base_offset) - 1)

    @property
    def last_stable_offset(self) -> int:
        """Offset of the first open transaction, at which `read_committed` reads stop (L3)."""
        stable = self.producers.last_stable_offset(self.high_watermark)
        return max(stable, self.log_start_offset)

    def visible_end(self, isolation: int) -> int:
        """Return the offset at which a read of this isolation level stops."""
        return self.high_watermark if isolation == READ_UNCOMMITTED else self.last_stable_offset

    def plan_read(
        self, offset: int, max_bytes: int, isolation: int = READ_UNCOMMITTED
    ) -> ReadPlan | MemorySlice | None:
        """Return the location of the batches from ``offset`` on, or ``None`` if none is visible.

        Raises OffsetOutOfRange below the log start or above the log end, OffsetOffline in a damaged
        range, LogClosed when the log is forgotten. No plan reaches into a damaged range.
        """
        if not self.log_start_offset <= offset <= self.next_offset:
            self.refuse_when_forgotten()
            raise OffsetOutOfRange(
                f"offset {offset} is outside {self.log_start_offset}..{self.next_offset}"
            )
        end = self.visible_end(isolation)
        if offset >= end:
            return None
        unflushed = self.unflushed
        if unflushed and unflushed[0].base_offset <= offset:
            return read_memory(unflushed, offset, end, max_bytes)
        at = self.segment_at(offset)
        # A segment may end in offsets that compaction emptied: then the next one has the data.
        while at + 1 < len(self.segments) and self.segments[at].data_end_offset <= offset:
            at += 1
        segment = self.segments[at]
        if unflushed and unflushed[0].base_offset <= segment.base_offset:
            return read_memory(unflushed, segment.base_offset, end, max_bytes)
        within = 0, segment.written_bytes
        if self.damaged:
            begin = max(offset, segment.base_offset)
            self._refuse_damaged(begin)
            end, within = sound_part(self.damaged, segment.base_offset, begin, end, within)
        has_gaps = segment.base_offset < self.cleaning.compacted_offset
        return segment.span(offset, end, max_bytes, within, has_gaps=has_gaps)

    def _refuse_damaged(self, offset: int) -> None:
        """Raise OffsetOffline in a damaged range."""
        damage = range_at(self.damaged, offset)
        if damage is not None:
            offline = OffsetOffline(f"{self.topic}-{self.partition}: {damage}")
            if damage.is_unreadable:
                self.report_suspected(damage.segment, offline)
            raise offline

    def suspect(self, offset: int, error: Exception) -> None:
        """Request the verification of the segment in which a read at ``offset`` failed.

        ``error`` names the segment if it is Corrupt.
        """
        name = error.path.rpartition("/")[2] if isinstance(error, Corrupt) else ""
        bases = [each.base_offset for each in self.segments if each.log_name == name]
        base = bases[0] if bases else self.segments[self.segment_at(offset)].base_offset
        self.report_suspected(base, error)

    def report_suspected(self, base_offset: int, error: Exception) -> None:
        """Request the verification of the segment at ``base_offset`` after a failed read."""
        raise NotImplementedError

    @property
    def size_bytes(self) -> int:
        """Size of all segments without indexes."""
        return sum(segment.size_bytes for segment in self.segments)

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Return aborted transactions that overlap [offset, upper_offset), maybe more (L10)."""
        found: list[AbortedTransaction] = []
        segments = self.segments
        for at in range(self.segment_at(offset), len(segments)):
            transactions = segments[at].transactions
            if len(transactions):
                aborted, complete = transactions.collect(offset, upper_offset)
                found += aborted
                if complete:
                    break
        return found

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to ``epoch`` and its end, or (-1, -1) for a future epoch.

        KIP-320: see ``leader_epochs``. Raises LogClosed when the log is forgotten.
        """
        self.refuse_when_forgotten()
        if not 0 <= epoch <= self.leader_epoch:
            return -1, -1
        if epoch == self.leader_epoch:
            return epoch, self.next_offset
        return end_of_epoch(self.leader_epochs, epoch, self.next_offset)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch of the record at ``offset``, or -1 before the first epoch."""
        return epoch_at(self.leader_epochs, offset)

    def refuse_when_forgotten(self) -> None:
        """Raise LogClosed for a log that is led elsewhere, or loaded again."""
        if self.next_offset == NOWHERE:
            raise LogClosed(f"{self.topic}-{self.partition} is led elsewhere, or loaded again")
