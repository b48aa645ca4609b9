"""Logs of a data directory, copied into the store of a cluster.

Rules of this file:

1. Batches go as they are, with the epochs that they were written in. The session that brings them
   leads each partition in one epoch, above all of those: so does each later leader.
2. What lies below a log's start does not go. What those records have left behind does, with all
   else that is known of producers: in a snapshot of the log's end.
3. A log goes batch by batch: no more of it is in memory than a flush takes, or a segment.
4. With an object store a log goes there as packed segments, as its leader would pack it, and its
   rest, which is small, as rows. So nothing is left to be packed. A compacted log, and one that
   lacks offsets, is not packed: its large flushes are objects.
5. An object is durable before it is named (F6). Each attempt has a key of its own (F7). What an
   interrupted import leaves is garbage of its session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.storage.log.damage import DamagedRange
from barnabas.storage.objects.blob_store import BlobStoreError, SegmentKey, UploadKey
from barnabas.storage.repair.repair import hole
from barnabas.storage.replicated.cluster_transfer import SUPERSEDED, TransferRefused
from barnabas.storage.replicated.log_index import (
    Flush,
    Item,
    Lane,
    LogStart,
    Outcome,
    SegmentExtent,
)
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.replicated.segment_packing import PackLimits, PackNumbers, facts_between
from barnabas.storage.replicated.segment_sidecar import PackedSegment
from barnabas.storage.replicated.wal_object import wal_object
from barnabas.storage.runtime.clock import sleep

if TYPE_CHECKING:
    from barnabas.protocol.records import BatchHeader
    from barnabas.storage.files.file_system import Buffer
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.cluster_transfer import ClusterTransfer
    from barnabas.storage.replicated.log_index import LogIndex

FLUSH_BYTES: Final = 4 * 1024 * 1024
SEGMENT_BYTES: Final = PackLimits().segment_bytes
OBJECT_BYTES_MIN: Final = PackLimits().object_bytes_min
"""Size of a flush, or of a part of a log, from which it goes into the object store."""
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
    # Flushes of compacted logs are objects, which have nothing of other logs.
    for log in sorted(logs, key=lambda each: not each.config.is_compacted):
        writer.puts_flushes = log.config.is_compacted
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
    segments = _Segments(log, writer)
    for header, batch in _batches(log):
        segments.add(end, header, batch)
        end = header.next_offset
        progress.batches += 1
        progress.size_bytes += len(batch)
        on_progress(progress)
    segments.end()
    if end < log.next_offset:  # Apache Kafka's compaction may have left nothing of the end.
        lost = DamagedRange(end, log.next_offset, log.active.base_offset, 0, 0, "nothing is left")
        batch = memoryview(hole(lost, log.epoch_at(end)))
        writer.add(log.partition_id, end, log.next_offset, batch)
    if log.log_start_offset > base:
        writer.start(log.partition_id, log.log_start_offset)


class _Segments:
    """Batches of one log, on their way into packed segments, or to a writer of flushes."""

    def __init__(self, log: PartitionLog, writer: _Writer) -> None:
        self._log = log
        self._writer = writer
        self._may_pack = writer.blobs is not None and not log.config.is_compacted
        self._packed: PackedSegment | None = None
        self._batches: list[tuple[int, int, memoryview]] = []
        """The batches in it, with the offsets before and after each."""

    def add(self, end: int, header: BatchHeader, batch: memoryview) -> None:
        """Add a batch behind the offset ``end``."""
        if self._may_pack and header.base_offset != end:
            self.end()
            self._may_pack, self._writer.puts_flushes = False, True
        if not self._may_pack:
            self._writer.add(self._log.partition_id, end, header.next_offset, batch)
            return
        packed = self._packed
        if packed is None:
            packed = self._packed = PackedSegment(end)
        epoch = header.partition_leader_epoch
        packed.add(batch, header, self._log.epoch_at(end) if epoch < 0 else epoch)
        self._batches.append((end, header.next_offset, batch))
        if packed.size_bytes >= SEGMENT_BYTES:
            self.end()

    def end(self) -> None:
        """Append what was added as a segment, or as part of a flush if it is small."""
        packed, batches = self._packed, self._batches
        self._packed, self._batches = None, []
        if packed is not None and packed.size_bytes >= OBJECT_BYTES_MIN:
            self._writer.append_segment(self._log, packed)
            return
        for base, next_offset, batch in batches:
            self._writer.add(self._log.partition_id, base, next_offset, batch)


@dataclass(slots=True)
class _Writer:
    """Gathers batches to flushes of an importing session, in order."""

    index: LogIndex
    session: int
    epoch: int
    blobs: BlobStore | None = None
    puts_flushes: bool = True
    """Whether large flushes become objects; a change takes effect with the next batch."""
    number: int = 0
    segments: PackNumbers = field(default_factory=PackNumbers)
    attempts: int = 0
    """Number of attempts to put an object."""
    items: dict[int, Item] = field(default_factory=dict)
    starts: list[LogStart] = field(default_factory=list)
    bodies: list[memoryview] = field(default_factory=list)
    size_bytes: int = 0
    _puts_this_flush: bool = True

    def add(self, partition_id: int, base: int, end: int, batch: memoryview) -> None:
        """Add a batch that has the offsets from ``base`` up to ``end``, some perhaps unused."""
        if self.puts_flushes != self._puts_this_flush:
            self.flush()
            self._puts_this_flush = self.puts_flushes
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
        is_large = self.size_bytes >= OBJECT_BYTES_MIN
        if self.blobs is not None and is_large and self._puts_this_flush:
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
        for pause_s in _pauses():
            self.attempts += 1
            key = UploadKey(self.session, Lane.INLINE, self.number, self.attempts).text
            if _is_put(partial(blobs.put, key, body), pause_s):
                break
        return Flush(Lane.INLINE, self.number, items, self.starts, key=key, size=size)

    def append_segment(self, log: PartitionLog, packed: PackedSegment) -> None:
        """Append a part of a log as an object; raises TransferRefused, BlobStoreError."""
        assert self.blobs is not None, "segments are objects"
        if log.partition_id in self.items:
            self.flush()  # Its former batches.
        base, end = packed.base_offset, packed.next_offset
        sidecar = packed.sidecar(facts_between(log, base, end))
        for pause_s in _pauses():
            number = self.segments.current(self.session)
            key = SegmentKey(log.partition_id, base, self.session, number)
            put = partial(_put_segment, self.blobs, key, packed.body, sidecar)
            is_put = _is_put(put, pause_s)
            self.segments.use_up()
            if is_put:
                break
            self.index.skip_number(self.session, number)
        named = SegmentExtent(
            base, end, packed.leader_epoch, packed.size_bytes, key.text, in_object_store=True
        )
        led = (self.session, log.partition_id, self.epoch)
        if not self.index.append_segment(*led, number, named):
            raise TransferRefused(SUPERSEDED)


def _put_segment(blobs: BlobStore, key: SegmentKey, body: Sequence[Buffer], sidecar: bytes) -> None:
    blobs.put(key.text, body)
    blobs.put(key.sidecar, [sidecar])


def _pauses() -> Iterator[float | None]:
    """Yield the pause after each attempt that fails, and None for the last attempt."""
    pause_s = _PAUSE_S_MIN
    for _ in range(_ATTEMPTS - 1):
        yield pause_s
        pause_s = min(2 * pause_s, _PAUSE_S_MAX)
    yield None


def _is_put(put: Callable[[], None], pause_s: float | None) -> bool:
    """Return whether an attempt has succeeded; raises BlobStoreError for the last one."""
    try:
        put()
    except BlobStoreError:
        if pause_s is None:
            raise
        sleep(pause_s)
        return False
    return True
