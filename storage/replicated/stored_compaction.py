"""Compaction of the store's copy of a log: batches cleaned here replace the store's extents.

Rules of this file:

1. A walk visits the segments that compaction has written since the last walk, from the log's start
   on, portion by portion, and replaces the store's extents where they have other bytes than this
   broker reads. So a front part of the copy is as the log was at some moment of the walk, and all
   after it is as it was before. A tombstone, or a marker, never leaves the copy before the records
   that it hides. A load at any moment gives a log that compaction could have left (F5).
2. That holds as long as no part is read after a later pass than those before it. So a walk ends
   when segments are swapped meanwhile, and the next one starts from the beginning. All segments
   that were visited can leave the disk once a walk has reached its end.
3. A portion is some whole extents, and never splits a batch: batches come to the store in extents,
   and compaction leaves them their offsets. An extent without any batch left is replaced together
   with its successor, for an extent has bytes.
4. No extent is replaced that lies after the store's snapshot of the log
   (``LogIndex.replace_extents``).
5. The loop plans each read of the log, as for a consumer. Reading, and all that waits, is done on a
   thread; bytes to be read from then on are held by their file.
6. This broker's files are a copy that was never synced, on any kind of disk. Damage in it does not
   replace good extents in the store: each batch is checked before.
7. A portion has other bytes if it has another size, or a batch with a delete horizon: setting one
   changes no size. Compression can make fewer records larger.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, Protocol, TypeVar

from barnabas.protocol.record_filter import delete_horizon
from barnabas.protocol.records import BatchHeader, CorruptBatch, iterate_batches, verify_batch
from barnabas.storage.errors import Corrupt, LogClosed, OffsetOffline, OffsetOutOfRange
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.segment_read import read_waiting
from barnabas.storage.replicated.log_index import Extent, ExtentSize, LogIndex
from barnabas.storage.replicated.remote_segment import RemoteSegment

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

PORTION_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of the extents that are replaced at once; a larger one is replaced alone."""
_EXTENTS_AT_ONCE: Final = 1000
_READ_BYTES: Final = 1024 * 1024
_MANY: Final = 16
"""Number of extents that are worth merging, even at the same size: a takeover reads each of them.
"""


class Aside(Protocol):
    """Runs long work on another thread; called and awaited on the loop."""

    def __call__(self, work: Callable[[], Result], /) -> Awaitable[Result]:
        """Return the result of ``work``."""


class _Portion:
    """Extents to be replaced, and their replacement; ``begin`` is the first offset."""

    def __init__(self, begin: int) -> None:
        self.begin = self.end = begin
        self.extents = self.bytes_before = self.bytes_after = 0
        self._has_horizon = False
        self._runs: list[tuple[int, int, list[bytes]]] = []
        """Epoch, first offset, and batches, of which some in a row have the same epoch."""

    def add_extents(self, sizes: Sequence[ExtentSize]) -> None:
        """Extend the portion by some extents."""
        self.end = sizes[-1].next_offset
        self.extents += len(sizes)
        self.bytes_before += sum(each.length for each in sizes)

    def add_batch(self, header: BatchHeader, batch: bytes) -> None:
        """Add the remaining records of a batch, in order."""
        leader_epoch = header.partition_leader_epoch
        base_offset = header.base_offset if self._runs else self.begin
        self._has_horizon = self._has_horizon or delete_horizon(header) is not None
        if not self._runs or self._runs[-1][0] != leader_epoch:
            self._runs.append((leader_epoch, base_offset, []))
        self._runs[-1][2].append(batch)
        self.bytes_after += len(batch)

    @property
    def is_worth_it(self) -> bool:
        """Whether the store has other bytes, or so many extents that fewer are better."""
        is_fewer = self.extents >= _MANY * len(self._runs)
        return self.bytes_after != self.bytes_before or self._has_horizon or is_fewer

    def result(self) -> list[Extent]:
        """Return the extents that take the place of the others."""
        ends = [base_offset for _, base_offset, _ in self._runs[1:]] + [self.end]
        return [
            Extent(base_offset, next_offset, epoch, b"".join(batches))
            for (epoch, base_offset, batches), next_offset in zip(self._runs, ends, strict=True)
        ]


