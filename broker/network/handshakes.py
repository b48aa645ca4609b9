"""TLS handshakes of all connections: how many are under way, and the threads that compute them.

A handshake costs up to some milliseconds (RSA of 4096 bits): the loop only passes bytes on. One
that is too many takes the place of the oldest, so that clients which never finish cannot keep
others out; those have the time that such a client needs to begin another.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

THREADS: Final = max(1, min(4, (os.cpu_count() or 1) - 1))
"""One processor is left to the loop, where there are several."""


class Handshake(Protocol):
    """One that is under way."""

    def displaced(self) -> None:
        """Give up, and call ``Handshakes.end``."""


class Handshakes:
    """Those that are under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: Callable[[], int]) -> None:
        """``limit`` is how many there may be."""
        self.completed = 0
        self.failed = 0
        self.displaced = 0
        self._loop = loop
        self._limit = limit
        self._under_way: dict[Handshake, None] = {}
        self._threads: ThreadPoolExecutor | None = None

    @property
    def under_way(self) -> int:
        """How many there are."""
        return len(self._under_way)

    def begin(self, handshake: Handshake) -> None:
        """Count one, and give up the oldest if there are too many."""
        self._under_way[handshake] = None
        while len(self._under_way) > self._limit():
            self.displaced += 1
            oldest = next(iter(self._under_way))
            oldest.displaced()
            assert oldest not in self._under_way

    def end(self, handshake: Handshake) -> None:
        """Count one no more, if it was."""
        self._under_way.pop(handshake, None)

    def run(self, step: Callable[[], bool], then: Callable[[asyncio.Future[bool]], None]) -> None:
        """Take a step on a thread; ``then`` gets how it ended, on the loop."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, "barnabas-tls")
        self._loop.run_in_executor(self._threads, step).add_done_callback(then)

    def close(self) -> None:
        """Give the threads back; steps that wait are dropped."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)
