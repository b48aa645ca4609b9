"""Bytes of remote segments on this broker's disk, under a limit, in blocks of one file.

Rules of this file:

1. The file is a copy of what the store has: it is never synced, and is emptied at a start.
2. A stretch of a segment is kept or dropped as a whole, in blocks that need not follow each other.
3. The least recently used stretch is dropped first. A stretch that one reader has read to its end
   counts as used longest ago: a consumer that reads a week back leaves the rest as it is.
4. Readers hold no block while they read: they look again afterwards whether it is still theirs.
5. Where the disk takes nothing, the cache keeps nothing, and readers do without.
6. The cache takes no space that others on its disk lack: it leaves some bytes free, and gives
   blocks back when fewer are. The end of the file goes then, with the stretches that it has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Final

from barnabas.storage.files.file_system import File, FileSystem
from barnabas.storage.runtime.threads import new_lock

BLOCK_BYTES: Final = 1024 * 1024
BLOCKS_NAME: Final = "barnabas-blocks"


class _Stretch:
    """The blocks of one stretch."""

    __slots__ = ("blocks", "cut_at", "has_been_read", "size_bytes")

    def __init__(self, blocks: list[int], size_bytes: int) -> None:
        self.blocks = blocks
        self.size_bytes = size_bytes
        self.cut_at = max(blocks) + 1
        """Number of blocks to which the file was cut during this write."""
        self.has_been_read = False
        """Whether a reader has read it to its end."""


class BlockCache:
    """The cache of one data directory; callable on any thread."""

    def __init__(
        self, file_system: FileSystem, root: str, max_bytes: int, free_bytes_min: int = 0
    ) -> None:
        """Create an empty cache, without a file before the first ``put``.

        ``free_bytes_min``: bytes of the disk that the cache leaves free.
        """
        self._file_system = file_system
        self._root = root
        self._path = file_system.join(root, BLOCKS_NAME)
        self.max_bytes = max_bytes
        self._free_bytes_min = free_bytes_min
        self._blocks_max = max_bytes // BLOCK_BYTES
        """Maximum number of blocks now; fewer than ``max_bytes`` has while the disk is full."""
        self._lock = new_lock()
        self._fitting = new_lock()
        """Held while the file is cut, so that it grows only afterwards."""
        self._file: File | None = None
        self._free: list[int] = []
        self._blocks = 0
        """Blocks that the file has, free ones included."""
        self._stretches: OrderedDict[Hashable, _Stretch] = OrderedDict()
        """The next one to be dropped first."""
        self._writing: list[_Stretch] = []
        self.hits = self.misses = 0

    @property
    def used_bytes(self) -> int:
        """Bytes in blocks that have data."""
        with self._lock:
            return (self._blocks - len(self._free)) * BLOCK_BYTES

    def has(self, key: Hashable) -> bool:
        """Whether a stretch is kept."""
        with self._lock:
            return key in self._stretches

    def read(self, key: Hashable, size: int, position: int, *, waits: bool) -> bytes | None:
        """Return up to ``size`` bytes of a stretch, or None if they are not here.

        None also if reading them would wait for the disk, unless ``waits``.
        """
        with self._lock:
            stretch, file = self._stretches.get(key), self._file
            if stretch is None or file is None:
                return None
            if not stretch.has_been_read:
                self._stretches.move_to_end(key)
        parts = []
        for at, length in _pieces(stretch, size, position):
            part = file.pread(length, at) if waits else file.pread_cached(length, at)
            if part is None or len(part) < length:
                return None
            parts.append(part)
        with self._lock:
            return b"".join(parts) if self._stretches.get(key) is stretch else None

    def count(self, *, is_hit: bool) -> None:
        """Count a reader that found its batches here, or needs the store."""
        with self._lock:
            self.hits += is_hit
            self.misses += not is_hit

    def finish(self, key: Hashable) -> None:
        """Note that a reader has read a stretch to its end: it is dropped next, unless another
        reader had read it before.
        """
        with self._lock:
            stretch = self._stretches.get(key)
            if stretch is not None:
                self._stretches.move_to_end(key, last=stretch.has_been_read)
                stretch.has_been_read = True

    def put(self, key: Hashable, data: bytes) -> None:
        """Keep a stretch, and drop others to make room for it; waits for the disk."""
        view, written = memoryview(data), 0
        is_written = False
        stretch: _Stretch | None = None
        try:
            self.fit()
            stretch = self._take(len(data))
            if stretch is None:
                return
            file = self._opened()
            for at, length in _pieces(stretch, len(data), 0):
                file.pwritev([view[written : written + length]], at)
                written += length
            is_written = True
        except OSError:
            pass  # The disk is full, or away: what is here stays.
        finally:
            if stretch is not None:
                self._end_writing(key, stretch, is_written=is_written)

    def _end_writing(self, key: Hashable, stretch: _Stretch, *, is_written: bool) -> None:
        with self._lock:
            self._writing.remove(stretch)
            left = [block for block in stretch.blocks if block < stretch.cut_at]
            if is_written and len(left) == len(stretch.blocks):
                self._drop(key)
                self._stretches[key] = stretch
            else:
                self._free += left

    def fit(self) -> int:
        """Give blocks back while the disk lacks space; waits for the disk.

        Return the bytes that the disk has left then for others, negative if it still lacks some.
        """
        with self._fitting:
            left_bytes = self._left_bytes()
            with self._lock:
                room = self._blocks + left_bytes // BLOCK_BYTES
                self._blocks_max = max(0, min(self.max_bytes // BLOCK_BYTES, room))
                if self._blocks <= self._blocks_max:
                    return left_bytes
                self._cut(self._blocks_max)
                file, end = self._file, self._blocks * BLOCK_BYTES
            if file is not None and file.size() > end:
                file.truncate(end)
            return self._left_bytes()

    def _cut(self, blocks: int) -> None:
        """Forget the blocks behind the first ones; the lock is held."""
        for key, stretch in [*self._stretches.items()]:
            if max(stretch.blocks) >= blocks:
                self._drop(key)
        for stretch in self._writing:
            stretch.cut_at = min(stretch.cut_at, blocks)
        self._free = [block for block in self._free if block < blocks]
        self._blocks = blocks

    def _left_bytes(self) -> int:
        return self._file_system.free_bytes(self._root) - self._free_bytes_min

    def forget(self, key: Hashable) -> None:
        """Drop a stretch, if it is kept."""
        with self._lock:
            self._drop(key)

    def close(self) -> None:
        """Drop all, with the file."""
        with self._lock:
            file, self._file = self._file, None
            self._stretches.clear()
            self._free, self._blocks = [], 0
        if file is not None:
            file.close()
            self._file_system.unlink(self._path)

    def _take(self, size_bytes: int) -> _Stretch | None:
        """Take free blocks for a stretch, or None if the limit is lower than that."""
        count = -(-size_bytes // BLOCK_BYTES)
        with self._lock:
            if not 0 < count <= self._blocks_max:
                return None
            while len(self._free) + self._blocks_max - self._blocks < count:
                if not self._stretches:
                    return None  # Others are being written.
                self._drop(next(iter(self._stretches)))
            while len(self._free) < count:
                self._free.append(self._blocks)
                self._blocks += 1
            taken, self._free = self._free[:count], self._free[count:]
            stretch = _Stretch(taken, size_bytes)
            self._writing.append(stretch)
            return stretch

    def _drop(self, key: Hashable) -> None:
        stretch = self._stretches.pop(key, None)
        if stretch is not None:
            self._free += stretch.blocks

    def _opened(self) -> File:
        with self._lock:
            if self._file is None:
                self._file = self._file_system.open(self._path, create=True)
                self._file.truncate(0)
            return self._file


def _pieces(stretch: _Stretch, size: int, position: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the file that have bytes of a stretch, as position and length."""
    end = min(position + size, stretch.size_bytes)
    while position < end:
        number, within = divmod(position, BLOCK_BYTES)
        length = min(BLOCK_BYTES - within, end - position)
        yield stretch.blocks[number] * BLOCK_BYTES + within, length
        position += length