class StoredCompaction:
    """One walk over one log, whose leader this is."""

    def __init__(
        self,
        log: PartitionLog,
        index: LogIndex,
        session: int,
        aside: Aside,
        *,
        portion_bytes: int = PORTION_BYTES,
    ) -> None:
        """``session`` leads the log's partition in the log's epoch."""
        self._log = log
        self._index = index
        self._session = session
        self._aside = aside
        self._portion_bytes = portion_bytes
        self._swaps = log.cleaning.swaps
        self._reached = 0
        """Offset up to which the store has followed."""
        self.bytes_before = self.bytes_after = 0
        """Bytes of the replaced extents."""

    async def run(self, snapshot_offset: int) -> bool:
        """Follow all segments that differ; return False if the walk has to be repeated.

        ``snapshot_offset`` is that of the store's snapshot. Raises IndexClosed.
        """
        log = self._log
        changed = [each for each in log.local_segments if each.differs_from_store]
        for segment in changed:
            begin = max(segment.base_offset, log.log_start_offset)
            if not await self._follow(begin, segment.end_offset, snapshot_offset):
                return False
        for segment in changed:
            segment.differs_from_store = False
        return True

    async def _follow(self, position: int, end: int, snapshot_offset: int) -> bool:
        """Compact the extents of a segment; return False if the walk has to be repeated."""
        log = self._log
        position = max(position, self._reached)
        portion = _Portion(position)
        while position < end or portion.extents:
            sizes = self._fitting(await self._sizes(position), snapshot_offset)
            if not sizes:
                return position >= end
            if sizes[0].base_offset < position:
                # The segment before it has the begin, or the log starts within it.
                position = sizes[0].base_offset
                if position < log.log_start_offset:
                    position = sizes[0].next_offset
                    portion = _Portion(position)
                    continue
                portion = _Portion(position)
            portion.add_extents(sizes)
            if not await self._read(portion, position):
                return False
            position = portion.end
            if portion.bytes_after:
                if portion.is_worth_it and not await self._replace(portion):
                    return False
                portion = _Portion(position)
                self._reached = position
        return True

    async def _sizes(self, position: int) -> list[ExtentSize]:
        partition_id = self._log.partition_id
        sizes = partial(self._index.extent_sizes, partition_id, position, most=_EXTENTS_AT_ONCE)
        return await self._aside(sizes)

    def _fitting(self, sizes: Sequence[ExtentSize], snapshot_offset: int) -> Sequence[ExtentSize]:
        """Return the first extents, few enough to be replaced at once."""
        total = 0
        for at, size in enumerate(sizes):
            total += size.length
            if size.next_offset > snapshot_offset or (at and total > self._portion_bytes):
                return sizes[:at]
        return sizes

    async def _read(self, portion: _Portion, position: int) -> bool:
        """Read the log from ``position`` to the portion's end; return False if unreadable."""
        log = self._log
        try:
            while position < portion.end:
                plan = log.plan_read(position, _READ_BYTES)
                if plan is None:
                    return False
                if isinstance(plan, MemorySlice):
                    chunks = plan.chunks
                else:
                    loaded = await self._aside(partial(plan.load, read_waiting))
                    chunks = [] if loaded is None else [loaded.data]
                if log.cleaning.swaps != self._swaps:
                    return False
                before = position
                for chunk in chunks:
                    position = _take(portion, chunk, position)
                if position == before:
                    return False
        except (LogClosed, OffsetOffline, OffsetOutOfRange):
            return False
        except OSError as error:
            words = "log not compacted in the store, a read failed log=%s error=%s"
            logger.warning(words, log, error)
            return False
        except (Corrupt, CorruptBatch) as error:
            log.suspect(position, error)
            return False
        return True

    async def _replace(self, portion: _Portion) -> bool:
        log, extents = self._log, portion.result()
        assert all(before.next_offset == after.base_offset for before, after in pairwise(extents))
        # The extents reach into segments beside the one that was compacted.
        for segment in log.segments:
            if isinstance(segment, RemoteSegment):
                segment.expect_gaps()
        replace = self._index.replace_extents
        led = (self._session, log.partition_id, log.leader_epoch)
        if not await self._aside(partial(replace, *led, extents)):
            return False
        self.bytes_before += portion.bytes_before
        self.bytes_after += portion.bytes_after
        return True


def _take(portion: _Portion, chunk: memoryview, position: int) -> int:
    """Add the batches of a chunk up to the portion's end; return the position reached.

    Raises CorruptBatch.
    """
    for at, header in iterate_batches(chunk):
        if header.base_offset >= portion.end:
            return portion.end
        batch = bytes(chunk[at : at + header.size])
        verify_batch(batch)
        portion.add_batch(header, batch)
        position = header.next_offset
    return position
