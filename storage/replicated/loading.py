"""A log that is opened while the process runs, from its durable copy elsewhere.

A start opens all logs from the directory and the journal (``storage/store/recovery.py``). Here one
log is opened, at the epoch of its present leader: when the partition has come to this broker, or
when the log was closed because of refused batches (``LogStore.load``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.protocol.records import BatchHeader, read_header
from barnabas.storage.errors import LedSince
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.leader_epochs import epochs_from
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.log.replay import replay_batch, replay_producer
from barnabas.storage.replicated.log_index import LogHead, LogSnapshot
from barnabas.storage.replicated.log_snapshot import read_snapshot
from barnabas.storage.replicated.wal_object import FooterBatch


class DurableLog(NamedTuple):
    """The durable copy of a partition, from any source."""

    batches: Iterable[memoryview]
    """All batches from ``base_offset`` on, except for gaps after compaction; their memory does not
    change.

    The batches of a long log are read during the iteration, which is possible once, and can raise
    errors of the reading.
    """
    log_start_offset: int = 0
    base_offset: int = 0
    """Offset of the first batch, or the next offset without any."""
    snapshot: LogSnapshot | None = None
    """State of the log before the snapshot's offset, which is ``base_offset`` or a later one. None
    if no batch is missing."""
    remote: Sequence[ReadableSegment] = ()
    """Segments from the log's start up to the snapshot's offset, which is then ``base_offset``."""
    known: Iterable[KnownSegment] = ()
    """Segments after ``remote`` up to ``base_offset``, which is then the log's end. They may be
    read during the iteration, as batches."""


class KnownSegment(NamedTuple):
    """A segment whose records are not here, with the headers of all of its batches."""

    segment: ReadableSegment
    batches: Sequence[FooterBatch]


class LongReading(NamedTuple):
    """State of a long log until it is read in pieces, for which many loads may wait."""

    damage: tuple[LogHead, str] | None = None
    """Damage found by the last reading, with the log's head at that time, or None."""
    is_local: bool = False
    """Whether the records are needed on the disk, however many they are."""


class LongLog(Exception):
    """Log that is too long for the queue of short ones.

    The exception holds the part that was read so far: keep only its ``reading``.
    """

    def __init__(self, partition_id: int, reading: LongReading) -> None:
        """``reading`` is for the reader of long logs."""
        super().__init__(f"partition {partition_id} is long")
        self.reading = reading


def fill(log: PartitionLog, durable: DurableLog, group: CommitGroup) -> None:
    """Fill an empty log with ``durable``; it can be read at once, from memory.

    The segments are written with the operations of ``group``. The journal has nothing of it.
    Raises LedSince, and Corrupt where the snapshot is damaged.
    """
    filling = Filling(log, durable)
    for known in durable.known:
        filling.add_known(known)
    for batch in durable.batches:
        filling.add(batch, group)
    filling.end(durable.log_start_offset)


class Filling:
    """Fills an empty log with durable batches, one after the other; see ``DurableLog``."""

    def __init__(self, log: PartitionLog, durable: DurableLog) -> None:
        """Begin; the log has nothing yet."""
        base_offset = durable.base_offset
        self._log = log
        self._snapshot = durable.snapshot
        if base_offset:
            log.next_offset = log.snapshots.newest_offset = base_offset
            log.active = log.open_segment(base_offset)
            log.segments = [*durable.remote, log.active]

    def add(self, batch: memoryview, group: CommitGroup) -> None:
        """Add the next batch, which is written with the operations of ``group``.

        Raises Corrupt where the snapshot is damaged.
        """
        header = read_header(batch)
        self._restore_before(header)
        _note_gap(self._log, header, self._log.next_offset)
        replay_batch(self._log, group, batch, header)

    def _restore_before(self, header: BatchHeader) -> None:
        """Restore the snapshot before the first batch after it."""
        snapshot = self._snapshot
        if snapshot is not None and snapshot.next_offset <= header.base_offset:
            _restore_snapshot(self._log, snapshot)
            self._snapshot = None

    def add_known(self, known: KnownSegment) -> None:
        """Add the next segment. Raises Corrupt where the snapshot is damaged."""
        log, expected = self._log, known.segment.base_offset
        log.segments.insert(-1, known.segment)
        for header, data in known.batches:
            self._restore_before(header)
            _note_gap(log, header, expected)
            expected = header.next_offset
            epoch = header.partition_leader_epoch
            if not log.leader_epochs or log.leader_epochs[-1][0] != epoch:
                log.leader_epochs.append((epoch, header.base_offset))
            if header.producer_id >= 0:
                replay_producer(log, known.segment, header, data)

    def end(self, log_start_offset: int) -> None:
        """Make the added batches visible. Raises LedSince; Corrupt if the snapshot is damaged."""
        log = self._log
        if self._snapshot is not None:
            _restore_snapshot(log, self._snapshot)
        if log.leader_epochs and log.leader_epochs[-1][0] > log.leader_epoch:
            raise LedSince(f"{log} was written to in epoch {log.leader_epochs[-1][0]}")
        log.high_watermark = log.next_offset
        log.log_start_offset = log_start_offset
        log.leader_epochs = epochs_from(log.leader_epochs, log_start_offset)
        log.drop_segments_below_start()
        log.start_counting()


def _restore_snapshot(log: PartitionLog, snapshot: LogSnapshot) -> None:
    """Restore the snapshot's state in place of the state from the batches before it.

    Those may be fewer than there were. Transactions found aborted among them stay so: a reader of
    those batches needs no others.
    """
    log.producers, log.leader_epochs = read_snapshot(
        log.partition_id, snapshot, append_time_ms=log.now_ms()
    )


def _note_gap(log: PartitionLog, header: BatchHeader, expected_offset: int) -> None:
    """Record for readers and the next compaction where offsets are missing."""
    if header.base_offset > expected_offset:
        log.cleaning.compacted_offset = header.base_offset
