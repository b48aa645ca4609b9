"""TLS handshakes of all connections: how many are under way, and the threads that compute them.

A handshake costs up to some milliseconds (RSA of 4096 bits): the loop only passes bytes on. One
that is too many takes the place of the oldest of the address that has the most, so that clients
which never finish cannot keep others out; those have the time that such a client needs to begin
another.

Where more begin than can be computed, those of clients that have gone are not, those that have
cost most of their time already go on, and addresses take turns: a flood from one of them costs
another a turn, not the flood. Of an address the newest comes first: of all it has the most time
left until it is displaced, so that who is served does come to the end.
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

    source: str
    """Whose share it takes: the client's address, or its IPv6 network; it does not change."""

    def displaced(self) -> None:
        """Give up, and call ``Handshakes.end``."""


class _Step(NamedTuple):
    compute: Callable[[], bool]
    then: Callable[[asyncio.Future[bool]], None]


class _WaitingSteps:
    """Steps that no thread has got yet; sources take turns."""

    def __init__(self) -> None:
        self._by_source: dict[str, dict[Handshake, _Step]] = {}
        """The source whose turn is next comes first. None is empty."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, handshake: Handshake, step: _Step) -> None:
        self._by_source.setdefault(handshake.source, {})[handshake] = step
        self._size += 1

    def drop(self, handshake: Handshake) -> bool:
        """Forget the step of a handshake; return whether one was waiting."""
        steps = self._by_source.get(handshake.source, {})
        if steps.pop(handshake, None) is None:
            return False
        self._size -= 1
        if not steps:
            del self._by_source[handshake.source]
        return True

    def take(self, *, newest: bool) -> _Step:
        """Take the newest or the oldest step of the source whose turn it is."""
        source = next(iter(self._by_source))
        steps = self._by_source.pop(source)
        self._size -= 1
        step = steps.popitem()[1] if newest else steps.pop(next(iter(steps)))
        if steps:
            self._by_source[source] = steps
        return step

    def clear(self) -> None:
        self._by_source.clear()
        self._size = 0


class Handshakes:
    """Those that are under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: Callable[[], int]) -> None:
        """``limit`` is how many there may be."""
        self.completed = 0
        self.failed = 0
        self.displaced = 0
        self._loop = loop
        self._limit = limit
        self._under_way: dict[str, dict[Handshake, None]] = {}
        """By their sources, none of which is empty; the oldest of each first."""
        self._under_way_count = 0
        self._first_steps = _WaitingSteps()
        self._later_steps = _WaitingSteps()
        self._handed_over = 0
        self._threads: ThreadPoolExecutor | None = None
        self._is_closed = False

    @property
    def under_way(self) -> int:
        """How many there are."""
        return self._under_way_count

    @property
    def waiting(self) -> int:
        """How many have a step that no thread has got yet."""
        return len(self._first_steps) + len(self._later_steps)

    def begin(self, handshake: Handshake) -> None:
        """Count one; if there are too many, give up the oldest of the source that has the most."""
        self._under_way.setdefault(handshake.source, {})[handshake] = None
        self._under_way_count += 1
        while self._under_way_count > self._limit():
            self.displaced += 1
            of_most: dict[Handshake, None] = max(self._under_way.values(), key=len)
            oldest = next(iter(of_most))
            oldest.displaced()
            assert oldest not in self._under_way.get(oldest.source, {})

    def end(self, handshake: Handshake) -> bool:
        """Count one no more, if it was; return whether a step of it is dropped that has waited."""
        of_source = self._under_way.get(handshake.source, {})
        if handshake in of_source:
            del of_source[handshake]
            self._under_way_count -= 1
            if not of_source:
                del self._under_way[handshake.source]
        return self._first_steps.drop(handshake) or self._later_steps.drop(handshake)

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
            (self._first_steps if is_first else self._later_steps).add(handshake, _Step(step, then))
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
                step = self._later_steps.take(newest=False)
            else:
                step = self._first_steps.take(newest=True)
            if self._threads is None:
                self._threads = ThreadPoolExecutor(THREADS, "barnabas-tls")
            self._handed_over += 1
            computing = self._loop.run_in_executor(self._threads, step.compute)
            computing.add_done_callback(self._computed)
            computing.add_done_callback(step.then)

    def _computed(self, _step: asyncio.Future[bool]) -> None:
        self._handed_over -= 1
        self._hand_over()
