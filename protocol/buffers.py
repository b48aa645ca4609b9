"""Large pieces of memory that are used again and again.

Zeroing a fresh megabyte costs as much as all the rest of a request that fills it, and its pages
have to be found first. Large frames and reads from files take their memory here.

**Fresh memory is mapped and not touched**: it becomes resident page by page as it is filled, so the
buffer of a frame of which little has arrived costs little, however long the frame is.
"""

from __future__ import annotations

import mmap
from sys import getrefcount
from typing import Final

STEP_BYTES: Final = 256 * 1024
"""Sizes are rounded up to this, so that requests of similar sizes share buffers."""

_ONLY_HERE: Final = 2
"""Result of getrefcount for an object that one list holds: that reference and its own argument."""


class LargeBuffers:
    """Buffers of one thread that are used again as soon as no view of them exists.

    No buffer is given back: every view counts as a reference to its buffer, so a buffer with no
    reference but the pool's is free.
    """

    __slots__ = ("_buffers", "_keep_bytes", "_kept_bytes")

    def __init__(self, keep_bytes: int = 32 * 1024 * 1024) -> None:
        self._keep_bytes = keep_bytes
        self._kept_bytes = 0
        self._buffers: list[mmap.mmap] = []

    def take(self, size: int) -> memoryview:
        """Return writable memory of ``size`` bytes with arbitrary content.

        Raises OSError where the system has no memory of that size to give.
        """
        for position in range(len(self._buffers)):
            length = len(self._buffers[position])
            if size <= length <= 2 * size and getrefcount(self._buffers[position]) == _ONLY_HERE:
                return memoryview(self._buffers[position])[:size]
        rounded = -(-size // STEP_BYTES) * STEP_BYTES
        buffer = mapped(rounded)
        if self._kept_bytes + rounded <= self._keep_bytes:
            self._buffers.append(buffer)
            self._kept_bytes += rounded
        return memoryview(buffer)[:size]


def mapped(size: int) -> mmap.mmap:
    """Return ``size`` bytes of new memory without resident pages."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        # With large pages everywhere, the first byte of a buffer would cost two megabytes.
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory
