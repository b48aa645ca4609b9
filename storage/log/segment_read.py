"""Reading whole batches out of a segment file, on any thread that may wait for the disk.

The loop makes a ``FileSpan`` from the index and asks it to ``load`` with a read that never waits;
when that returns None the same span is loaded on a thread. Many bytes that are in the page cache
can be sent from there: ``slice`` finds where the same batches begin and end. A span reads only
bytes that are written and will never change, so it needs nothing of the log's state.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from crc32c import crc32c

from barnabas.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    iterate_batches,
    read_header,
)
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.file_system import Buffer, File
from barnabas.storage.files.io import FileSlice

Read = Callable[[File, int, int], Buffer | None]
"""``(file, size, position) -> bytes``: fewer bytes at the end; None if the read would wait."""

SLICE_BYTES_MIN: Final = 256 * 1024
"""Size from which batches are sent from the page cache. Smaller ones are copied sooner than the
kernel reports whether it has them."""

_WRONG_ENTRY: Final = "a batch begins here that the index expects earlier"
_ANY_OFFSET: Final = 2**63 - 1
_PROBE_BYTES: Final = 4096 + HEADER_BYTES
_SCAN_BYTES: Final = 1024 * 1024


def read_cached(file: File, size: int, position: int) -> Buffer | None:
    """Read for the loop: only what the page cache holds."""
    return file.pread_cached(size, position)


def read_waiting(file: File, size: int, position: int) -> Buffer | None:
    """Read for a thread; waits for the disk."""
    return file.pread(size, position)


def scan_batches(
    path: str, read: Callable[[int, int], bytes], start: int, end: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield position, header and bytes of every batch from byte ``start`` up to ``end`` of a log.

    ``read(size, position)`` may wait for the disk. Raises Corrupt where no whole batch follows;
    checksums are not verified.
    """
    position, want = start, _SCAN_BYTES
    while position < end:
        view = memoryview(read(min(want, end - position), position))
        at = 0
        try:
            for at_batch, header in iterate_batches(view):
                at = at_batch + header.size
                yield position + at_batch, header, view[at_batch:at]
        except CorruptBatch as error:
            raise Corrupt(path, position + at, str(error)) from error
        if at == 0 and len(view) < want:
            raise Corrupt(path, position, "the file ends inside a batch")
        want = _SCAN_BYTES if at else want * 2
        position += at


@dataclass(frozen=True, slots=True)
class LoadedSpan:
    """Whole batches, one after the other.

    ``upper_offset`` is at or after the offset that follows the last of them: exact enough for the
    aborted list, which may name too many transactions but never too few (L10).
    """

    data: memoryview
    upper_offset: int


class ReadPlan(Protocol):
    """Some batches of one segment, to be read on the loop if that never waits, or on a thread."""

    @property
    def path(self) -> str:
        """Name of the data, for messages."""

    @property
    def position(self) -> int:
        """First byte to read, for messages."""

    @property
    def file(self) -> object:
        """The object that has the data."""

    @property
    def start_offset(self) -> int:
        """The first wanted offset."""

    @property
    def max_bytes(self) -> int:
        """Maximum number of bytes; the first batch may be larger."""

    @property
    def size_bytes(self) -> int:
        """About how much ``load`` will find."""

    @property
    def waits_for_store(self) -> bool:
        """Whether the read waits for the store of a cluster, as opposed to the disk."""

    def load(self, read: Read, until_s: float | None = None) -> LoadedSpan | None:
        """Return batches of up to ``max_bytes``, at least one; None if ``read`` gives up.

        ``until_s``: the time, as of ``monotonic``, at which a wait for the store ends with None.
        """

    def slice(self) -> tuple[FileSlice, int] | None:
        """Return the slice of a file that ``load`` would read, and its upper offset, or None."""


