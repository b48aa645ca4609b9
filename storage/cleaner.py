"""One pass of log compaction over one partition: what is read, what stays, what is written.

Rules of this file:

1. A pass touches no file but its own: it reads sealed segments and writes new ones beside them,
   under names of their own and synced. Putting them in place is ``storage/segment_swap.py``'s.
2. It runs on a thread or in another process, on a :class:`CleaningPlan` that the loop has made; it
   knows nothing of live logs, and what happens to the log meanwhile cannot hurt it.
3. Every batch is checked before it is looked at: a damaged one ends the pass, it is never written
   again with a good checksum (D7).
4. Groups come in log order, and none may be put in place unless all before it were: a tombstone
   must not go while an older record of its key is still there.
5. The last batch of each new segment stays, without records if need be: segments go on touching
   each other, and a missing one is found.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from protocol.record_filter import (
    StoredRecord,
    delete_horizon,
    emptied,
    expand,
    find_records,
    keep_records,
    placeholder,
)
from protocol.records import (
    NO_PRODUCER_ID,
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    read_header,
    read_marker,
    verify_batch,
)
from storage.batch_rules import DECOMPRESSED_BYTES_MAX
from storage.cleaned_transactions import CleanedTransactions
from storage.errors import Corrupt
from storage.index import AbortedTransaction, OffsetIndex, SegmentIndex, TransactionIndex
from storage.io import Buffer, File, FileSystem
from storage.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    OFFSET_DELTA_MAX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    file_stem,
)
from storage.segment_read import scan_batches
from storage.segment_swap import cleaned_name

ENTRY_BYTES: Final = 192
"""What a key costs in memory: its digest, its offset, and its share of the table."""

_SHORT_KEY_BYTES: Final = 15
_DIGEST_BYTES: Final = 16
_WRITE_BYTES: Final = 1024 * 1024

Pace = Callable[[int], None]
"""Told of bytes read or written, and of every batch; may wait, and may raise to end the pass."""


@dataclass(frozen=True, slots=True)
class SourceSegment:
    """A sealed segment: offsets from ``base_offset`` up to ``end_offset``."""

    base_offset: int
    end_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """Everything a pass needs to know; times in ms.

    ``segments`` reach from the log's first up to the first that may not be cleaned. ``producers``
    answers the last offset (-1: only markers) and the epoch of everyone still remembered (K4).
    ``generation`` is this pass's alone: the names of the new files carry it, so that what another
    pass left is never taken for what a swap is still to put in place. ``salt`` keeps clients from
    choosing keys that collide.
    """

    path: str
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
class CleanedGroup:
    """Segments cleaned into one, whose files wait under names of their own.

    ``changed`` False: nothing was to be done, and nothing was written. Once the ``last`` group is
    in place, the log is clean up to ``clean_offset``.
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


