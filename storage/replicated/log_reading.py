"""A partition's log read back from a log index, to be opened on a broker.

Nothing of it is trusted. A change by a disk, or by an operator who edited a table, is found here:
before any client is served from it, and while the partition is known. Offsets and epochs of a batch
lie outside of its checksum, so they are compared with those of the extent and of the batch before.
An extent is one leader's flush, so its batches have its epoch. Only those of an imported extent
have earlier ones; a snapshot follows it then.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import (
    CRC_START,
    NO_LEADER_EPOCH,
    BatchHeader,
    CorruptBatch,
    iterate_batches,
    read_header,
)
from barnabas.storage.errors import Corrupt, LedSince, ObjectDamaged, StoreDamaged
from barnabas.storage.log.readable_segment import ReadableSegment
from barnabas.storage.replicated.loading import DurableLog
from barnabas.storage.replicated.log_index import Extent, LogBeginning, LogHead, LogIndex

_EXTENTS_AT_ONCE: Final = 256
_SIZES_AT_ONCE: Final = 1000
FIRST_AT_ONCE: Final = 64
"""Extents of each of many logs: of most of them that is all. More are as many questions, of which
each is a commit; so a log that is written to in small pieces should not need them."""
BYTES_AT_ONCE: Final = 16 * 1024 * 1024
"""Maximum size of one response; a larger extent has a response to itself."""


class StoredBatches(NamedTuple):
    """The batches of one extent, none of which is damaged."""

    base_offset: int
    """First offset of the extent; its first batch may begin later, after compaction."""
    batches: Sequence[memoryview]
    size_bytes: int


def read_log(index: LogIndex, partition_id: int) -> DurableLog:
    """Read all durable records of a partition; raises IndexClosed, LedSince if it was deleted.

    Raises Corrupt if the store is damaged or its copy ends early. Blocks. A leader whose flushes
    all have outcomes reads the final state: no other broker can have written since. The result
    holds its batches in memory. It may lack batches below both the log's start and its snapshot.
    """
    found = beginning_of(index, partition_id)
    if found is None:
        raise LedSince(f"partition {partition_id} was deleted")
    return whole_log(found.head, all_from(index, found))


def beginning_of(index: LogIndex, partition_id: int) -> LogBeginning | None:
    """Return the start of a log, or None if it was deleted. Raises Corrupt; blocks."""
    with damage_is_of(partition_id):
        return next(iter(beginnings(index, [partition_id], BYTES_AT_ONCE)), None)


def head_of(index: LogIndex, partition_id: int) -> LogHead | None:
    """Return the head of a partition, or None if it was deleted. Raises Corrupt; blocks."""
    with damage_is_of(partition_id):
        found = index.beginnings([partition_id], most=0, most_bytes=0)
    return found[0].head if found else None


@contextlib.contextmanager
def damage_is_of(partition_id: int, from_offset: int = 0) -> Iterator[None]:
    """Raise Corrupt, with the partition's name, for damage of its log in the store."""
    try:
        yield
    except (ObjectDamaged, StoreDamaged) as damage:
        path = f"partition {partition_id} in the store, from offset {from_offset} on,"
        raise Corrupt(path, 0, str(damage)) from damage


def beginnings(
    index: LogIndex, partition_ids: Sequence[int], most_bytes: int
) -> list[LogBeginning]:
    """Return the first extents of logs, all of short ones; see ``all_from``."""
    found = index.beginnings(partition_ids, most=FIRST_AT_ONCE, most_bytes=most_bytes)
    return _with_bodies(index, found)


def recent_beginnings(
    index: LogIndex, partition_ids: Sequence[int], most_bytes: int
) -> list[LogBeginning]:
    """Return the first extents of each log; of a log with parts, those after its snapshot."""
    found = index.recent_beginnings(partition_ids, most=FIRST_AT_ONCE, most_bytes=most_bytes)
    return _with_bodies(index, found)


def _with_bodies(index: LogIndex, found: Sequence[LogBeginning]) -> list[LogBeginning]:
    """Read the bodies that are in the object store, of all logs at once.

    Logs with parts are left unchanged: only their headers are read, at a later time.
    """
    whole = [each for each in found if not each.is_recent]
    bodies = iter(index.bodies([extent for each in whole for extent in each.extents]))
    return [
        each if each.is_recent else each._replace(extents=[next(bodies) for _ in each.extents])
        for each in found
    ]


def is_elsewhere(extents: Iterable[Extent]) -> bool:
    """Whether some of the extents lie in the object store."""
    return any(extent.place is not None for extent in extents)


def is_whole(beginning: LogBeginning) -> bool:
    """Whether this is the whole log."""
    return _end_of(beginning) >= beginning.head.state.log_end_offset


