"""Bytes of one direction of a connection, split into frames of Kafka's protocol."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from barnabas.protocol.errors import Malformed

LENGTH_BYTES: Final = 4
FRAME_BYTES_MAX: Final = 32 << 20
"""Largest request or response that is decoded."""
_REST: Final = 1 << 62
"""More bytes than a connection carries."""


class Stream:
    """Bytes of one direction, split into frames; ``skip`` forgets a frame that is not kept."""

    def __init__(self, start_bytes: int) -> None:
        """``start_bytes``: bytes of the start of a frame, with its length."""
        self._start_bytes = start_bytes
        self._kept = bytearray()
        self._skipped = 0
        """Bytes of the present frame that still arrive and are not kept."""

    def add(self, data: bytes) -> bytes:
        """Add bytes; return those that belong to a frame which is skipped."""
        passed = data[: self._skipped]
        self._skipped -= len(passed)
        self._kept += data[len(passed) :]
        return passed

    @property
    def is_empty(self) -> bool:
        """Whether no byte of the next frame has arrived."""
        return not self._kept

    def clear(self) -> None:
        """Forget the bytes that have arrived."""
        self._kept.clear()

    def start(self) -> bytes | None:
        """Return the start of the next frame, or ``None`` if it has not arrived."""
        if len(self._kept) < self._start_bytes:
            return None
        return bytes(self._kept[: self._start_bytes])

    def skip(self, size: int) -> bytes:
        """Remove a frame; return its bytes that have arrived.

        A connection whose frames have no possible size is skipped as a whole.
        """
        end = LENGTH_BYTES + size if size >= self._start_bytes - LENGTH_BYTES else _REST
        passed = bytes(self._kept[:end])
        del self._kept[:end]
        self._skipped = end - len(passed)
        return passed

    def take(self, size: int) -> bytes | None:
        """Remove and return a whole frame, or return ``None`` if it has not arrived."""
        end = LENGTH_BYTES + size
        if len(self._kept) < end:
            return None
        frame = bytes(self._kept[:end])
        del self._kept[:end]
        return frame

    def frames(self) -> Iterator[memoryview]:
        """Remove and yield whole frames without their length; raises Malformed for a larger one."""
        while (start := self.start()) is not None:
            size = int.from_bytes(start[:LENGTH_BYTES], "big")
            if size > FRAME_BYTES_MAX:
                raise Malformed(f"frame of {size} bytes")
            frame = self.take(size)
            if frame is None:
                break
            yield memoryview(frame)[LENGTH_BYTES:]
