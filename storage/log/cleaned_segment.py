"""Data of a compaction pass: its plan, its results, and the writer of its new segments.

New files are stored beside the old ones, under names of their own, and are durable when
:meth:`SegmentWriter.finish` returns; files that no log takes over are removed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from barnabas.protocol.record_filter import placeholder
from barnabas.protocol.records import NO_PRODUCER_ID, BatchHeader, read_header
from barnabas.storage.files.file_system import Buffer, File, FileSystem
from barnabas.storage.log.index import AbortedTransaction, SegmentIndex, TransactionIndex
from barnabas.storage.log.segment_names import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    cleaned_name,
    file_stem,
)
from barnabas.storage.log.segment_read import ReadPlan

_WRITE_BYTES: Final = 1024 * 1024

Pace = Callable[[int], None]
"""Told of bytes read or written, and of every batch; may wait, and may raise to end the pass."""


class StoredSource(NamedTuple):
    """Records of a segment in the store of a cluster: those between two offsets."""

    begin: int
    end: int
    plan_from: Callable[[int], ReadPlan]
    """Returns the read of the next piece from an offset on; on any thread."""


@dataclass(frozen=True, slots=True)
class SourceSegment:
    """A sealed segment: offsets from ``base_offset`` up to ``end_offset``.

    ``has_gaps``: a former pass may have taken some of them away. ``elsewhere``: how to read a
    segment that has no file here.
    """

    base_offset: int
    end_offset: int
    size_bytes: int
    has_gaps: bool = False
    elsewhere: StoredSource | None = None


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """Everything a pass needs to know; times in ms.

    ``segments`` reach from the log's first up to the first that may not be cleaned. ``producers``
    returns the last offset (-1 if only markers are left) and the epoch of each known producer (K4).
    ``generation`` is this pass's alone: the names of the new files contain it, so that files of
    another pass are never mistaken for files that a swap has yet to put in place. ``salt`` keeps
    clients from choosing keys that collide. ``make_directory`` creates the directory of the log
    unless it exists.
    """

    path: str
    make_directory: Callable[[], None]
    segments: tuple[SourceSegment, ...]
    first_dirty_offset: int
    aborted: tuple[AbortedTransaction, ...]
    producers: Callable[[], Mapping[int, tuple[int, int]]]
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    generation: int
    salt: bytes


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Batches whose records cannot be read though their checksums are right: where, how many."""

    first_offset: int
    last_offset: int
    batches: int
    reason: str


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """Segments cleaned into one, whose files have temporary names.

    If ``changed`` is False, nothing was written, since nothing could be cleaned. Once the ``last``
    group is in place, the log is clean up to ``clean_offset``. Unreadable batches are kept;
    ``unreadable`` describes them.
    """

    replaced: tuple[int, ...]
    end_offset: int
    data_end_offset: int
    size_bytes: int
    bytes_read: int
    index: SegmentIndex
    transactions: TransactionIndex
    generation: int
    changed: bool
    clean_offset: int
    last: bool
    unreadable: Unreadable | None = None


class SegmentWriter:
    """Writes one new segment with its indexes."""

    def __init__(
        self, file_system: FileSystem, plan: CleaningPlan, base_offset: int, pace: Pace
    ) -> None:
        self._file_system = file_system
        self._plan = plan
        self._stem = file_stem(base_offset)
        self._pace = pace
        self.index = SegmentIndex(base_offset, plan.index_interval_bytes)
        self.transactions = TransactionIndex()
        self._file = self._open(LOG_SUFFIX)
        self._buffers: list[Buffer] = []
        self._buffered_bytes = 0
        self._size_bytes = 0
        self._met: BatchHeader | None = None
        self._written_offset = -1
        self._batches_met = self._batches_kept = 0
        self._unreadable: Unreadable | None = None

    def _path(self, suffix: str) -> str:
        name = cleaned_name(self._stem + suffix, self._plan.generation)
        return self._file_system.join(self._plan.path, name)

    def _open(self, suffix: str) -> File:
        """Open a new file in place of one that another pass may have left."""
        file = self._file_system.open(self._path(suffix), create=True)
        file.truncate(0)
        return file

    def meet(self, header: BatchHeader) -> None:
        """Record the next batch of the source."""
        self._met = header
        self._batches_met += 1

    def keep(self, header: BatchHeader, batch: Buffer) -> None:
        """Add a batch unchanged."""
        self._batches_kept += 1
        # The memory that the batch lies in is read into again.
        self._add(header, bytes(batch))

    def keep_unreadable(self, header: BatchHeader, batch: Buffer, reason: str) -> None:
        """Add a batch unchanged, because its records cannot be read."""
        self.keep(header, batch)
        before = self._unreadable
        offset = header.base_offset
        if before is None:
            self._unreadable = Unreadable(offset, offset, 1, reason)
        else:
            self._unreadable = replace(before, last_offset=offset, batches=before.batches + 1)

    def change(self, batch: bytes) -> None:
        """Add the remaining records of the present batch."""
        self._add(read_header(batch), batch)

    def _add(self, header: BatchHeader, batch: bytes) -> None:
        self.index.append(header.last_offset, header.newest_timestamp, self._size_bytes)
        self._size_bytes += len(batch)
        self._written_offset = header.last_offset
        self._buffers.append(batch)
        self._buffered_bytes += len(batch)
        if self._buffered_bytes >= _WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        self._pace(self._buffered_bytes)
        self._file.pwritev(self._buffers, self._size_bytes - self._buffered_bytes)
        self._buffers, self._buffered_bytes = [], 0

    def finish(
        self, group: Sequence[SourceSegment], clean_offset: int, *, last: bool
    ) -> CleanedGroup:
        """Make the new segment durable, or delete it if it equals the old one."""
        met = self._met
        if met is not None and met.last_offset > self._written_offset:
            self._batches_kept += not met.record_count and met.producer_id == NO_PRODUCER_ID
            self.change(placeholder(met))
        self.index.seal()
        changed = len(group) > 1 or self._batches_kept < self._batches_met
        if changed:
            self._flush()
            self._file.fdatasync()
            self._file.close()
            self._write_indexes()
        else:
            self.discard()
        return CleanedGroup(
            tuple(segment.base_offset for segment in group),
            group[-1].end_offset,
            max(self._written_offset + 1, group[0].base_offset),
            self._size_bytes,
            sum(segment.size_bytes for segment in group),
            self.index,
            self.transactions,
            self._plan.generation,
            changed,
            clean_offset,
            last,
            self._unreadable,
        )

    def _write_indexes(self) -> None:
        for suffix, data in (
            (INDEX_SUFFIX, self.index.offsets.encode()),
            (TIME_INDEX_SUFFIX, self.index.times.encode()),
            (TRANSACTION_INDEX_SUFFIX, self.transactions.encode()),
        ):
            file = self._open(suffix)
            try:
                file.pwritev([data], 0)
                file.fdatasync()
            finally:
                file.close()
        self._file_system.sync_directory(self._plan.path)

    def discard(self) -> None:
        """Remove the written files."""
        self._file.close()
        for suffix in SEGMENT_SUFFIXES:
            path = self._path(suffix)
            if self._file_system.exists(path):
                self._file_system.unlink(path)
