"""Reading batches that are durable but not in the segment files yet: from memory, by reference.

What was appended together is stored together; a reader may begin and end at any batch of it.
"""

from bisect import bisect_right
from operator import attrgetter
from typing import Final

from barnabas.protocol.records import read_header
from barnabas.storage.files.file_system import Buffer
from barnabas.storage.journal.journal import StoredBatches

NEXT_OFFSET: Final = attrgetter("next_offset")


class MemorySlice:
    """Batches read from the groups in memory, by reference."""

    __slots__ = ("chunks", "size_bytes", "upper_offset")

    def __init__(self, chunks: list[memoryview], size_bytes: int, upper_offset: int) -> None:
        self.chunks = chunks
        self.size_bytes = size_bytes
        self.upper_offset = upper_offset


def read_memory(
    unflushed: list[StoredBatches], offset: int, end: int, max_bytes: int
) -> MemorySlice:
    """Return the batches from ``offset`` to ``end``, at least the first one."""
    chunks: list[memoryview] = []
    size, upper = 0, offset
    chunk: Buffer | None = None
    start = stop = 0
    for at in range(bisect_right(unflushed, offset, key=NEXT_OFFSET), len(unflushed)):
        stored = unflushed[at]
        if stored.next_offset > end:
            break
        first = stored.start
        if stored.base_offset < offset:
            first = _position_of(stored, offset)
        last, upper_of_stored = stored.end, stored.next_offset
        is_cut = size + last - first > max_bytes
        if is_cut:
            last, upper_of_stored = _cut(stored, first, max_bytes - size, keep_one=not size)
            if last == first:
                break
        size += last - first
        upper = upper_of_stored
        if stored.chunk is chunk and first == stop:
            stop = last
        else:
            if chunk is not None:
                chunks.append(memoryview(chunk)[start:stop])
            chunk, start, stop = stored.chunk, first, last
        if is_cut:
            break
    if chunk is not None:
        chunks.append(memoryview(chunk)[start:stop])
    return MemorySlice(chunks, size, upper)


def _position_of(stored: StoredBatches, offset: int) -> int:
    """Return the position in its chunk of the batch with ``offset``."""
    position = stored.start
    header = read_header(stored.chunk, position)
    while header.next_offset <= offset:
        position += header.size
        header = read_header(stored.chunk, position)
    return position


def _cut(stored: StoredBatches, start: int, max_bytes: int, *, keep_one: bool) -> tuple[int, int]:
    """Return the end of the complete batches from ``start`` on that fit, and the next offset."""
    position, upper = start, stored.base_offset
    while position < stored.end:
        header = read_header(stored.chunk, position)
        following = position + header.size
        if following - start > max_bytes and not (keep_one and position == start):
            break
        position, upper = following, header.next_offset
    return position, upper
