"""What connections share: the turn to write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.connection import Connection


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
