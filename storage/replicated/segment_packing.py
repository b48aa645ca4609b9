"""Packing of a log's extents into objects with nothing else: its segments in the object store.

Rules of this file:

1. A portion is some whole extents, one after the other, that are no packed segments. All lie at or
   before the store's snapshot of the log (F4), and at or after the log's start.
2. The leader packs, and reads its own log as a consumer does: from its segments, or through the
   block cache after a takeover. Each batch is checked; offsets have no gaps, and the portion has as
   many bytes as its extents (F12). Otherwise nothing is packed. A log that compaction has left with
   gaps is not packed at all (rule 5), so a gap that is found here is damage of the leader's copy.
3. Both objects are durable before the index names the segment (F6). The index decides: it compares
   session, epoch, snapshot and offsets. So a packer that wakes late changes nothing.
4. Each attempt has a number and so a key of its own (F7). An attempt that fails anywhere gives up
   its number: what it has put, or puts later, is garbage (F9).
5. A compacted log, or one with gaps or damage, is not packed; neither is one that has become so
   meanwhile (``has_parts``).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.protocol.records import CorruptBatch, iterate_batches
from barnabas.storage.errors import Corrupt, LogClosed, OffsetOffline, OffsetOutOfRange
from barnabas.storage.log.leader_epochs import LeaderEpochs, epoch_at, epochs_from
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.segment_read import ReadPlan, read_waiting
from barnabas.storage.objects.blob_store import BlobStoreError, SegmentKey
from barnabas.storage.replicated.log_index import Extent, SegmentExtent
from barnabas.storage.replicated.log_parts import has_parts
from barnabas.storage.replicated.segment_sidecar import Facts, PackedSegment

if TYPE_CHECKING:
    from barnabas.storage.files.file_system import Buffer
    from barnabas.storage.log.index import AbortedTransaction
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.objects.blob_store import BlobStore
    from barnabas.storage.replicated.log_index import ExtentSize, LogIndex
    from barnabas.storage.replicated.stored_compaction import Aside

logger = logging.getLogger(__name__)

_EXTENTS_AT_ONCE: Final = 1000
_READ_BYTES: Final = 1024 * 1024


class PackLimits(NamedTuple):
    """Sizes and counts that bound the packing of segments."""

    segment_bytes: int = 64 * 1024 * 1024
    """Size from which a portion gets no further extents."""
    object_bytes_min: int = 256 * 1024
    """Size of a portion from which it becomes an object; a smaller one stays in rows."""
    extents_max: int = 64
    """Number of extents of one log from which they are packed in any case."""


class Unpacked(NamedTuple):
    """Extents of a log that follow each other, and become one segment."""

    begin: int
    end: int
    extents: int
    size_bytes: int
    has_object_store: bool
    """Whether some extents are parts of objects that also contain records of other partitions."""


class PackNumbers:
    """Numbers of packed segments, which begin again with each session."""

    def __init__(self) -> None:
        """Start without a session."""
        self._session: int | None = None
        self._next = 0

    def current(self, session: int) -> int:
        """Return the number of the next attempt of a session."""
        if session != self._session:
            self._session, self._next = session, 0
        return self._next

    def use_up(self) -> None:
        """Note that the index has used up the number."""
        self._next += 1


def find_unpacked(
    index: LogIndex, partition_id: int, begin: int, end: int, segment_bytes: int
) -> tuple[list[Unpacked], int]:
    """Return the extents between two offsets that are no packed segments, in portions.

    Also returns the end of the last extent that ends at ``end`` or before. A portion takes no more
    extents once it has ``segment_bytes``. Blocks; raises IndexClosed.
    """
    portions: list[Unpacked] = []
    last: Unpacked | None = None
    reached = begin
    for size in _sizes(index, partition_id, begin):
        if size.next_offset > end:
            break
        reached = size.next_offset
        if size.is_segment or size.base_offset < begin:
            last = None
            continue
        if last is None or last.size_bytes >= segment_bytes:
            last = Unpacked(size.base_offset, size.base_offset, 0, 0, has_object_store=False)
            portions.append(last)
        last = portions[-1] = last._replace(
            end=size.next_offset,
            extents=last.extents + 1,
            size_bytes=last.size_bytes + size.length,
            has_object_store=last.has_object_store or size.key is not None,
        )
    return portions, reached


def _sizes(index: LogIndex, partition_id: int, from_offset: int) -> Iterator[ExtentSize]:
    while page := index.extent_sizes(partition_id, from_offset, most=_EXTENTS_AT_ONCE):
        yield from page
        from_offset = page[-1].next_offset


class SegmentPacking:
    """Packing of one log, whose leader this is."""

    def __init__(
        self,
        log: PartitionLog,
        session: int,
        index: LogIndex,
        blobs: BlobStore,
        aside: Aside,
        numbers: PackNumbers,
        limits: PackLimits,
    ) -> None:
        """``session`` leads the log's partition in the log's epoch."""
        self._log = log
        self._session = session
        self._index = index
        self._blobs = blobs
        self._aside = aside
        self._numbers = numbers
        self._limits = limits

    def is_worth_it(self, portion: Unpacked) -> bool:
        """Whether packing a portion leaves less in the database, or frees objects."""
        is_large = portion.size_bytes >= self._limits.object_bytes_min
        return is_large or portion.has_object_store or portion.extents > self._limits.extents_max

    async def pack(self, portion: Unpacked) -> bool:
        """Pack a portion; return False if the store still has it as it was.

        Raises IndexClosed.
        """
        packed = await self._read(portion)
        if packed is None or packed.size_bytes != portion.size_bytes:
            return False
        if packed.size_bytes < self._limits.object_bytes_min:
            return await self._replace_by_row(packed)
        return await self._replace_by_segment(packed)

    async def _read(self, portion: Unpacked) -> PackedSegment | None:
        """Return the batches of a portion, or None if they cannot be read now."""
        log, packed = self._log, PackedSegment(portion.begin)
        try:
            while packed.next_offset < portion.end:
                before = packed.next_offset
                plan = log.plan_read(before, _READ_BYTES) if has_parts(log) else None
                if plan is None:
                    return None
                take = partial(_take, packed, plan, portion.end, [*log.leader_epochs])
                await self._aside(take)
                if packed.next_offset == before:
                    return None
        except (LogClosed, OffsetOffline, OffsetOutOfRange):
            return None
        except (Corrupt, CorruptBatch) as error:
            log.suspect(packed.next_offset, error)
            return None
        except OSError as error:
            logger.warning("log not packed, a read failed log=%s error=%s", log, error)
            return None
        return packed

    async def _replace_by_row(self, packed: PackedSegment) -> bool:
        log, data = self._log, b"".join(packed.body)
        extent = Extent(packed.base_offset, packed.next_offset, packed.leader_epoch, data)
        led = (self._session, log.partition_id, log.leader_epoch)
        # A log that is compacted since has other extents, which may have another size.
        replace = partial(self._index.replace_extents, *led, [extent], keeps_size=True)
        return has_parts(log) and await self._aside(replace)

    async def _replace_by_segment(self, packed: PackedSegment) -> bool:
        log, session = self._log, self._session
        number = self._numbers.current(session)
        key = SegmentKey(log.partition_id, packed.base_offset, session, number)
        facts = facts_between(log, packed.base_offset, packed.next_offset)
        put = partial(self._put, key, packed.body, packed.sidecar(facts))
        named = SegmentExtent(
            packed.base_offset,
            packed.next_offset,
            packed.leader_epoch,
            packed.size_bytes,
            key.text,
            self._blobs.is_object_store,
        )
        led = (session, log.partition_id, log.leader_epoch)
        replace = partial(self._index.replace_by_segment, *led, number, named)
        is_put = await self._aside(put)
        # A log that is compacted since has other extents.
        is_replaced = is_put and has_parts(log) and await self._aside(replace)
        if not is_replaced:
            await self._aside(partial(self._index.skip_number, session, number))
        self._numbers.use_up()
        return is_replaced

    def _put(self, key: SegmentKey, body: Sequence[Buffer], sidecar: bytes) -> bool:
        """Put both objects, on a thread; return False if the store has not confirmed them."""
        try:
            self._blobs.put(key.text, body)
            self._blobs.put(key.sidecar, [sidecar])
        except BlobStoreError as error:
            logger.warning("segment not packed, it is tried again key=%s error=%s", key.text, error)
            return False
        return True


def facts_between(log: PartitionLog, begin: int, end: int) -> Facts:
    """Return the facts about the batches of a log between two offsets."""
    epochs = epochs_from(log.leader_epochs, begin)
    return Facts(_aborted(log, begin, end), [each for each in epochs if each[1] < end])


def _aborted(log: PartitionLog, begin: int, end: int) -> Iterator[AbortedTransaction]:
    """Yield the aborted transactions whose markers lie between two offsets."""
    for segment in log.segments:
        if segment.end_offset > begin and segment.base_offset < end:
            for each in segment.transactions.since(begin):
                if each.last_offset < end:
                    yield each


def _take(
    packed: PackedSegment, plan: ReadPlan | MemorySlice, end: int, epochs: LeaderEpochs
) -> None:
    """Add the batches of a plan up to an offset; raises Corrupt, CorruptBatch, OSError."""
    if isinstance(plan, MemorySlice):
        chunks = plan.chunks
    else:
        loaded = plan.load(read_waiting)
        chunks = [] if loaded is None else [loaded.data]
    for chunk in chunks:
        for at, header in iterate_batches(chunk):
            if header.base_offset >= end:
                return
            batch = chunk[at : at + header.size]
            packed.add(batch, header, epoch_at(epochs, header.base_offset))