def all_from(index: LogIndex, beginning: LogBeginning) -> Iterator[Extent]:
    """Yield all needed extents of a log with this beginning. Blocks; raises Corrupt."""
    yield from beginning.extents
    offsets = range(_end_of(beginning), beginning.head.state.log_end_offset)
    yield from _extents_of(index, beginning.head.partition_id, offsets)


def _end_of(beginning: LogBeginning) -> int:
    if beginning.extents:
        return beginning.extents[-1].next_offset
    return beginning.first_offset


def whole_log(head: LogHead, extents: Iterable[Extent]) -> DurableLog:
    """Return the log of these extents; raises Corrupt as ``read_log``."""
    log = log_in_pieces(head, extents)
    return log._replace(batches=[*log.batches])


def log_in_pieces(head: LogHead, extents: Iterable[Extent]) -> DurableLog:
    """Return the log of these extents, which are read while its batches are iterated.

    The first extent is read here, and raises Corrupt as ``read_log``; so do the batches.
    """
    stored = stored_batches(head, extents)
    first = next(stored, None)
    if first is None:
        base_offset, pieces = head.state.log_end_offset, stored
    else:
        base_offset, pieces = first.base_offset, chain([first], stored)
    batches = chain.from_iterable(each.batches for each in pieces)
    return DurableLog(batches, head.state.log_start_offset, base_offset, head.snapshot)


def recent_from(index: LogIndex, head: LogHead) -> Iterator[Extent]:
    """All extents that reach beyond the snapshot of a log; blocks, raises Corrupt.

    Those in the object store come without their bytes; see ``with_bodies``.
    """
    assert head.snapshot is not None, "the log has a snapshot"
    return _placed_from(index, head, head.snapshot.next_offset)


def needed_from(index: LogIndex, head: LogHead) -> Iterator[Extent]:
    """All needed extents of a log, as ``recent_from``."""
    return _placed_from(index, head, head.needless_offset)


def _placed_from(index: LogIndex, head: LogHead, from_offset: int) -> Iterator[Extent]:
    offsets = range(from_offset, head.state.log_end_offset)
    for page in _pages_of(index, head.partition_id, offsets):
        yield from page


def has_more_bytes(index: LogIndex, head: LogHead, size_bytes: int) -> bool:
    """Whether the needed extents of a log have more bytes than a number; blocks."""
    from_offset = head.needless_offset
    while page := index.extent_sizes(head.partition_id, from_offset, most=_SIZES_AT_ONCE):
        size_bytes -= sum(each.length for each in page)
        if size_bytes < 0:
            return True
        from_offset = page[-1].next_offset
    return False


def with_bodies(index: LogIndex, partition_id: int, extents: Iterable[Extent]) -> Iterator[Extent]:
    """Yield extents of a partition with their bytes; blocks, raises Corrupt."""
    for extent in extents:
        with damage_is_of(partition_id, extent.base_offset):
            found = index.bodies([extent])
        yield from found


def log_behind_snapshot(
    head: LogHead, extents: Iterable[Extent], remote: Sequence[ReadableSegment]
) -> DurableLog:
    """Return a log of which ``remote`` has all before its snapshot.

    The extents are those of ``recent_from``; they are read while the batches are iterated.
    """
    snapshot = head.snapshot
    assert snapshot is not None, "the log has a snapshot"
    begin = snapshot.next_offset
    batches = (
        batch
        for stored in _stored_from(head, extents, begin)
        for batch in stored.batches
        if read_header(batch).base_offset >= begin
    )
    return DurableLog(batches, head.state.log_start_offset, begin, snapshot, remote)


def stored_batches(head: LogHead, extents: Iterable[Extent]) -> Iterator[StoredBatches]:
    """Yield the batches of all needed extents; raises Corrupt as ``read_log``."""
    return _stored_from(head, extents, head.needless_offset)


def _stored_from(
    head: LogHead, extents: Iterable[Extent], needless_offset: int
) -> Iterator[StoredBatches]:
    reader = ExtentReader(head)
    for extent in extents:
        reader.require_next(extent, needless_offset)
        yield reader.read(extent)
    reader.require_end(needless_offset)


