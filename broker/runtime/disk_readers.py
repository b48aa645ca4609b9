"""The few threads that wait for the disk, so that the loop never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from barnabas.broker.runtime.threads import Pool
from barnabas.storage.time_lookup import Search, TimestampOffset

T = TypeVar("T")

THREADS: Final = 4


class DiskReaders:
    """Runs reads and decompression aside; at most ``THREADS`` at a time, the others queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = Pool("reader", THREADS, loop=loop)

    def run(self, work: Callable[[], object], on_done: Callable[[], None]) -> None:
        """Run ``work`` on a thread, then ``on_done`` on the loop, whether it succeeded or not."""
        future = self._pool.run(work)
        future.add_done_callback(lambda done: _then(done, on_done))

    async def result_of(self, work: Callable[[], T]) -> T:
        """Run ``work`` on a thread and return what it does; raises what it raises."""
        return await self._pool.run(work)

    async def search(self, search: Search) -> TimestampOffset | None:
        """Drive a search by timestamp: its steps here, the work between them on a thread."""
        try:
            work = next(search)
            while True:
                work = search.send(await self._pool.run(work))
        except StopIteration as stop:
            found: TimestampOffset | None = stop.value
            return found

    def close(self) -> None:
        """Give the threads back; what waits is dropped."""
        self._pool.close()


def _then(done: asyncio.Future[object], on_done: Callable[[], None]) -> None:
    if not done.cancelled():
        # Looked at so that asyncio does not report it: the caller meets the error again.
        done.exception()
        on_done()
