"""Reading the records of a remote segment: from the block cache, or on a thread from the store.

Rules of this file:

1. A segment is read in stretches: some whole extents, together a block, or one larger extent. Of a
   packed segment a stretch is a block of its sidecar, or of its batches if the sidecar is damaged
   or missing. The first read of a segment finds out where they begin and end.
2. A stretch is checked as a whole when it arrives: checksums of all batches, offsets without gaps
   unless compaction may have left some. One that is wrong is read again once. Wrong again, it is
   ``Corrupt``, and the rest is read. A stretch may have no batch from an offset on where compaction
   took the last ones: then the next stretch is read.
3. Upkeep may join or pack extents meanwhile, which changes no byte of a batch. A stretch that does
   not begin or end where it did says so: then where stretches begin is read again.
4. A reader that comes in order has the next stretches read ahead.
"""

from __future__ import annotations

import contextlib
import logging
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import (
    CRC_START,
    NO_LEADER_EPOCH,
    BatchHeader,
    CorruptBatch,
    iterate_batches,
)
from barnabas.storage.errors import Corrupt
from barnabas.storage.log.index import OffsetIndex
from barnabas.storage.log.segment_read import LoadedSpan, Read, read_cached
from barnabas.storage.objects.blob_store import BlobNotFound
from barnabas.storage.replicated.block_cache import BLOCK_BYTES
from barnabas.storage.replicated.cold_store import NotYetRead
from barnabas.storage.replicated.log_index import Extent
from barnabas.storage.replicated.log_reading import damage_is_of
from barnabas.storage.replicated.segment_sidecar import (
    Block,
    CorruptSidecar,
    blocks_by_reading,
    blocks_of,
)

if TYPE_CHECKING:
    from barnabas.storage.replicated.cold_store import ColdConnection, ColdStore
    from barnabas.storage.replicated.log_index import ExtentSize

logger = logging.getLogger(__name__)

STRETCH_BYTES: Final = BLOCK_BYTES
AHEAD: Final = 4
"""Number of stretches that are read ahead of a sequential reader."""
_EXTENTS_AT_ONCE: Final = 1000
_INDEX_STEP_BYTES: Final = 4096
_ATTEMPTS: Final = 3
_numbers = count()


class _Moved(Exception):
    """The extents differ from those that the stretches were made of."""


class _Piece(NamedTuple):
    """An extent in the index, or a block of a packed segment."""

    base_offset: int
    next_offset: int
    length: int
    key: str | None = None
    """Key of the packed segment."""
    position: int = 0
    """Position in the packed segment."""


class _Stretches:
    """The stretches of a segment by number."""

    def __init__(self, pieces: Iterable[_Piece]) -> None:
        self.number = next(_numbers)
        """A number that no other has had in this process."""
        self.offsets = array("q")
        """First offset of each stretch, and the end of the last one."""
        self.lengths = array("q")
        self.indexes: dict[int, OffsetIndex] = {}
        """Offset indexes of the stretches that are in the cache, and of some that were."""
        self.places: list[tuple[str, int] | None] = []
        """Key and position of each stretch of a packed segment."""
        end_offset, length, joins = 0, 0, False
        for piece in pieces:
            if not (joins and piece.key is None and length + piece.length <= STRETCH_BYTES):
                if length:
                    self.lengths.append(length)
                length = 0
                self.offsets.append(piece.base_offset)
                self.places.append(None if piece.key is None else (piece.key, piece.position))
            joins = piece.key is None
            length += piece.length
            end_offset = piece.next_offset
        if self.offsets:
            self.lengths.append(length)
            self.offsets.append(end_offset)

    def __len__(self) -> int:
        return len(self.lengths)

    def at(self, offset: int) -> int:
        """Return the stretch with an offset, or -1."""
        found = bisect_right(self.offsets, offset) - 1
        return found if found < len(self) else -1


