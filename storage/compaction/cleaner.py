"""One pass of log compaction over one partition: what is read, what stays, what is written.

Rules of this file:

1. A pass touches no file but its own: it reads sealed segments and writes new ones beside them,
   under names of their own and synced. Putting them in place is ``storage/log/segment_swap.py``'s.
   Of a segment that only the store of a cluster has, one piece at a time is in memory.
2. It runs on a thread or in another process, on a :class:`CleaningPlan` that the loop has made; it
   knows nothing of live logs, and what happens to the log meanwhile cannot hurt it.
3. Every batch's checksum is verified before its records are read: a damaged batch ends the pass, it
   is never written again with a good checksum (D7).
4. A batch whose checksum is right and whose records cannot be read stays as it is: its sender built
   it so, and the other batches are still compacted.
5. Groups come in log order, and none may be put in place unless all before it were: a tombstone
   must not be removed before each older record of its key.
6. The last batch of each new segment stays, without records if need be: segments stay adjacent, so
   that a missing segment is noticed.
"""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Final

from barnabas.protocol.record_decoding import Marker, read_marker
from barnabas.protocol.record_filter import (
    StoredRecord,
    delete_horizon,
    emptied,
    expand,
    find_records,
    keep_records,
)
from barnabas.protocol.records import (
    BatchHeader,
    CorruptBatch,
    InvalidBatch,
    iterate_batches,
    verify_batch,
)
from barnabas.storage.batches.batch_contents import DECOMPRESSED_BYTES_MAX
from barnabas.storage.compaction.cleaned_transactions import CleanedTransactions
from barnabas.storage.errors import Corrupt, StoreSilent
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.log.cleaned_segment import (
    CleanedGroup,
    CleaningPlan,
    Pace,
    SegmentWriter,
    SourceSegment,
    StoredSource,
)
from barnabas.storage.log.index import OffsetIndex
from barnabas.storage.log.segment_names import LOG_SUFFIX, OFFSET_DELTA_MAX, file_stem
from barnabas.storage.log.segment_read import read_waiting, scan_batches

ENTRY_BYTES: Final = 192
"""Memory that one key takes: its digest, its offset, and its share of the table."""

_TABLES: Final = 256
"""One table of a million keys keeps the interpreter for 60 ms when it grows (measured), and with
it the loop; as many small ones never for a millisecond."""
_HIGH_BITS: Final = 40
"""Shift to those bits of a hash that choose the table; within it the low bits place the key."""

_SHORT_KEY_BYTES: Final = 15
_DIGEST_BYTES: Final = 16


