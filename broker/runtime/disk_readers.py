"""The few threads that wait for the disk, or for a store, so that the loop never does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from barnabas.broker.runtime.clock import Clock, Timer
from barnabas.broker.runtime.threads import Pool
from barnabas.storage.runtime.clock import monotonic

T = TypeVar("T")

_MS_PER_S: Final = 1000
THREADS: Final = 4
STORE_THREADS: Final = 16
"""Threads that wait for old records in the store of a cluster."""


class DiskReaders:
    """Runs reads and decompression aside; at most ``THREADS`` at a time, the others queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Clock) -> None:
        """``clock`` ends waits for the store."""
        self._pool = Pool("reader", THREADS, loop=loop)
        self._store_pool = Pool("store-reader", STORE_THREADS, loop=loop)
        self._loop = loop
        self._clock = clock
        self.parked = 0
        """Number of reads that wait for the store of a cluster, or for a thread that reads from
        it."""

    def run(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Run ``work`` on a thread; the future has its result or error."""
        return self._pool.run(work)

    def run_at_store(self, work: Callable[[float], object], wait_s: float) -> asyncio.Future[None]:
        """Run ``work``, which waits for the store of a cluster, on a thread for such work.

        ``work`` gets the time at which it has to end, as of ``monotonic``. The future is done
        after ``wait_s`` at the latest. ``work`` runs nevertheless, unless the future is cancelled.
        """
        running = self._store_pool.run(partial(work, monotonic() + wait_s))
        parked = _Parked(self, running, self._loop.create_future())
        parked.timer = self._clock.call_later(wait_s * _MS_PER_S, parked.end)
        return parked.done

    def run_then(self, work: Callable[[], object], on_done: Callable[[], None]) -> None:
        """Run ``work`` on a thread, then ``on_done`` on the loop, whether it succeeded or not."""
        self.run(work).add_done_callback(lambda done: _then(done, on_done))

    def close(self) -> None:
        """End the threads and drop waiting work."""
        self._pool.close()
        self._store_pool.close()


class _Parked:
    """A wait for the store, which ends with its work, its time, or its client."""

    __slots__ = ("_readers", "_running", "done", "timer")

    def __init__(
        self,
        readers: DiskReaders,
        running: asyncio.Future[object],
        done: asyncio.Future[None],
    ) -> None:
        self._readers = readers
        self._running = running
        self.done = done
        self.timer: Timer | None = None
        """Ends the wait."""
        readers.parked += 1
        running.add_done_callback(self._has_run)
        done.add_done_callback(self._ended)

    def end(self) -> None:
        """End the wait after its timeout."""
        if not self.done.done():
            self.done.set_result(None)

    def _has_run(self, running: asyncio.Future[object]) -> None:
        error = None if running.cancelled() else running.exception()
        if self.done.done():
            return
        if error is not None:
            self.done.set_exception(error)
        else:
            self.done.set_result(None)

    def _ended(self, done: asyncio.Future[None]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self._readers.parked -= 1
        if done.cancelled():
            self._running.cancel()


def _then(done: asyncio.Future[object], on_done: Callable[[], None]) -> None:
    if not done.cancelled():
        # Looked at so that asyncio does not report it: the caller meets the error again.
        done.exception()
        on_done()