class ExtentReader:
    """Reads one extent after the other; raises Corrupt for damaged ones."""

    def __init__(self, head: LogHead) -> None:
        self._partition_id = head.partition_id
        self._log_end_offset = head.state.log_end_offset
        self._leader_epoch = head.state.leader_epoch
        """The reader's own epoch: no broker has written in a later one."""
        self._imported_to = 0 if head.snapshot is None else head.snapshot.next_offset
        """End of the imported extents."""
        self._batch_epoch = NO_LEADER_EPOCH
        """Epoch of the previous batch."""
        self.end_offset: int | None = None
        """End offset of the extents read, or None before the first."""

    def require_next(self, extent: Extent, needless_offset: int) -> None:
        """Raise unless the extent follows the previous one."""
        end_offset = self.end_offset
        if end_offset is None:
            if extent.base_offset > needless_offset:
                raise self._damage(extent, 0, f"extent of offset {needless_offset} is missing")
        elif extent.base_offset != end_offset:
            raise self._damage(extent, 0, f"the extent should start at offset {end_offset}")
        self.end_offset = extent.next_offset

    def require_end(self, needless_offset: int) -> None:
        """Raise unless the extents reach the end of the log."""
        end_offset = needless_offset if self.end_offset is None else self.end_offset
        if end_offset < self._log_end_offset:
            path = f"partition {self._partition_id} in the store"
            raise Corrupt(path, end_offset, f"ends before offset {self._log_end_offset}")

    def check_headers(self, extent: Extent, headers: Sequence[BatchHeader]) -> None:
        """Raise unless these are the headers of the extent's batches, which are not read."""
        position, end_offset = 0, extent.base_offset
        try:
            for header in headers:
                self._check_place(header, end_offset, extent)
                position += header.size
                end_offset = header.next_offset
        except CorruptBatch as error:
            raise self._damage(extent, position, str(error)) from None
        if position != extent.size_bytes:
            raise self._damage(extent, position, "the headers are not those of all batches")

    def read(self, extent: Extent) -> StoredBatches:
        """Return the batches of the extent, which is the next one."""
        data = memoryview(extent.data)
        found = []
        position, end_offset = 0, extent.base_offset
        try:
            for at, header in iterate_batches(data):
                position = at
                batch = data[at : at + header.size]
                self._check(header, batch, end_offset, extent)
                found.append(batch)
                position += header.size
                end_offset = header.next_offset
        except CorruptBatch as error:
            raise self._damage(extent, position, str(error)) from None
        if position != len(data):
            raise self._damage(extent, position, "a batch that is cut off")
        return StoredBatches(extent.base_offset, found, len(data))

    def _check(
        self, header: BatchHeader, batch: memoryview, end_offset: int, extent: Extent
    ) -> None:
        """Raise CorruptBatch for a batch that is damaged, or cannot follow ``end_offset``."""
        if crc32c(batch[CRC_START:]) != header.crc:
            raise CorruptBatch("the checksum does not match")
        self._check_place(header, end_offset, extent)

    def _check_place(self, header: BatchHeader, end_offset: int, extent: Extent) -> None:
        if not end_offset <= header.base_offset < header.next_offset <= extent.next_offset:
            raise CorruptBatch(
                f"the batch has the offsets {header.base_offset} to {header.next_offset}, of"
                f" {end_offset} to {extent.next_offset}"
            )
        epoch = header.partition_leader_epoch
        is_flushed = header.base_offset >= self._imported_to
        least = extent.leader_epoch if is_flushed else NO_LEADER_EPOCH
        if not (
            max(least, self._batch_epoch) <= epoch <= min(extent.leader_epoch, self._leader_epoch)
        ):
            raise CorruptBatch(
                f"the batch has epoch {epoch}, after epoch {self._batch_epoch}, in an extent of"
                f" {extent.leader_epoch}"
            )
        self._batch_epoch = epoch

    def _damage(self, extent: Extent, position: int, reason: str) -> Corrupt:
        offset = extent.base_offset
        path = f"partition {self._partition_id} in the store, the extent of offset {offset},"
        return Corrupt(path, position, reason)


def _extents_of(index: LogIndex, partition_id: int, offsets: range) -> Iterator[Extent]:
    """Yield the extents with these offsets and their bytes."""
    for page in _pages_of(index, partition_id, offsets):
        with damage_is_of(partition_id, page[0].base_offset):
            extents = index.bodies(page)
        page.clear()
        extents.reverse()
        while extents:  # None is held any more once the next one is requested.
            yield extents.pop()


def _pages_of(index: LogIndex, partition_id: int, offsets: range) -> Iterator[list[Extent]]:
    """Yield the extents with these offsets; each request returns as many as fit.

    The last offset needs no further request.
    """
    from_offset = offsets.start
    while from_offset < offsets.stop:
        with damage_is_of(partition_id, from_offset):
            extents = index.extents(
                partition_id, from_offset, most=_EXTENTS_AT_ONCE, most_bytes=BYTES_AT_ONCE
            )
        if not extents:
            return
        from_offset = extents[-1].next_offset
        yield extents
