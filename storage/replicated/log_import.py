"""Logs of a data directory, copied into the store of a cluster.

Rules of this file:

1. Batches go as they are, with the epochs that they were written in. The session that brings them
   leads each partition in one epoch, above all of those: so does each later leader.
2. What lies below a log's start does not go. What those records have left behind does, with all
   else that is known of producers: in a snapshot of the log's end.
3. A log goes batch by batch: no more of it is in memory than a flush takes.
4. With an object store a large flush goes there before its commit, which names it (F6). Each
   attempt has a key of its own (F7). What an interrupted import leaves is garbage of its session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.storage.log.damage import DamagedRange
from barnabas.storage.objects.blob_store import BlobStoreError, UploadKey
from barnabas.storage.repair.repair import hole
from barnabas.storage.replicated.cluster_transfer import SUPERSEDED, TransferRefused
from barnabas.storage.replicated.log_index import Flush, Item, Lane, LogStart, Outcome
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.replicated.wal_object import wal_object
from barnabas.storage.runtime.clock import sleep

if TYPE_CHECKING:
    from barnabas.protocol.records import BatchHeader
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.cluster_transfer import ClusterTransfer
    from barnabas.storage.replicated.log_index import LogIndex

FLUSH_BYTES: Final = 4 * 1024 * 1024
OBJECT_BYTES_MIN: Final = 256 * 1024
"""Size of a flush from which it goes into the object store."""
_ATTEMPTS: Final = 10
_PAUSE_S_MIN: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
ITEMS_MAX: Final = 1000
"""Number of small partitions in one flush, and of partitions created at once."""


@dataclass(slots=True)
class ImportProgress:
    """Progress of an import."""

    partitions: int
    done: int = 0
    batches: int = 0
    size_bytes: int = 0


def import_logs(
    logs: Sequence[PartitionLog],
    transfer: ClusterTransfer,
    index: LogIndex,
    session: int,
    epoch: int,
    on_progress: Callable[[ImportProgress], None] = lambda _progress: None,
    blobs: BlobStore | None = None,
) -> ImportProgress:
    """Copy ``logs``, which no producer appends to, to be led by an importing ``session`` in
    ``epoch``.

    ``on_progress`` is called again and again with the same object. ``blobs`` is the cluster's
    object store, or None without one. Waits for the disk and the store. Raises TransferRefused,
    BlobStoreError, and Corrupt where a batch is not what was written.
    """
    bases = {log.partition_id: _base_of(log) for log in logs}
    ids = list(bases)
    for at in range(0, len(ids), ITEMS_MAX):
        some = {each: bases[each] for each in ids[at : at + ITEMS_MAX]}
        transfer.import_logs(session, epoch, some)
    progress = ImportProgress(len(logs))
    writer = _Writer(index, session, epoch, blobs)
    for log in logs:
        _copy(log, bases[log.partition_id], writer, progress, on_progress)
        progress.done += 1
        on_progress(progress)
    writer.flush()
    for log in logs:
        if log.next_offset and not index.put_snapshot(
            session, log.partition_id, epoch, take_snapshot(log)
        ):
            raise TransferRefused(SUPERSEDED)
    return progress


def _base_of(log: PartitionLog) -> int:
    """Return the first offset of a log's copy: its first batch may begin before the log does."""
    for header, _ in _batches(log):
        return min(header.base_offset, log.log_start_offset)
    return log.log_start_offset


def _batches(log: PartitionLog) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Yield all batches that reach beyond the log's start."""
    for segment in log.local_segments:
        if segment.end_offset <= log.log_start_offset and segment is not log.active:
            continue
        for _, header, batch in segment.scan_checked(0):
            if header.next_offset > log.log_start_offset:
                yield header, batch


def _copy(
    log: PartitionLog,
    base: int,
    writer: _Writer,
    progress: ImportProgress,
    on_progress: Callable[[ImportProgress], None],
) -> None:
    end = base
    for header, batch in _batches(log):
        writer.add(log.partition_id, end, header.next_offset, batch)
        end = header.next_offset
        progress.batches += 1
        progress.size_bytes += len(batch)
        on_progress(progress)
    if end < log.next_offset:  # Apache Kafka's compaction may have left nothing of the end.
        lost = DamagedRange(end, log.next_offset, log.active.base_offset, 0, 0, "nothing is left")
        batch = memoryview(hole(lost, log.epoch_at(end)))
        writer.add(log.partition_id, end, log.next_offset, batch)
    if log.log_start_offset > base:
        writer.start(log.partition_id, log.log_start_offset)


@dataclass(slots=True)
class _Writer:
    """Gathers batches to flushes of an importing session, in order."""

    index: LogIndex
    session: int
    epoch: int
    blobs: BlobStore | None = None
    number: int = 0
    attempts: int = 0
    """Number of attempts to put an object."""
    items: dict[int, Item] = field(default_factory=dict)
    starts: list[LogStart] = field(default_factory=list)
    bodies: list[memoryview] = field(default_factory=list)
    size_bytes: int = 0

    def add(self, partition_id: int, base: int, end: int, batch: memoryview) -> None:
        """Add a batch that has the offsets from ``base`` up to ``end``, some perhaps unused."""
        size = len(batch)
        item = self.items.get(partition_id)
        if item is None:
            item = Item(partition_id, self.epoch, base, end, self.size_bytes, 0)
        self.items[partition_id] = item._replace(next_offset=end, length=item.length + size)
        self.bodies.append(batch)
        self.size_bytes += size
        if self.size_bytes >= FLUSH_BYTES or len(self.items) == ITEMS_MAX:
            self.flush()

    def start(self, partition_id: int, offset: int) -> None:
        """Set a log's start offset to that of its first record, or to its end."""
        self.starts.append(LogStart(partition_id, self.epoch, offset))

    def flush(self) -> None:
        """Commit the added extents; raises TransferRefused, BlobStoreError."""
        if not self.items and not self.starts:
            return
        if self.blobs is not None and self.size_bytes >= OBJECT_BYTES_MIN:
            flush = self._put(self.blobs)
        else:
            payload = b"".join(self.bodies) if self.items else None
            flush = Flush(Lane.INLINE, self.number, [*self.items.values()], self.starts, payload)
        if self.index.commit_flush(self.session, flush).outcome is not Outcome.COMMITTED:
            raise TransferRefused(SUPERSEDED)
        self.number += 1
        self.items, self.starts, self.bodies, self.size_bytes = {}, [], [], 0

    def _put(self, blobs: BlobStore) -> Flush:
        """Put what was added as an object, and return the flush that names it."""
        items, body, size = wal_object([*self.items.values()], self.bodies)
        pause_s = _PAUSE_S_MIN
        for left in reversed(range(_ATTEMPTS)):
            self.attempts += 1
            key = UploadKey(self.session, Lane.INLINE, self.number, self.attempts).text
            try:
                blobs.put(key, body)
                break
            except BlobStoreError:
                if not left:
                    raise
            sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
        return Flush(Lane.INLINE, self.number, items, self.starts, key=key, size=size)
