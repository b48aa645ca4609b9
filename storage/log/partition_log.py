"""The log of one partition, with Kafka's semantics of offsets, producers and visibility.

Rules of this file:

1. Only the loop calls it. An append is synchronous: it is checked, gets its offsets and is placed
   at once; the response waits for ``Appended.group`` (D1). Producer state changes at append
   time, so the next append is checked against everything in the pipeline (S12).
2. A refused append changes nothing (S5): every check comes before the first change.
3. Only durable records are visible: the high watermark follows the journal. It moves before the
   sync only if no response leaves before the sync. Reads beyond the segment files use the groups in
   memory, up to the high watermark.
4. The log start moves only when its journal entry is durable.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Protocol

from barnabas.protocol.records import (
    NOT_COMPUTED,
    TRANSACTIONAL_BIT,
    BatchHeader,
    place_batch,
    read_header,
    stamp_log_append_time,
    with_corrected_header,
)
from barnabas.storage.batches.batch_contents import Contents
from barnabas.storage.counts import LogCounts, Traffic
from barnabas.storage.errors import (
    PRODUCER_REFUSALS,
    LogClosed,
    OffsetOutOfRange,
    StorageFull,
)
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.appended import Appended
from barnabas.storage.journal.journal import (
    CommitGroup,
    Journal,
    Operation,
    SegmentFile,
    StoredBatches,
    WhenDurable,
)
from barnabas.storage.journal.journal_format import KIND_BATCHES, KIND_LOG_START
from barnabas.storage.log.batch_rules import BatchRules
from barnabas.storage.log.checkpoint import encode_leader_epochs
from barnabas.storage.log.config import LOG_APPEND_TIME, LogConfig
from barnabas.storage.log.damage import from_offset
from barnabas.storage.log.index import AbortedTransaction
from barnabas.storage.log.log_directory import LEADER_EPOCH_CHECKPOINT, LogDirectory
from barnabas.storage.log.memory_read import NEXT_OFFSET
from barnabas.storage.log.readable_log import NOWHERE, ReadableLog
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.segment import Segment
from barnabas.storage.log.snapshot_files import SnapshotFiles
from barnabas.storage.log.transaction_marker import TransactionMarker


class Environment(Protocol):
    """The side of the store that a log calls."""

    journal: Journal
    full: bool
    """Whether appends of clients are refused, because no more than the disk's reserve is free
    (D10)."""
    exhausted: bool
    """Whether the reserve is used up as well: markers are refused too."""
    is_cache: bool
    """Whether no later process reads the files, because the records are in a cluster's store."""
    duplicates: int
    """The number of repeated batches of all logs, with those of deleted logs."""

    @property
    def now_ms(self) -> Callable[[], int]:
        """Return the time of the wall clock."""

    def on_advanced(self, log: "PartitionLog", count: int, size_bytes: int) -> None:
        """Report that a log's visible end moved by ``count`` offsets; with 0 its start moved."""

    def on_suspected(self, log: "PartitionLog", base_offset: int, error: Exception) -> None:
        """Request the verification of the segment at ``base_offset`` after a failed read."""


