"""Reading whole batches out of a segment file, on whichever thread may wait for the disk.

The loop makes a ``FileSpan`` from the index and asks it to ``load`` with a read that never waits;
when that answers None the same span is loaded on a thread. A span reads only bytes that are written
and will never change, so it needs nothing of the log's state.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from protocol.records import HEADER_BYTES, BatchHeader, CorruptBatch, iterate_batches, read_header
from storage.errors import Corrupt
from storage.io import Buffer, File

Read = Callable[[File, int, int], Buffer | None]
"""``(file, size, position) -> bytes``, fewer at the end; None when the disk would be waited for."""

_PROBE_BYTES: Final = 4096 + HEADER_BYTES
_SCAN_BYTES: Final = 1024 * 1024


def read_cached(file: File, size: int, position: int) -> Buffer | None:
    """A ``Read`` for the loop: only what the page cache holds."""
    return file.pread_cached(size, position)


def read_waiting(file: File, size: int, position: int) -> Buffer | None:
    """A ``Read`` for a thread: waits for the disk."""
    return file.pread(size, position)


def scan_batches(
    path: str, read: Callable[[int, int], bytes], start: int, end: int
) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Every batch from byte ``start`` up to ``end`` of a log file: position, header, bytes.

    ``read(size, position)`` may wait for the disk. Raises Corrupt where no whole batch follows;
    checksums are not looked at.
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


@dataclass(frozen=True, slots=True)
class FileSpan:
    """Some batches of one segment: from the one that holds ``start_offset``, below ``end_offset``.

    ``position`` is a batch start at or before it, ``end_position`` the end of what is written.
    ``boundary`` is a batch start at most ``max_bytes`` after ``position`` (or ``position`` itself)
    and ``boundary_offset`` is at or after its base offset; both come from the index.
    ``has_gaps``: compaction may have taken ``start_offset`` away, then what follows it is wanted.
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

    @property
    def size_bytes(self) -> int:
        """About how much ``load`` will find."""
        return min(self.max_bytes, self.end_position - self.position)

    def load(self, read: Read) -> LoadedSpan | None:
        """Read at most ``max_bytes``, but at least one batch; None where ``read`` gives up."""
        found = self._locate(read)
        if found is None:
            return None
        begin, first = found
        if first is None:
            return LoadedSpan(memoryview(b""), self.start_offset)
        size = min(max(self.max_bytes, first.size), self.end_position - begin)
        data = read(self.file, size, begin)
        if data is None:
            return None
        if len(data) < first.size:
            raise Corrupt(self.path, begin, "the file ends inside a batch")
        return self._trim(memoryview(data), begin, first)

    def _locate(self, read: Read) -> tuple[int, BatchHeader | None] | None:
        """Position and header of the first batch wanted; (0, None) if there is none."""
        position = self.position
        while position < self.end_position:
            data = read(self.file, min(_PROBE_BYTES, self.end_position - position), position)
            if data is None:
                return None
            view = memoryview(data)
            at = 0
            while at + HEADER_BYTES <= len(view):
                header = read_header(view, at)
                size = self._checked_size(header, position + at)
                if header.last_offset >= self.start_offset:
                    if header.base_offset > self.start_offset and not self.has_gaps:
                        reason = f"offset {self.start_offset} is not where it should be"
                        raise Corrupt(self.path, position + at, reason)
                    wanted = header.base_offset < self.end_offset
                    return (position + at, header) if wanted else (0, None)
                at += size
            if at == 0:
                raise Corrupt(self.path, position, "the file ends inside a batch header")
            position += at
        return 0, None

    def _checked_size(self, header: BatchHeader, position: int) -> int:
        if header.magic != 2 or header.size < HEADER_BYTES:
            raise Corrupt(self.path, position, "no record batch starts here")
        return header.size

    def _trim(self, view: memoryview, begin: int, first: BatchHeader) -> LoadedSpan:
        """Cut ``view`` after the last whole batch below ``end_offset``."""
        end, upper_offset = first.size, first.next_offset
        if self.boundary - begin > end:
            end, upper_offset = self.boundary - begin, self.boundary_offset
        try:
            for at, header in iterate_batches(view, end):
                if header.base_offset >= self.end_offset:
                    break
                end, upper_offset = at + header.size, header.next_offset
        except CorruptBatch as error:
            raise Corrupt(self.path, begin + end, str(error)) from error
        return LoadedSpan(view[:end], upper_offset)
