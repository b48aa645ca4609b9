"""A look at the cluster before a client is told that something is not known.

What one broker has made another one shows a moment later. A client that has been told of it, and
asks the other one at once, is not to hear that it does not exist. Nor is it to hear that there is
no coordinator while one is about to be: librdkafka (2.16) asks three times for that of a group, and
then waits with the offsets of a transaction until a connection of its own comes or goes.

Rules of this file:

* Who comes while a look is under way waits for the next one: it may have read too early for him.
* Nobody waits for long, nor for a store that is away: what is known is told then. A coordinator
  is waited for longer, be the store away or not: somebody is to take over.
* All who wait share the looks, and there are no more of them than ``Membership`` takes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

PATIENCE_S: Final = 0.3
COORDINATOR_PATIENCE_S: Final = 2.0
"""Far more than it takes to give away what a broker led whose end is known."""


class Polls(Protocol):
    """The looks that a broker takes at its cluster, numbered in their order from 1 on."""

    polls_started: int
    """The newest one that was begun."""
    polls_applied: int
    """The newest one whose outcome the view shows."""

    def refresh(self) -> None:
        """Have a look be begun soon."""


class Misses:
    """Those who wait for a look; all of it on the loop."""

    def __init__(
        self,
        looks: Polls,
        is_following: Callable[[], bool],
        is_away: Callable[[], bool],
        clock: Clock,
    ) -> None:
        """``is_following``: whether metadata is not shown yet that a look has found to be newer.

        ``is_away``: whether the store does not answer.
        """
        self._polls = looks
        self._is_following = is_following
        self._is_away = is_away
        self._clock = clock
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Have those who wait see if it is over; call it when a look, or metadata, is shown."""
        self._woken.set()
        self._woken = asyncio.Event()

    async def look(self) -> None:
        """Return when all is shown that was committed when this was called, or in PATIENCE_S."""
        if self._is_away():
            return
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(PATIENCE_S):
                await self._looked()

    async def look_for_coordinator(self, is_known: Callable[[], bool]) -> None:
        """Return when it is known who that is, or in COORDINATOR_PATIENCE_S."""
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(COORDINATOR_PATIENCE_S):
                while not is_known():
                    await self._looked()

    async def _looked(self) -> None:
        wanted = self._polls.polls_started + 1
        self._polls.refresh()
        while self._polls.polls_applied < wanted or self._is_following():
            await self._woken.wait()