class PartitionLog(ReadableLog):
    """Offsets, batches, producers and visibility of one partition."""

    def __init__(
        self,
        environment: Environment,
        directory: LogDirectory,
        *,
        partition_id: int,
        topic: str,
        partition: int,
        config: LogConfig,
        leader_epoch: int,
    ) -> None:
        """Create an empty log at offset 0; ``barnabas.storage.store.recovery`` fills it."""
        super().__init__(
            directory,
            environment.now_ms,
            partition_id=partition_id,
            topic=topic,
            partition=partition,
            leader_epoch=leader_epoch,
        )
        self._environment = environment
        self.journal = environment.journal
        self.configure(config)
        self.journaled_start_offset = 0
        """The log start offset once everything appended so far is durable."""
        self.active = self.open_segment(self.next_offset)
        self.segments.append(self.active)
        self.dirty_segments: set[Segment] = set()
        self.dropped_segments: list[ReadableSegment] = []
        self.snapshots = SnapshotFiles()
        self.appended_bytes = 0
        self._announced_bytes = 0
        self.counts = LogCounts()
        self.closed = False

    def configure(self, config: LogConfig) -> None:
        """Apply new settings from the next append on."""
        self.config = config
        self.rules = BatchRules(f"{self.topic}-{self.partition}", config, self._now_ms)
        if self.segments:
            self.active.check_room_again()

    # Appending

    def append(
        self,
        batch: memoryview,
        *,
        stable: bool = False,
        transaction_version: int = 0,
        contents: Contents | None = None,
    ) -> Appended:
        """Append one client batch as received; raises a ``Rejected`` without a change.

        ``stable`` states that no other code changes the batch's memory, so the log may keep it and
        patch its header in place; otherwise the batch is copied before this returns.
        ``transaction_version`` is the version of the batch's transaction protocol. The caller must
        have verified the transaction with the coordinator (P1). ``contents`` is the result of a
        scan of the batch, if any. Raises TooMuchToLookHere if the batch needs one on a thread.
        """
        header = self.check_client_batch(batch, contents)
        if header.producer_id >= 0:
            in_transaction = header.attributes & TRANSACTIONAL_BIT
            decision = self.producers.check(
                header, transaction_version=transaction_version if in_transaction else 0
            )
            if decision.error:
                raise PRODUCER_REFUSALS[decision.error](
                    f"producer {header.producer_id} epoch {header.producer_epoch} "
                    f"sequence {header.base_sequence}"
                )
            original = decision.duplicate
            if original is not None:
                self._count_duplicate()
                return Appended(
                    original.base_offset,
                    original.timestamp,
                    self.log_start_offset,
                    self._durability_of(original.last_offset),
                )
        return self._place(batch, header, stable=stable)

    def append_records(self, batch: memoryview) -> Appended:
        """Append a batch of a coordinator of this broker, without the rules for clients.

        Like a marker it may use the disk's reserve: coordinators' decisions free space and end
        waits.
        """
        self._refuse_when_closed()
        if self._environment.exhausted:
            raise StorageFull(f"{self.topic}-{self.partition}: the disk is full")
        header = read_header(batch)
        error = self.producers.check_epoch(header.producer_id, header.producer_epoch)
        if error:
            raise PRODUCER_REFUSALS[error](f"producer {header.producer_id}")
        return self._place(batch, header, stable=False)

    def append_marker(self, marker: TransactionMarker) -> Appended:
        """Append the control batch that ends a producer's transaction here (M1, M3, M6)."""
        self._refuse_when_closed()
        error = self.producers.check_marker(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.transaction_version,
        )
        if error:
            raise PRODUCER_REFUSALS[error](f"marker of producer {marker.producer_id}")
        if self._environment.exhausted:
            raise StorageFull(f"{self.topic}-{self.partition}: the disk is full")
        now_ms = self._now_ms()
        appended = self._put(marker.batch(now_ms), 0, now_ms, stable=False)
        timestamp = max(now_ms, appended.log_append_time_ms)
        self.producers.forget_decided(self.high_watermark)
        self.end_transaction(self.active, marker, appended.base_offset, timestamp, now_ms)
        return appended

    def check_client_batch(self, batch: Buffer, contents: Contents | None = None) -> BatchHeader:
        """Apply the rules of a client's batch; raises a ``Rejected`` or TooMuchToLookHere."""
        if self.closed or self._environment.full:
            self._refuse_when_unable()
        return self.rules.check(batch, contents)

    def _refuse_when_unable(self) -> None:
        self._refuse_when_closed()
        if self._environment.full:
            raise StorageFull(f"{self.topic}-{self.partition}: the disk is full")

    def _refuse_when_closed(self) -> None:
        if self.closed:
            raise LogClosed(f"{self.topic}-{self.partition} is closed")

    def _place(self, batch: memoryview, header: BatchHeader, *, stable: bool) -> Appended:
        """Append a data batch and update the producer state."""
        (_, _, _, _, crc, _, last_offset_delta, _, max_timestamp, producer_id, _, _, _) = header
        if crc == NOT_COMPUTED:
            batch, stable = memoryview(with_corrected_header(batch, header)), True
        appended = self._put(batch, last_offset_delta, max_timestamp, stable=stable)
        if producer_id >= 0:
            stamp_ms = appended.log_append_time_ms
            timestamp = max_timestamp if stamp_ms < 0 else stamp_ms
            now_ms = self._now_ms()
            self.producers.placed(header, appended.base_offset, timestamp, now_ms)
        return appended

    def _put(
        self, batch: memoryview, last_offset_delta: int, max_timestamp: int, *, stable: bool
    ) -> Appended:
        """Assign a batch its offsets and its place in the open commit group."""
        size = len(batch)
        group = self.journal.group_for(size)
        base_offset = self.next_offset
        chunk, start = group.add_body(batch, stable=stable)
        place_batch(chunk, start, size, base_offset, self.leader_epoch)
        append_time_ms = -1
        if self.config.timestamp_type == LOG_APPEND_TIME:
            append_time_ms = max_timestamp = self._now_ms()
            stamp_log_append_time(chunk, start, size, append_time_ms)
        next_offset = base_offset + last_offset_delta + 1
        group.add_entry(
            KIND_BATCHES, self.leader_epoch, self.partition_id, base_offset, next_offset, size, 1
        )
        self.store_batch(group, chunk, start, size, next_offset, max_timestamp, self.leader_epoch)
        return Appended(base_offset, append_time_ms, self.log_start_offset, group)

    def store_batch(
        self,
        group: CommitGroup,
        chunk: Buffer,
        start: int,
        size: int,
        next_offset: int,
        max_timestamp: int,
        epoch: int,
    ) -> None:
        """Reserve the batch's place in the active segment and queue its write."""
        base_offset = self.next_offset
        if not self.leader_epochs or self.leader_epochs[-1][0] != epoch:
            self.leader_epochs.append((epoch, base_offset))
            if not self._environment.is_cache:
                group.operations.append(self._leader_epochs_operation())
        segment = self.active
        last_offset = next_offset - 1
        if not segment.has_room(last_offset, max_timestamp, size):
            segment = self._segment_for(group, last_offset, max_timestamp, size)
        position = segment.reserve(last_offset, max_timestamp, size)
        end = start + size
        stored = StoredBatches(base_offset, next_offset, chunk, start, end, segment, position)
        self.queue(group, stored, batches=1)

    def queue(self, group: CommitGroup, stored: StoredBatches, *, batches: int) -> None:
        """Move the log end past ``stored``, which waits in ``group`` for journal and segment."""
        group.operations.append(stored)
        self.unflushed.append(stored)
        self.next_offset = next_offset = stored.next_offset
        self.appended_bytes += stored.end - stored.start
        self.snapshots.batches_since += batches
        group.ends[self] = (next_offset, self.appended_bytes)

    def end_transaction(
        self,
        segment: ReadableSegment,
        marker: TransactionMarker,
        offset: int,
        timestamp: int,
        now_ms: int,
    ) -> None:
        """Apply a marker stored at ``offset`` of ``segment`` to the producer state."""
        completed = self.producers.end_transaction(
            marker.producer_id,
            marker.producer_epoch,
            marker.coordinator_epoch,
            marker.commit,
            offset,
            timestamp,
            now_ms,
        )
        if completed is not None and completed.aborted:
            segment.add_aborted(
                AbortedTransaction(
                    completed.producer_id,
                    completed.first_offset,
                    completed.last_offset,
                    completed.last_stable_offset,
                )
            )

    def _leader_epochs_operation(self) -> Operation:
        text = encode_leader_epochs(self.leader_epochs)
        return lambda: self.directory.write_file(LEADER_EPOCH_CHECKPOINT, text)

    def _durability_of(self, last_offset: int) -> CommitGroup | None:
        """Return the commit group on which a duplicate of a batch depends, or ``None`` (S4)."""
        if last_offset < self.high_watermark:
            return None
        return self.journal.newest_group()

    # Counting

    def start_counting(self) -> None:
        """Set the traffic counts to zero, so that they exclude the replay of a recovery."""
        self.counts.start(self.next_offset, self.appended_bytes, self.snapshots.batches_since)

    def _count_duplicate(self, times: int = 1) -> None:
        self.counts.duplicates += times
        self._environment.duplicates += times

    def uncount_duplicate(self) -> None:
        """Undo the count of a duplicate by ``append``, before the same batch is appended again."""
        self._count_duplicate(-1)

    def traffic(self) -> Traffic:
        """Return the reads and writes of this log since it was opened."""
        batches_since = self.snapshots.batches_since
        return self.counts.traffic(self.next_offset, self.appended_bytes, batches_since)

    # Segments

    def _segment_for(
        self, group: CommitGroup, last_offset: int, max_timestamp: int, size: int
    ) -> Segment:
        config = self.config
        segment = self.active
        fits = segment.fits(last_offset, size, config.segment_bytes, config.index_size_max_bytes)
        roll_ms = config.roll_after_ms(self.partition_id, segment.base_offset)
        if not fits or segment.age_ms(max_timestamp, self._environment) > roll_ms:
            segment = self.roll(group)
            roll_ms = config.roll_after_ms(self.partition_id, segment.base_offset)
        self.dirty_segments.add(segment)
        segment.expect(config.segment_bytes, roll_ms, config.index_size_max_bytes)
        return segment

    def take_dirty_segments(self) -> set[Segment]:
        """Segments written since the last call; the next append marks the active one again."""
        dirty, self.dirty_segments = self.dirty_segments, set()
        self.active.check_room_again()
        return dirty

    def roll(self, group: CommitGroup) -> Segment:
        """Seal the active segment and open one at the log end; files follow with ``group``."""
        sealed = self.active
        sealed.seal()
        group.operations += [sealed.finish, sealed.index_operation()]
        if not self._environment.is_cache:
            group.operations.append(self.snapshot_operation())
        self.dirty_segments.add(sealed)
        self.active = self.open_segment(self.next_offset)
        self.segments.append(self.active)
        self.drop_segments_below_start()  # All records may be deleted.
        return self.active

    def snapshot_operation(self) -> Operation:
        """Write the producer state of this moment to its snapshot file, later, unsynced."""
        self.counts.batches += self.snapshots.batches_since
        return self.snapshots.operation(self.directory, self.producers, self.next_offset)

    # What the journal tells

    def durable_up_to(self, end: tuple[int, int]) -> None:
        """Make batches below an offset visible: they are durable."""
        high_watermark, durable_bytes = end
        count = high_watermark - self.high_watermark
        self.high_watermark = high_watermark
        size = durable_bytes - self._announced_bytes
        self._announced_bytes = durable_bytes
        self._environment.on_advanced(self, count, size)

    def written_up_to(self, end: tuple[int, int]) -> None:
        """Release the memory of batches below an offset: the segment files have them."""
        count = bisect_right(self.unflushed, end[0], key=NEXT_OFFSET)
        seen: SegmentFile | None = None
        for stored in reversed(self.unflushed[:count]):
            segment = stored.segment
            if segment is seen:
                continue  # Further on in it something was written too.
            seen = segment
            assert isinstance(segment, Segment)
            segment.written_bytes = stored.position + stored.end - stored.start
            assert segment.written_bytes <= segment.size_bytes
        del self.unflushed[:count]

    def report_suspected(self, base_offset: int, error: Exception) -> None:
        """See ``ReadableLog``."""
        self._environment.on_suspected(self, base_offset, error)

    # Moving the log start

    def delete_records(self, offset: int) -> CommitGroup | None:
        """Move the log start to ``offset``, or for -1 to the high watermark, once that is durable.

        Returns ``None`` if the log starts there already. Raises OffsetOutOfRange above the high
        watermark.
        """
        self.refuse_when_forgotten()
        target = self.high_watermark if offset == -1 else offset
        if not 0 <= target <= self.high_watermark:
            raise OffsetOutOfRange(f"cannot delete up to {offset}: visible is {target}")
        if target <= self.log_start_offset:
            return None
        self._refuse_when_closed()  # Not when the disk is full: this is what makes room.
        group = self.journal.group_for(0)
        group.add_entry(KIND_LOG_START, self.leader_epoch, self.partition_id, target, target, 0)
        self.journaled_start_offset = max(self.journaled_start_offset, target)
        group.add_waiter(WhenDurable(lambda: self._move_log_start(target)))
        return group

    def _move_log_start(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.drop_segments_below_start()
        self._environment.on_advanced(self, 0, 0)

    def drop_segments_below_start(self) -> None:
        """Drop segments before the log start, except the active one.

        Their files go after the next checkpoint: the present one may still name them.
        """
        while len(self.segments) > 1 and self.segments[1].base_offset <= self.log_start_offset:
            dropped = self.segments.pop(0)
            self.dirty_segments.difference_update((dropped,))
            self.dropped_segments.append(dropped)
        if self.damaged:
            self.damaged = from_offset(self.damaged, self.log_start_offset)

    def take_dropped_segments(self) -> list[ReadableSegment]:
        """Segments whose files are not needed once the next checkpoint is durable."""
        dropped, self.dropped_segments = self.dropped_segments, []
        return dropped

    def open_segment(self, base_offset: int) -> Segment:
        """Open a segment of this log that may exist on disk."""
        return Segment(
            self.directory,
            base_offset,
            self.config.index_interval_bytes,
            created_ms=self._now_ms(),
        )

    @property
    def awaits_log_start(self) -> bool:
        """Whether a move of the log start waits to become durable."""
        return self.journaled_start_offset > self.log_start_offset

    def close(self) -> None:
        """Refuse later appends."""
        self.closed = True

    def forget(self) -> None:
        """Refuse appends and reads; appends that are not durable are lost.

        The high watermark keeps the offset up to which this log was durable and visible.
        """
        self.close()
        self.counts.opened_offset += NOWHERE - self.next_offset  # What went through it stays so.
        self.next_offset = NOWHERE
