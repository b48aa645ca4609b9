"""The few threads that wait for the disk, or for a store, so that the loop never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.broker.runtime.threads import Pool

T = TypeVar("T")

THREADS: Final = 4
STORE_THREADS: Final = 16
"""Threads that wait for old records in the store of a cluster."""


class DiskReaders:
    """Runs reads and decompression aside; at most ``THREADS`` at a time, the others queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = Pool("reader", THREADS, loop=loop)
        self._store_pool = Pool("store-reader", STORE_THREADS, loop=loop)

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``work`` on a thread; the future has its result or error."""
        return self._pool.run(work)

    def run_at_store(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``work``, which waits for the store of a cluster, on a thread for such work."""
        return self._store_pool.run(work)

    def run_then(self, work: Callable[[], object], on_done: Callable[[], None]) -> None:
        """Run ``work`` on a thread, then ``on_done`` on the loop, whether it succeeded or not."""
        self.run(work).add_done_callback(lambda done: _then(done, on_done))

    def close(self) -> None:
        """End the threads and drop waiting work."""
        self._pool.close()
        self._store_pool.close()


def _then(done: asyncio.Future[object], on_done: Callable[[], None]) -> None:
    if not done.cancelled():
        # Looked at so that asyncio does not report it: the caller meets the error again.
        done.exception()
        on_done()
