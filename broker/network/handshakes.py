"""TLS handshakes of all connections: a limit on their number, and the threads that compute them.

A handshake costs up to some milliseconds (RSA of 4096 bits): the loop only passes bytes on. One
beyond the limit replaces the oldest of the address with the most handshakes. So clients that never
finish cannot keep others out; those have the time that such a client needs to start another.

More may start than the threads can compute. Then handshakes of disconnected clients are skipped,
those with most of their cost behind them continue, and addresses take turns. A flood from one of
them costs the others a turn, not the flood. Of an address the newest comes first: it has the most
time left until it is displaced, so that a handshake that is served does complete.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from barnabas.broker.runtime.threads import Pool

Item = TypeVar("Item")

THREADS: Final = max(1, min(4, (os.cpu_count() or 1) - 1))
"""One processor is left to the loop, where there are several."""
HANDED_OVER: Final = 4 * THREADS
"""Steps that threads can take in advance, so that they need not wait for the loop; further ones can
be dropped."""


class Handshake(Protocol):
    """One that is under way."""

    source: str
    """Key of the share of handshakes: the client's address, or its IPv6 network; it does not
    change."""

    def displaced(self) -> None:
        """Abort the handshake, and call ``Handshakes.end``."""


class _Step(NamedTuple):
    compute: Callable[[], bool]
    then: Callable[[asyncio.Future[bool]], None]


class _BySource(Generic[Item]):
    """One item for each of some handshakes, by their sources, in each the oldest first."""

    def __init__(self) -> None:
        self._sources: dict[str, dict[Handshake, Item]] = {}
        """Sources with waiting steps, the next one first; none of them is empty."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __contains__(self, handshake: Handshake) -> bool:
        return handshake in self._sources.get(handshake.source, {})

    def add(self, handshake: Handshake, item: Item) -> None:
        """Add a handshake."""
        self._sources.setdefault(handshake.source, {})[handshake] = item
        self._size += 1

    def drop(self, handshake: Handshake) -> bool:
        """Remove a handshake; return whether it was present."""
        if handshake not in self:
            return False
        items = self._sources[handshake.source]
        del items[handshake]
        self._size -= 1
        if not items:
            del self._sources[handshake.source]
        return True

    def take(self, *, newest: bool) -> Item:
        """Remove and return the newest or the oldest item of the source whose turn it is."""
        source = next(iter(self._sources))
        items = self._sources.pop(source)
        self._size -= 1
        item = items.popitem()[1] if newest else items.pop(next(iter(items)))
        if items:
            self._sources[source] = items
        return item

    def oldest_of_most(self) -> Handshake:
        """Return the oldest handshake of the source that has the most."""
        of_most: dict[Handshake, Item] = max(self._sources.values(), key=len)
        return next(iter(of_most))

    def clear(self) -> None:
        """Remove all."""
        self._sources.clear()
        self._size = 0


class Handshakes:
    """All handshakes under way."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: Callable[[], int]) -> None:
        """``limit`` returns the maximum number of handshakes."""
        self.completed = 0
        self.failed = 0
        self.displaced = 0
        self._loop = loop
        self._limit = limit
        self._under_way: _BySource[None] = _BySource()
        self._first_steps: _BySource[_Step] = _BySource()
        """Steps that no thread has got yet."""
        self._later_steps: _BySource[_Step] = _BySource()
        self._handed_over = 0
        self._threads = Pool("tls", THREADS, loop=loop)
        self._is_closed = False

    @property
    def under_way(self) -> int:
        """Number of handshakes in progress."""
        return len(self._under_way)

    @property
    def waiting(self) -> int:
        """Number of handshakes with a step that no thread has started yet."""
        return len(self._first_steps) + len(self._later_steps)

    def begin(self, handshake: Handshake) -> None:
        """Count a handshake; above the limit abort the oldest of the source with the most."""
        self._under_way.add(handshake, None)
        while len(self._under_way) > self._limit():
            self.displaced += 1
            oldest = self._under_way.oldest_of_most()
            oldest.displaced()
            assert oldest not in self._under_way

    def end(self, handshake: Handshake) -> bool:
        """Stop counting a handshake; return whether a waiting step of it was dropped."""
        self._under_way.drop(handshake)
        return self._first_steps.drop(handshake) or self._later_steps.drop(handshake)

    def run(
        self,
        handshake: Handshake,
        step: Callable[[], bool],
        then: Callable[[asyncio.Future[bool]], None],
        *,
        is_first: bool,
    ) -> None:
        """Run a step on a thread; ``then`` gets its outcome, on the loop."""
        if not self._is_closed:
            (self._first_steps if is_first else self._later_steps).add(handshake, _Step(step, then))
            self._hand_over()

    def close(self) -> None:
        """End the threads and drop waiting steps."""
        self._is_closed = True
        self._first_steps.clear()
        self._later_steps.clear()
        self._threads.close()

    def _hand_over(self) -> None:
        while self.waiting and self._handed_over < HANDED_OVER:
            if self._later_steps:
                step = self._later_steps.take(newest=False)
            else:
                step = self._first_steps.take(newest=True)
            self._handed_over += 1
            computing = self._threads.run(step.compute)
            computing.add_done_callback(self._computed)
            computing.add_done_callback(step.then)

    def _computed(self, _step: asyncio.Future[bool]) -> None:
        self._handed_over -= 1
        self._hand_over()
