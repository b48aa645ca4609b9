"""Polls of the cluster before a client gets an error for something unknown.

A change at one broker is visible at the others a moment later. A client that knows of a new topic
and at once sends a request to another broker must not get an error that it does not exist. Nor must
a client learn that there is no coordinator while one is about to start. librdkafka (2.16) sends
three FindCoordinator requests for a group; after that a transaction's offsets wait until one of its
connections opens or closes.

Rules of this file:

* A request that arrives during a poll waits for the next one: the current poll may have read too
  early.
* A request waits for a limited time, and not while the store is unavailable: then it gets what is
  known. The wait for a coordinator is longer, and does not depend on the store, since another
  broker is to take over.
* All waiting requests share the polls, and there are no more of them than ``Membership`` starts.
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
"""Much longer than assigning the partitions of a broker takes, once its end is known."""


class Polls(Protocol):
    """Polls of the cluster by this broker, numbered from 1."""

    polls_started: int
    """Number of the newest poll that was started."""
    polls_applied: int
    """Number of the newest poll that the view shows."""

    def refresh(self) -> None:
        """Request a poll soon."""


class Misses:
    """Requests that wait for a poll; used on the event loop only."""

    def __init__(
        self,
        looks: Polls,
        is_following: Callable[[], bool],
        is_away: Callable[[], bool],
        clock: Clock,
    ) -> None:
        """``is_following``: whether a poll has found newer metadata that is not applied yet.

        ``is_away``: whether the store is unavailable.
        """
        self._polls = looks
        self._is_following = is_following
        self._is_away = is_away
        self._clock = clock
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Make waiting requests check their condition, after a poll or metadata was applied."""
        self._woken.set()
        self._woken = asyncio.Event()

    async def wait_for_poll(self) -> None:
        """Return once all earlier commits are applied, or after PATIENCE_S."""
        if self._is_away():
            return
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(PATIENCE_S):
                await self._next_poll()

    async def wait_for_coordinator(self, is_known: Callable[[], bool]) -> None:
        """Return once ``is_known`` does, or after COORDINATOR_PATIENCE_S."""
        with contextlib.suppress(TimeoutError):
            async with self._clock.timeout(COORDINATOR_PATIENCE_S):
                while not is_known():
                    await self._next_poll()

    async def _next_poll(self) -> None:
        wanted = self._polls.polls_started + 1
        self._polls.refresh()
        while self._polls.polls_applied < wanted or self._is_following():
            await self._woken.wait()
