"""TLS handshakes of all connections: how many are under way, and the threads that compute them.

A handshake costs up to some milliseconds (RSA of 4096 bits): the loop only passes bytes on. One
that is too many takes the place of the oldest, so that clients which never finish cannot keep
others out; those have the time that such a client needs to begin another.

Where more begin than can be computed, those of clients that have gone are not, those that have
cost most of their time already go on, and of the others the newest comes first: of all it has the
most time left until it is displaced, so that who is served does come to the end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple, Protocol

THREADS: Final = max(1, min(4, (os.cpu_count() or 1) - 1))
"""One processor is left to the loop, where there are several."""
HANDED_OVER: Final = 4 * THREADS
"""Steps that threads have, so that they need not wait for the loop; the others can be dropped."""


class Handshake(Protocol):
    """One that is under way."""

    def displaced(self) -> None:
        """Give up, and call ``Handshakes.end``."""


class _Step(NamedTuple):
    compute: Callable[[], bool]
    then: Callable[[asyncio.Future[bool]], None]


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
        self._first_steps: dict[Handshake, _Step] = {}
        self._later_steps: dict[Handshake, _Step] = {}
        self._handed_over = 0
        self._threads: ThreadPoolExecutor | None = None
        self._is_closed = False

    @property
    def under_way(self) -> int:
        """How many there are."""
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """How many have a step that no thread has got yet."""
        return len(self._first_steps) + len(self._later_steps)

    def begin(self, handshake: Handshake) -> None:
        """Count one, and give up the oldest if there are too many."""
        self._under_way[handshake] = None
        while len(self._under_way) > self._limit():
            self.displaced += 1
            oldest = next(iter(self._under_way))
            oldest.displaced()
            assert oldest not in self._under_way

    def end(self, handshake: Handshake) -> bool:
        """Count one no more, if it was; return whether a step of it is dropped that has waited."""
        self._under_way.pop(handshake, None)
        dropped = self._first_steps.pop(handshake, None) or self._later_steps.pop(handshake, None)
        return dropped is not None

    def run(
        self,
        handshake: Handshake,
        step: Callable[[], bool],
        then: Callable[[asyncio.Future[bool]], None],
        *,
        is_first: bool,
    ) -> None:
        """Take a step on a thread; ``then`` gets how it ended, on the loop."""
        if not self._is_closed:
            (self._first_steps if is_first else self._later_steps)[handshake] = _Step(step, then)
            self._hand_over()

    def close(self) -> None:
        """Give the threads back; steps that wait are dropped."""
        self._is_closed = True
        self._first_steps.clear()
        self._later_steps.clear()
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _hand_over(self) -> None:
        while self.waiting and self._handed_over < HANDED_OVER:
            if self._later_steps:
                step = self._later_steps.pop(next(iter(self._later_steps)))
            else:
                step = self._first_steps.popitem()[1]
            if self._threads is None:
                self._threads = ThreadPoolExecutor(THREADS, "barnabas-tls")
            self._handed_over += 1
            computing = self._loop.run_in_executor(self._threads, step.compute)
            computing.add_done_callback(self._computed)
            computing.add_done_callback(step.then)

    def _computed(self, _step: asyncio.Future[bool]) -> None:
        self._handed_over -= 1
        self._hand_over()