class LatestOffsets:
    """The latest offset of each key, within bounded memory."""

    def __init__(self, limit_bytes: int, salt: bytes) -> None:
        """``salt``: at most 64 bytes that cannot be guessed."""
        self._tables: list[dict[bytes, int]] = [{} for _ in range(_TABLES)]
        self._limit = max(1, limit_bytes // ENTRY_BYTES)
        self._salt = salt

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    @property
    def is_full(self) -> bool:
        """Return whether the map has no room for another batch."""
        return len(self) >= self._limit

    def put(self, key: bytes, offset: int) -> None:
        """Record a later offset of ``key``."""
        digest = self._digest(key)
        self._table_of(digest)[digest] = offset

    def is_overtaken(self, key: bytes, offset: int) -> bool:
        """Whether a later record of ``key`` is known."""
        digest = self._digest(key)
        return self._table_of(digest).get(digest, -1) > offset

    def forget(self) -> None:
        """Free the memory table by table: all at once would block for too long."""
        while self._tables:
            self._tables.pop()

    def _table_of(self, digest: bytes) -> dict[bytes, int]:
        return self._tables[hash(digest) >> _HIGH_BITS & (_TABLES - 1)]

    def _digest(self, key: bytes) -> bytes:
        # A short key is its own digest: it is shorter than any other's.
        if len(key) <= _SHORT_KEY_BYTES:
            return key
        return blake2b(key, digest_size=_DIGEST_BYTES, key=self._salt).digest()


def clean(file_system: FileSystem, plan: CleaningPlan, pace: Pace) -> Iterator[CleanedGroup]:
    """Run a pass, group by group. Raises Corrupt, StoreSilent, OSError, and errors of ``pace``."""
    plan.make_directory()
    source = _Source(file_system, plan.path, pace)
    latest, clean_offset = _find_latest(source, plan)
    reached = [segment for segment in plan.segments if segment.base_offset < clean_offset]
    groups = list(_group(reached, plan))
    filtering = _Filter(plan, latest, clean_offset)
    for number, group in enumerate(groups, 1):
        writer = SegmentWriter(file_system, plan, group[0].base_offset, pace)
        try:
            for segment in group:
                for header, batch in source.batches(segment):
                    filtering.pass_batch(header, batch, writer)
            cleaned = writer.finish(group, clean_offset, last=number == len(groups))
        except BaseException:
            writer.discard()
            raise
        yield cleaned
    latest.forget()


def _group(
    segments: Sequence[SourceSegment], plan: CleaningPlan
) -> Iterator[tuple[SourceSegment, ...]]:
    """Return neighbours that fit into one segment, grouped as Kafka does."""
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

    def batches(self, segment: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
        path = self._file_system.join(self._path, file_stem(segment.base_offset) + LOG_SUFFIX)
        expected = segment.base_offset
        for position, header, batch in self._scan(path, segment):
            self._pace(0)
            try:
                verify_batch(batch)
            except CorruptBatch as error:
                raise Corrupt(path, position, str(error)) from error
            base_offset = header.base_offset  # No checksum covers it.
            if base_offset < expected or (base_offset > expected and not segment.has_gaps):
                reason = f"a batch of offset {base_offset} where {expected} should be"
                raise Corrupt(path, position, reason)
            expected = header.next_offset
            yield header, batch
        if expected > segment.end_offset:
            raise Corrupt(path, segment.size_bytes, f"ends after {segment.end_offset}")

    def _scan(
        self, path: str, segment: SourceSegment
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        if segment.elsewhere is None:
            yield from self._scan_file(path, segment.size_bytes)
        else:
            yield from self._scan_store(path, segment.elsewhere)

    def _scan_file(
        self, path: str, size_bytes: int
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        file = self._file_system.open(path)

        def read(size: int, position: int) -> bytes:
            self._pace(size)
            try:
                return file.pread(size, position)
            except OSError as error:  # Not to be confused with what writing may meet (D9).
                raise Corrupt(path, position, f"cannot be read: {error}") from error

        try:
            yield from scan_batches(path, read, 0, size_bytes)
        finally:
            file.close()

    def _scan_store(
        self, path: str, source: StoredSource
    ) -> Iterator[tuple[int, BatchHeader, memoryview]]:
        position, offset = 0, source.begin
        while offset < source.end:
            try:
                loaded = source.plan_from(offset).load(read_waiting)
            except OSError as error:  # Not to be confused with what writing may meet (D9).
                raise StoreSilent(str(error)) from error
            if loaded is None or not loaded.data:
                raise Corrupt(path, position, f"no records from offset {offset} on in the store")
            self._pace(len(loaded.data))
            for at, header in iterate_batches(loaded.data):
                batch = loaded.data[at : at + header.size]
                offset = header.next_offset
                yield position + at, header, batch
            position += len(loaded.data)


def _find_latest(source: _Source, plan: CleaningPlan) -> tuple[LatestOffsets, int]:
    """Find the latest offset of each key from the first dirty offset on, and their end."""
    latest = LatestOffsets(plan.map_bytes, plan.salt)
    transactions = CleanedTransactions(plan.aborted)
    clean_offset = plan.first_dirty_offset
    for segment in plan.segments:
        if segment.end_offset <= plan.first_dirty_offset:
            continue
        for header, batch in source.batches(segment):
            if header.is_control:
                transactions.end(header, _marker_of(batch))
            elif not transactions.is_aborted(header) and header.last_offset >= clean_offset:
                if latest.is_full:
                    return latest, clean_offset
                for key, offset in _keys_of(header, batch):
                    latest.put(key, offset)
            clean_offset = max(clean_offset, header.next_offset)
        clean_offset = max(clean_offset, segment.end_offset)
    return latest, clean_offset


def _keys_of(header: BatchHeader, batch: memoryview) -> Iterator[tuple[bytes, int]]:
    """Return the keys of a batch with their offsets, empty if a record cannot be read."""
    try:
        data = _expand(header, batch)
        for _ in find_records(header, data):
            pass
    except InvalidBatch:
        return
    for record in find_records(header, data):
        if record.key is not None:
            yield record.key, header.base_offset + record.offset_delta


def _marker_of(batch: memoryview) -> Marker | None:
    try:
        return read_marker(batch)
    except InvalidBatch:
        return None


def _expand(header: BatchHeader, batch: memoryview) -> bytes:
    return expand(header, batch, limit_bytes=DECOMPRESSED_BYTES_MAX)


class _Filter:
    """Decides batch by batch, in log order, which records are kept."""

    def __init__(self, plan: CleaningPlan, latest: LatestOffsets, clean_offset: int) -> None:
        self._latest = latest
        self._clean_offset = clean_offset
        self._producers = plan.producers()
        self._transactions = CleanedTransactions(plan.aborted)
        self._now_ms = plan.now_ms
        self._new_horizon_ms = plan.now_ms + plan.delete_retention_ms

    def pass_batch(self, header: BatchHeader, batch: memoryview, writer: SegmentWriter) -> None:
        """Write the remaining records of a batch to ``writer``."""
        writer.meet(header)
        try:
            self._pass_batch(header, batch, writer)
        except InvalidBatch as error:
            writer.keep_unreadable(header, batch, str(error))

    def _pass_batch(self, header: BatchHeader, batch: memoryview, writer: SegmentWriter) -> None:
        if header.is_control:
            self._pass_marker(header, batch, writer)
        elif self._transactions.is_aborted(header) or not header.record_count:
            self._drop(header, batch, writer)
        elif header.last_offset >= self._clean_offset:
            writer.keep(header, batch)
        else:
            self._pass_records(header, batch, writer)

    def _pass_marker(self, header: BatchHeader, batch: memoryview, writer: SegmentWriter) -> None:
        """Keep a marker for ``delete.retention.ms`` after the first pass that finds no records of
        its transaction.
        """
        is_useless, aborted = self._transactions.end(header, _marker_of(batch))
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

    def _pass_records(self, header: BatchHeader, batch: memoryview, writer: SegmentWriter) -> None:
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

    def _drop(self, header: BatchHeader, batch: memoryview, writer: SegmentWriter) -> None:
        """Omit a batch, unless a producer's last sequence or epoch is known from it only (K4)."""
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