class LatestOffsets:
    """The latest offset of each key, within bounded memory."""

    def __init__(self, limit_bytes: int, salt: bytes) -> None:
        """``salt``: at most 64 bytes nobody can guess."""
        self._offsets: dict[bytes, int] = {}
        self._limit = max(1, limit_bytes // ENTRY_BYTES)
        self._salt = salt

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        """Whether no further batch may be taken in."""
        return len(self._offsets) >= self._limit

    def put(self, key: bytes, offset: int) -> None:
        """Note a later offset of ``key``."""
        self._offsets[self._digest(key)] = offset

    def is_overtaken(self, key: bytes, offset: int) -> bool:
        """Whether a later record of ``key`` is known."""
        return self._offsets.get(self._digest(key), -1) > offset

    def _digest(self, key: bytes) -> bytes:
        # A short key is its own digest: it is shorter than any other's.
        if len(key) <= _SHORT_KEY_BYTES:
            return key
        return blake2b(key, digest_size=_DIGEST_BYTES, key=self._salt).digest()


def clean(file_system: FileSystem, plan: CleaningPlan, pace: Pace) -> Iterator[CleanedGroup]:
    """Run a pass, group by group. Raises Corrupt, OSError, and whatever ``pace`` raises."""
    source = _Source(file_system, plan.path, pace)
    try:
        yield from _clean(file_system, plan, source, pace)
    except InvalidBatch as error:
        raise Corrupt(*source.place, str(error)) from error


def _clean(
    file_system: FileSystem, plan: CleaningPlan, source: "_Source", pace: Pace
) -> Iterator[CleanedGroup]:
    latest, clean_offset = _find_latest(source, plan)
    reached = [segment for segment in plan.segments if segment.base_offset < clean_offset]
    groups = list(_group(reached, plan))
    filtering = _Filter(plan, latest, clean_offset)
    for number, group in enumerate(groups, 1):
        writer = _Writer(file_system, plan, group[0].base_offset, pace)
        try:
            for segment in group:
                for header, batch in source.batches(segment):
                    filtering.pass_batch(header, batch, writer)
            cleaned = writer.finish(group, clean_offset, last=number == len(groups))
        except BaseException:
            writer.discard()
            raise
        yield cleaned


def _group(
    segments: Sequence[SourceSegment], plan: CleaningPlan
) -> Iterator[tuple[SourceSegment, ...]]:
    """Neighbours that fit into one segment together, as Kafka groups them."""
    entries_max = plan.index_bytes // OffsetIndex.ENTRY_BYTES
    size_max = min(plan.segment_bytes, entries_max * max(plan.index_interval_bytes, 1))
    group: list[SourceSegment] = []
    size = 0
    for segment in segments:
        fits = size + segment.size_bytes <= size_max
        if group and not (
            fits and segment.end_offset - 1 - group[0].base_offset <= OFFSET_DELTA_MAX
        ):
            yield tuple(group)
            group, size = [], 0
        group.append(segment)
        size += segment.size_bytes
    if group:
        yield tuple(group)


class _Source:
    """Reads segments, every batch checked."""

    def __init__(self, file_system: FileSystem, path: str, pace: Pace) -> None:
        self._file_system = file_system
        self._path = path
        self._pace = pace
        self.place = path, 0
        """File and byte of the batch that is looked at."""

    def batches(self, segment: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        path = self._file_system.join(self._path, file_stem(segment.base_offset) + LOG_SUFFIX)
        file = self._file_system.open(path)

        def read(size: int, position: int) -> bytes:
            self._pace(size)
            try:
                return file.pread(size, position)
            except OSError as error:  # Not to be confused with what writing may meet (D9).
                raise Corrupt(path, position, f"it cannot be read: {error}") from error

        try:
            for position, header, batch in scan_batches(path, read, 0, segment.size_bytes):
                self._pace(0)
                self.place = path, position
                try:
                    verify_batch(batch)
                except CorruptBatch as error:
                    raise Corrupt(path, position, str(error)) from error
                yield header, batch
        finally:
            file.close()


def _find_latest(source: _Source, plan: CleaningPlan) -> tuple[LatestOffsets, int]:
    """The latest offsets of the keys from the first dirty offset on, and how far they reach."""
    latest = LatestOffsets(plan.map_bytes, plan.salt)
    transactions = CleanedTransactions(plan.aborted)
    clean_offset = plan.first_dirty_offset
    for segment in plan.segments:
        if segment.end_offset <= plan.first_dirty_offset:
            continue
        for header, batch in source.batches(segment):
            if header.is_control:
                transactions.end(header, read_marker(batch))
            elif not transactions.is_aborted(header) and header.last_offset >= clean_offset:
                if latest.is_full:
                    return latest, clean_offset
                for record in find_records(header, _expand(header, batch)):
                    if record.key is not None:
                        latest.put(record.key, header.base_offset + record.offset_delta)
            clean_offset = max(clean_offset, header.next_offset)
        clean_offset = max(clean_offset, segment.end_offset)
    return latest, clean_offset


def _expand(header: BatchHeader, batch: memoryview) -> bytes:
    return expand(header, batch, limit_bytes=DECOMPRESSED_BYTES_MAX)


class _Filter:
    """Decides batch by batch, in log order, what stays."""

    def __init__(self, plan: CleaningPlan, latest: LatestOffsets, clean_offset: int) -> None:
        self._latest = latest
        self._clean_offset = clean_offset
        self._producers = plan.producers()
        self._transactions = CleanedTransactions(plan.aborted)
        self._now_ms = plan.now_ms
        self._new_horizon_ms = plan.now_ms + plan.delete_retention_ms

    def pass_batch(self, header: BatchHeader, batch: memoryview, writer: "_Writer") -> None:
        """Give ``writer`` what stays of a batch."""
        writer.meet(header)
        if header.is_control:
            self._pass_marker(header, batch, writer)
        elif self._transactions.is_aborted(header) or not header.record_count:
            self._drop(header, batch, writer)
        elif header.last_offset >= self._clean_offset:
            writer.keep(header, batch)
        else:
            self._pass_records(header, batch, writer)

    def _pass_marker(self, header: BatchHeader, batch: memoryview, writer: "_Writer") -> None:
        """A marker goes ``delete.retention.ms`` after a pass that found nothing it speaks of."""
        is_useless, aborted = self._transactions.end(header, read_marker(batch))
        if aborted is not None:
            writer.transactions.append(aborted)
        if not is_useless:
            writer.keep(header, batch)
            return
        horizon = delete_horizon(header)
        if not header.record_count or (horizon is not None and horizon <= self._now_ms):
            self._drop(header, batch, writer)
        elif horizon is not None:
            writer.keep(header, batch)
        else:
            data = _expand(header, batch)
            kept = list(find_records(header, data))
            writer.change(keep_records(header, data, kept, self._new_horizon_ms))

    def _pass_records(self, header: BatchHeader, batch: memoryview, writer: "_Writer") -> None:
        data = _expand(header, batch)
        horizon = delete_horizon(header)
        tombstones_go = horizon is not None and horizon <= self._now_ms
        is_overtaken = self._latest.is_overtaken
        kept: list[StoredRecord] = []
        has_tombstones = False
        for record in find_records(header, data):
            # As in Kafka, what has no key has no place in a compacted log.
            if record.key is None or is_overtaken(
                record.key, header.base_offset + record.offset_delta
            ):
                continue
            if not record.has_value:
                if tombstones_go:
                    continue
                has_tombstones = True
            kept.append(record)
        if not kept:
            self._drop(header, batch, writer)
        elif has_tombstones and horizon is None:
            writer.change(keep_records(header, data, kept, self._new_horizon_ms))
        elif len(kept) < header.record_count:
            writer.change(keep_records(header, data, kept))
        else:
            writer.keep(header, batch)

    def _drop(self, header: BatchHeader, batch: memoryview, writer: "_Writer") -> None:
        """Leave a batch out, unless a producer's last sequence or epoch is known from it (K4)."""
        if not self._is_last_of_producer(header):
            return
        if header.record_count:
            writer.change(emptied(header))
        else:
            writer.keep(header, batch)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last_offset, epoch = self._producers.get(header.producer_id, (-1, -1))
        if last_offset >= 0:
            return last_offset == header.last_offset
        return header.is_control and header.producer_epoch == epoch


class _Writer:
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

    def _path(self, suffix: str) -> str:
        name = cleaned_name(self._stem + suffix, self._plan.generation)
        return self._file_system.join(self._plan.path, name)

    def _open(self, suffix: str) -> File:
        """Open a new file; what another pass may have left of that name goes."""
        file = self._file_system.open(self._path(suffix), create=True)
        file.truncate(0)
        return file

    def meet(self, header: BatchHeader) -> None:
        """Note that a batch is about to be decided on."""
        self._met = header
        self._batches_met += 1

    def keep(self, header: BatchHeader, batch: Buffer) -> None:
        """Add a batch that stays as it is."""
        self._batches_kept += 1
        # The memory that the batch lies in is read into again.
        self._add(header, bytes(batch))

    def change(self, batch: bytes) -> None:
        """Add what is left of the batch just met."""
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
        """Make the new segment durable, or take it away when it is the old one again."""
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
        """Remove what was written."""
        self._file.close()
        for suffix in SEGMENT_SUFFIXES:
            path = self._path(suffix)
            if self._file_system.exists(path):
                self._file_system.unlink(path)
