"""What connections share: the turn to write, and the memory for large frames."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.connection import Connection


class FrameBudget:
    """The memory that frames too large for a ring may claim at a time, over all connections."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: deque[tuple[Connection, int]] = deque()

    def claim(self, connection: Connection, size: int) -> bool:
        """Return whether ``connection`` may have ``size`` bytes now; else it gets ``granted``.

        A frame larger than the whole budget is let through when it is alone.
        """
        if not self._waiting and self._fits(size):
            self.used_bytes += size
            return True
        self._waiting.append((connection, size))
        return False

    def release(self, size: int) -> None:
        """Return ``size`` bytes and let in who waited longest."""
        self.used_bytes -= size
        while self._waiting and self._fits(self._waiting[0][1]):
            connection, wanted = self._waiting.popleft()
            self.used_bytes += wanted
            connection.granted()

    @property
    def contested(self) -> bool:
        """Return whether somebody waits for what others hold."""
        return bool(self._waiting)

    def forget(self, connection: Connection) -> None:
        """Take a connection that went away out of the queue."""
        self._waiting = deque(entry for entry in self._waiting if entry[0] is not connection)

    def _fits(self, size: int) -> bool:
        return self.used_bytes == 0 or self.used_bytes + size <= self.limit_bytes


class Delivery:
    """Connections that have something to write or to resume, served once per loop iteration."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._ready: list[Connection] = []
        self._scheduled = False
        self._ended = False

    def add(self, connection: Connection) -> None:
        """Queue a connection; the first one in an iteration schedules the flush."""
        if self._ended:
            return
        self._ready.append(connection)
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def flush(self) -> None:
        """Serve the queued connections now; what they cause is left to the next iteration."""
        ready, self._ready = self._ready, []
        for connection in ready:
            connection.deliver()

    def end(self) -> None:
        """Let nothing leave any more, whatever was made ready."""
        self._ended = True
        self._ready = []

    def _run(self) -> None:
        self._scheduled = False
        self.flush()