@dataclass(frozen=True, slots=True)
class FileSpan:
    """Some batches of one segment: from the one that holds ``start_offset``, below ``end_offset``.

    ``position`` is a batch start at or before it, ``end_position`` the end of what is written, or
    of what is sound.
    ``boundary`` is a batch start at most ``max_bytes`` after ``position`` (or ``position`` itself)
    and ``boundary_offset`` is at or after its base offset; both come from the index.
    ``has_gaps``: compaction may have taken ``start_offset`` away, then what follows it is wanted.
    ``position_offset``: the index says that the batch at ``position`` does not begin behind it.
    """

    path: str
    file: File
    position: int
    end_position: int
    boundary: int
    boundary_offset: int
    start_offset: int
    end_offset: int
    max_bytes: int
    has_gaps: bool = False
    position_offset: int = _ANY_OFFSET

    @property
    def size_bytes(self) -> int:
        """Approximate number of bytes that ``load`` returns."""
        return min(self.max_bytes, self.end_position - self.position)

    @property
    def waits_for_store(self) -> bool:
        """See ``ReadPlan``."""
        return False

    def load(self, read: Read, until_s: float | None = None) -> LoadedSpan | None:
        """Read at most ``max_bytes``, but at least one batch, or return None as ``read`` does."""
        del until_s
        try:
            found = self._locate(read)
        except _NotCachedError:
            return None
        if found is None:
            return LoadedSpan(memoryview(b""), self.start_offset)
        begin, first = found
        data = read(self.file, self._limit(begin, first) - begin, begin)
        if data is None:
            return None
        if len(data) < first.size:
            raise Corrupt(self.path, begin, "the file ends inside a batch")
        view = memoryview(data)

        def loaded(_file: File, size: int, position: int) -> Buffer:
            return view[position - begin : position - begin + size]

        end, upper_offset = self._end(loaded, begin, first, begin + len(view))
        return LoadedSpan(view[: end - begin], upper_offset)

    def slice(self) -> tuple[FileSlice, int] | None:
        """Return the slice of the file that ``load`` would read, and its upper offset, for the loop
        to send.

        None if it is little, or not all in the page cache.
        """
        if self.boundary - self.position < SLICE_BYTES_MIN:
            return None
        try:
            found = self._locate(read_cached)
            if found is None:
                return None
            begin, first = found
            end, upper_offset = self._end(read_cached, begin, first, self._limit(begin, first))
        except _NotCachedError:
            return None
        if end - begin < SLICE_BYTES_MIN:
            return None
        data = self.file.slice(end - begin, begin)
        return None if data is None else (data, upper_offset)

    def _locate(self, read: Read) -> tuple[int, BatchHeader] | None:
        """Return position and header of the first requested batch."""
        for position, header in self._headers(read, self.position, self.end_position - 1):
            if position == self.position and header.base_offset > self.position_offset:
                raise Corrupt(self.path, position, _WRONG_ENTRY)
            if header.last_offset < self.start_offset:
                continue
            if header.base_offset > self.start_offset and not self.has_gaps:
                reason = f"offset {self.start_offset} is not where it should be"
                raise Corrupt(self.path, position, reason)
            return (position, header) if header.base_offset < self.end_offset else None
        return None

    def _limit(self, begin: int, first: BatchHeader) -> int:
        """Return the position where a response that begins with ``first`` has to end."""
        return min(begin + max(self.max_bytes, first.size), self.end_position)

    def _end(self, read: Read, begin: int, first: BatchHeader, limit: int) -> tuple[int, int]:
        """Return the end of the last whole batch before ``limit`` and ``end_offset``, and its
        offset.
        """
        end, upper_offset = begin + first.size, first.next_offset
        if end < self.boundary <= limit - HEADER_BYTES:  # Else nothing would prove it.
            end, upper_offset = self.boundary, self.boundary_offset
        for position, header in self._headers(read, end, limit - HEADER_BYTES):
            if position == self.boundary and header.base_offset > self.boundary_offset:
                raise Corrupt(self.path, position, _WRONG_ENTRY)
            end_of_batch = position + header.size
            if end_of_batch > limit or header.base_offset >= self.end_offset:
                break
            end, upper_offset = end_of_batch, header.next_offset
        return end, upper_offset

    def _headers(self, read: Read, position: int, last: int) -> Iterator[tuple[int, BatchHeader]]:
        """Yield position and header of every batch from ``position`` to ``last``."""
        while position <= last:
            data = read(self.file, min(_PROBE_BYTES, self.end_position - position), position)
            if data is None:
                raise _NotCachedError
            view = memoryview(data)
            if len(view) < HEADER_BYTES:
                raise Corrupt(self.path, position, "the file ends inside a batch header")
            at = 0
            while at + HEADER_BYTES <= len(view) and position + at <= last:
                header = read_header(view, at)
                if header.magic != MAGIC or header.size < HEADER_BYTES:
                    raise Corrupt(self.path, position + at, "no record batch starts here")
                yield position + at, header
                at += header.size
            position += at


class _NotCachedError(Exception):
    """A read that must not wait would have to."""


def checked_batches(
    path: str, batches: Iterator[tuple[int, BatchHeader, memoryview]]
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Yield the batches of a scan; raises Corrupt at the first one with a wrong checksum."""
    for position, header, batch in batches:
        if crc32c(batch[CRC_START:]) != header.crc:
            reason = f"the checksum of the batch at offset {header.base_offset} is wrong"
            raise Corrupt(path, position, reason)
        yield position, header, batch