class RemoteFile:
    """The records of one remote segment; callable on any thread."""

    def __init__(
        self,
        cold: ColdStore,
        partition_id: int,
        base_offset: int,
        end_offset: int,
        *,
        has_gaps: bool = False,
    ) -> None:
        self.has_gaps = has_gaps
        """Whether compaction may have taken offsets of its extents away.

        They may begin before the segment and end after it.
        """
        self.path = f"partition {partition_id} in the store, offsets {base_offset} to {end_offset},"
        self._cold = cold
        self._partition_id = partition_id
        self._base_offset = base_offset
        self._end_offset = end_offset
        self._stretches: _Stretches | None = None
        self._last_read = -1

    def load(
        self, span: RemoteSpan, *, waits: bool, until_s: float | None = None
    ) -> LoadedSpan | None:
        """Return some batches of a span, up to the end of a stretch; None unless it ``waits``.

        ``until_s``: time at which it waits no longer for the store, and returns None, too.
        Raises Corrupt, and OSError if the store does not respond in time.
        """
        try:
            return self._load(span, waits=waits, until_s=until_s)
        except NotYetRead:
            return None

    def _load(self, span: RemoteSpan, *, waits: bool, until_s: float | None) -> LoadedSpan | None:
        for _ in range(_ATTEMPTS):
            stretches = self._stretches
            if stretches is None:
                if not waits:
                    return None
                key = self._key(-1)
                found_now = self._cold.read(key, self._read_stretches, until_s=until_s)
                stretches = self._stretches = self._stretches or found_now
            number = stretches.at(span.start_offset)
            if number < 0:
                raise Corrupt(self.path, 0, f"offset {span.start_offset} is missing")
            try:
                return self._load_from(stretches, number, span, waits=waits, until_s=until_s)
            except _Moved:
                if self._stretches is stretches:
                    self._stretches = None
        raise Corrupt(self.path, 0, "the extents change while they are read")

    def _load_from(
        self,
        stretches: _Stretches,
        number: int,
        span: RemoteSpan,
        *,
        waits: bool,
        until_s: float | None,
    ) -> LoadedSpan | None:
        """Load from a stretch, or from the next one that has a wanted batch; raises _Moved."""
        while True:
            found = self._load_cached(stretches, number, span, waits=waits)
            if found is None and waits:
                self._cold.cache.count(is_hit=False)
                data = self._cold.read(
                    self._key(number, stretches),
                    partial(self._fetch, stretches, number),
                    until_s=until_s,
                )
                self._note_read(stretches, number)
                found = self._cut(stretches, number, span, memoryview(data), 0)
            number += 1
            is_last = number == len(stretches) or stretches.offsets[number] >= span.end_offset
            if found is None or len(found.data) or is_last:
                return found

    def forget(self) -> None:
        """Drop all stretches from the cache."""
        stretches, self._stretches = self._stretches, None
        if stretches is not None:
            for number in list(stretches.indexes):
                self._cold.cache.forget(self._key(number, stretches))

    def _key(self, number: int, stretches: _Stretches | None = None) -> tuple[int, ...]:
        if stretches is None:
            return self._partition_id, self._base_offset, number
        return stretches.number, number

    # From the cache

    def _load_cached(
        self, stretches: _Stretches, number: int, span: RemoteSpan, *, waits: bool
    ) -> LoadedSpan | None:
        index = stretches.indexes.get(number)
        if index is None:
            return None
        position = index.lookup(span.start_offset)
        rest = stretches.lengths[number] - position
        # Mostly enough; a large first batch takes the second attempt.
        for size in (span.max_bytes + 2 * _INDEX_STEP_BYTES, rest):
            data = self._cold.cache.read(
                self._key(number, stretches), min(size, rest), position, waits=waits
            )
            if data is None:
                break
            found = self._cut(stretches, number, span, memoryview(data), position)
            if found is not None:
                self._cold.cache.count(is_hit=True)
                self._note_read(stretches, number)
                return found
        if not self._cold.cache.has(self._key(number, stretches)):
            stretches.indexes.pop(number, None)
        return None

    def _cut(
        self,
        stretches: _Stretches,
        number: int,
        span: RemoteSpan,
        view: memoryview,
        position: int,
    ) -> LoadedSpan | None:
        """Cut the wanted batches out of bytes of a stretch, or None if they end inside the
        first.
        """
        begin, end, upper_offset = -1, 0, span.start_offset
        for at, header in iterate_batches(view):
            if header.last_offset < span.start_offset:
                continue
            size = header.size
            if header.base_offset >= span.end_offset:
                break
            if begin < 0:
                begin = at
            elif at + size - begin > span.max_bytes:
                break
            end, upper_offset = at + size, header.next_offset
        stretch_end = stretches.lengths[number] - position
        if begin < 0:
            return LoadedSpan(view[:0], upper_offset) if len(view) == stretch_end else None
        if end == stretch_end:
            self._cold.cache.finish(self._key(number, stretches))
        return LoadedSpan(view[begin:end], upper_offset)

    def _note_read(self, stretches: _Stretches, number: int) -> None:
        """Begin to read ahead for a sequential reader."""
        last, self._last_read = self._last_read, number
        if number not in (last + 1, last) or number == last:
            return
        for ahead in range(number + 1, min(number + 1 + AHEAD, len(stretches))):
            if ahead not in stretches.indexes:
                self._cold.begin(
                    self._key(ahead, stretches), partial(self._fetch, stretches, ahead)
                )

    # From the store

    def _read_stretches(self, connection: ColdConnection) -> _Stretches:
        """Read the bounds of the stretches; raises Corrupt."""
        for _ in range(_ATTEMPTS):
            try:
                return _Stretches(self._pieces(connection))
            except _Moved:
                continue
        raise Corrupt(self.path, 0, "a packed segment is missing in the store")

    def _pieces(self, connection: ColdConnection) -> Iterator[_Piece]:
        """Yield the pieces of the segment; raises _Moved, Corrupt."""
        from_offset = self._base_offset
        while from_offset < self._end_offset:
            page = connection.index.extent_sizes(
                self._partition_id, from_offset, most=_EXTENTS_AT_ONCE
            )
            if not page:
                return
            for size in page:
                if size.base_offset >= self._end_offset:
                    break
                if not size.is_segment:
                    yield _Piece(size.base_offset, size.next_offset, size.length)
                else:
                    yield from self._blocks(connection, size)
            from_offset = page[-1].next_offset

    def _blocks(self, connection: ColdConnection, size: ExtentSize) -> Iterator[_Piece]:
        """Yield the blocks of a packed segment that this segment has a part of."""
        assert size.key is not None, "the extent is a packed segment"
        try:
            blocks = blocks_of(connection.get_range, size)
        except (BlobNotFound, CorruptSidecar) as error:
            blocks = self._blocks_without_sidecar(connection, size, size.key, error)
        for base_offset, next_offset, position, length in blocks:
            if next_offset > self._base_offset and base_offset < self._end_offset:
                yield _Piece(base_offset, next_offset, length, size.key, position)

    def _blocks_without_sidecar(
        self, connection: ColdConnection, size: ExtentSize, key: str, error: Exception
    ) -> list[Block]:
        """Return the blocks of a packed segment by reading it; raises _Moved, Corrupt."""
        try:
            with self._object():
                blocks = blocks_by_reading(connection.get_range, size)
        except CorruptBatch as damage:
            raise Corrupt(self.path, 0, f"object {key}: {damage}") from None
        reason = "it is missing" if isinstance(error, BlobNotFound) else str(error)
        logger.warning("sidecar unusable, segment was read instead key=%s error=%s", key, reason)
        return blocks

    @contextlib.contextmanager
    def _object(self) -> Iterator[None]:
        """Raise _Moved for an object that is missing."""
        try:
            yield
        except BlobNotFound:
            raise _Moved from None

    def _fetch(self, stretches: _Stretches, number: int, connection: ColdConnection) -> bytes:
        """Read a stretch and keep it; raises _Moved, Corrupt."""
        try:
            data, offsets = self._fetch_once(stretches, number, connection)
        except Corrupt:
            data, offsets = self._fetch_once(stretches, number, connection)
        self._cold.cache.put(self._key(number, stretches), data)
        stretches.indexes[number] = offsets
        return data

    def _fetch_once(
        self, stretches: _Stretches, number: int, connection: ColdConnection
    ) -> tuple[bytes, OffsetIndex]:
        begin, end = stretches.offsets[number], stretches.offsets[number + 1]
        place, left = stretches.places[number], stretches.lengths[number]
        offsets = OffsetIndex(begin)
        if place is not None:
            key, position = place
            with self._object():
                block = connection.get_range(key, position, left)
            self._check(Extent(begin, end, NO_LEADER_EPOCH, block), 0, offsets)
            return block, offsets
        parts: list[bytes] = []
        position, from_offset = 0, begin
        while from_offset < end:
            with damage_is_of(self._partition_id, from_offset):
                page = connection.index.extents(
                    self._partition_id, from_offset, most=_EXTENTS_AT_ONCE, most_bytes=left
                )
                if not page or page[-1].next_offset > end:
                    raise _Moved
                page = connection.bodies(page)
            for extent in page:
                if extent.base_offset != from_offset:
                    raise _Moved
                self._check(extent, position, offsets)
                parts.append(extent.data)
                position += len(extent.data)
                from_offset = extent.next_offset
            left = stretches.lengths[number] - position
        if left:
            raise _Moved
        return b"".join(parts), offsets

    def _check(self, extent: Extent, begin: int, offsets: OffsetIndex) -> None:
        """Raise Corrupt unless the extent has its batches; note some of them in ``offsets``."""
        view = memoryview(extent.data)
        expected, end = extent.base_offset, 0
        try:
            for at, header in iterate_batches(view):
                end = at + header.size
                if self.has_gaps and expected < header.base_offset:
                    expected = header.base_offset
                self._check_batch(header, view[at:end], expected, extent)
                if begin + at - offsets.last_position > _INDEX_STEP_BYTES:
                    offsets.append(header.last_offset, begin + at)
                expected = header.next_offset
        except CorruptBatch as error:
            raise Corrupt(self.path, begin + end, str(error)) from None
        if end != len(view) or not (self.has_gaps or expected == extent.next_offset):
            reason = f"the extent ends at offset {expected}, not {extent.next_offset}"
            raise Corrupt(self.path, begin + end, reason)

    @staticmethod
    def _check_batch(header: BatchHeader, batch: memoryview, expected: int, extent: Extent) -> None:
        if header.base_offset != expected or header.next_offset > extent.next_offset:
            raise CorruptBatch(f"no batch of offset {expected} starts here")
        if crc32c(batch[CRC_START:]) != header.crc:
            raise CorruptBatch(f"the checksum of the batch at offset {expected} is wrong")


@dataclass(frozen=True, slots=True)
class RemoteSpan:
    """Some batches of a remote segment, as ``FileSpan`` is of a file."""

    file: RemoteFile
    start_offset: int
    end_offset: int
    max_bytes: int

    @property
    def path(self) -> str:
        """Name of the segment, for messages."""
        return self.file.path

    @property
    def position(self) -> int:
        """Position for messages: where the batches lie is not known yet."""
        return 0

    @property
    def size_bytes(self) -> int:
        """About how much ``load`` will find."""
        return self.max_bytes

    @property
    def waits_for_store(self) -> bool:
        """See ``ReadPlan``."""
        return True

    def load(self, read: Read, until_s: float | None = None) -> LoadedSpan | None:
        """Return batches of up to ``max_bytes``, at least one; None if ``read`` does not wait."""
        return self.file.load(self, waits=read is not read_cached, until_s=until_s)

    def slice(self) -> None:
        """Return None: blocks are copied, since others may take their place at any time."""
