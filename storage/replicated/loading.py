"""A log that is opened while the process runs, from what is durable of it elsewhere.

What a start does for all logs from the directory and the journal (``storage/store/recovery.py``) is
done here for one, at the epoch that its leader has now: when the partition has come to this broker,
or when the log was forgotten because of what was refused (``LogStore.load``).
"""

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.protocol.records import BatchHeader, read_header
from barnabas.storage.errors import LedSince
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.log.leader_epochs import epochs_from
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.replay import replay_batch
from barnabas.storage.replicated.log_index import LogHead, LogSnapshot
from barnabas.storage.replicated.log_snapshot import read_snapshot


class DurableLog(NamedTuple):
    """What is durable of a partition, wherever it is kept."""

    batches: Iterable[memoryview]
    """All from ``base_offset`` on; their memory stays as it is. Compaction may have left gaps.

    Those of a long log are read while they are asked for, once, and so raise what that does."""
    log_start_offset: int = 0
    base_offset: int = 0
    """Where the first batch begins, or would begin."""
    snapshot: LogSnapshot | None = None
    """What of the batches before its offset is known without them; it is not before
    ``base_offset``. None: nothing is missing of them."""


class LongReading(NamedTuple):
    """What is kept of a log that is long until it is read as one: many may wait for that."""

    damage: tuple[LogHead, str] | None = None
    """What was found when it was read so last, if it was: as what it was known then, and what was
    damaged."""


class LongLog(Exception):
    """A log is so long that it is to be read where no short one waits for it.

    It holds what was read of the log so far, as every exception does: keep ``reading`` of it.
    """

    def __init__(self, partition_id: int, reading: LongReading) -> None:
        """``reading`` is handed to whoever reads it."""
        super().__init__(f"partition {partition_id} is long")
        self.reading = reading


def fill(log: PartitionLog, durable: DurableLog, group: CommitGroup) -> None:
    """Give an empty log all that is ``durable``; it can be read at once, from memory.

    The segments are written with the operations of ``group``. The journal has nothing of it.
    Raises LedSince, and Corrupt where the snapshot is damaged.
    """
    filling = Filling(log, durable.base_offset, durable.snapshot)
    for batch in durable.batches:
        filling.add(batch, group)
    filling.end(durable.log_start_offset)


class Filling:
    """Gives an empty log batch after batch of what is durable of it; see ``DurableLog``."""

    def __init__(self, log: PartitionLog, base_offset: int, snapshot: LogSnapshot | None) -> None:
        """Begin; the log has nothing yet."""
        self._log = log
        self._snapshot = snapshot
        if base_offset:
            log.next_offset = log.snapshot_offset = base_offset
            log.active = log.open_segment(base_offset)
            log.segments = [log.active]

    def add(self, batch: memoryview, group: CommitGroup) -> None:
        """Add the next batch, which is written with the operations of ``group``.

        Raises Corrupt where the snapshot is damaged.
        """
        log, snapshot = self._log, self._snapshot
        header = read_header(batch)
        if snapshot is not None and snapshot.next_offset <= header.base_offset:
            _go_on_from(log, snapshot)
            self._snapshot = None
        _note_gap(log, header)
        replay_batch(log, group, batch, header)

    def end(self, log_start_offset: int) -> None:
        """Show what was added. Raises LedSince, and Corrupt where the snapshot is damaged."""
        log = self._log
        if self._snapshot is not None:
            _go_on_from(log, self._snapshot)
        if log.leader_epochs and log.leader_epochs[-1][0] > log.leader_epoch:
            raise LedSince(f"{log} was written to in epoch {log.leader_epochs[-1][0]}")
        log.high_watermark = log.next_offset
        log.log_start_offset = log_start_offset
        log.leader_epochs = epochs_from(log.leader_epochs, log_start_offset)
        log.drop_segments_below_start()
        log.start_counting()


def _go_on_from(log: PartitionLog, snapshot: LogSnapshot) -> None:
    """Know what the snapshot says, in place of what the batches before it have told.

    They may be fewer than there were. The transactions that were found aborted among them stay so:
    who reads those batches needs no others.
    """
    log.producers, log.leader_epochs = read_snapshot(
        log.partition_id, snapshot, append_time_ms=log.now_ms()
    )


def _note_gap(log: PartitionLog, header: BatchHeader) -> None:
    """Let readers and the next compaction know where offsets are missing."""
    if header.base_offset > log.next_offset:
        log.cleaning.compacted_offset = header.base_offset
