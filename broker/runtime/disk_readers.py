"""The few threads that wait for the disk, so that the loop never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.broker.runtime.threads import Pool

T = TypeVar("T")

THREADS: Final = 4


class DiskReaders:
    """Runs reads and decompression aside; at most ``THREADS`` at a time, the others queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = Pool("reader", THREADS, loop=loop)

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``work`` on a thread; the future has its result or error."""
        return self._pool.run(work)

    def run_then(self, work: Callable[[], object], on_done: Callable[[], None]) -> None:
        """Run ``work`` on a thread, then ``on_done`` on the loop, whether it succeeded or not."""
        self.run(work).add_done_callback(lambda done: _then(done, on_done))

    def close(self) -> None:
        """End the threads and drop waiting work."""
        self._pool.close()


def _then(done: asyncio.Future[object], on_done: Callable[[], None]) -> None:
    if not done.cancelled():
        # Looked at so that asyncio does not report it: the caller meets the error again.
        done.exception()
        on_done()
