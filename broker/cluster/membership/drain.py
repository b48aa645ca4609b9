"""A broker gives up all that it leads before it ends, so that clients hardly notice.

Rules of this file:

* The store is told first: from then on this broker is given nothing, and who plans for the cluster
  has others lead what it leads. It goes on serving each partition until it has let go of it.
* There is a limit: what is led here still when the time is up is taken over when the session ends,
  a little later for its clients. Nothing is lost either way.
* Nobody waits for others to take over where there are none: all brokers of a cluster may be told
  to stop at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

logger = logging.getLogger("barnabas.broker.cluster")

LOOK_EVERY_S: Final = 0.05
"""How often it is looked what is left, while nobody says that something has changed."""


class Leading(Protocol):
    """What is led here, and who could lead it instead."""

    @property
    def led_count(self) -> int:
        """How many partitions this broker leads, or is about to lead."""

    @property
    def has_others(self) -> bool:
        """Whether another broker is in service that takes partitions."""


class Drain:
    """The end of a broker of a cluster, as far as the others are to take over."""

    def __init__(
        self, leading: Leading, tell_store: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        """``tell_store`` has the store give this broker no more partitions."""
        self._leading = leading
        self._tell_store = tell_store
        self._clock = clock
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Look again: a partition was handed over, or a broker has gone."""
        self._changed.set()

    async def run(self, timeout_ms: int) -> int:
        """Return how many partitions are led here still: none, or others could not take them.

        Ends after ``timeout_ms`` at the latest.
        """
        led_before = self._leading.led_count
        if not led_before or not self._leading.has_others:
            return led_before
        try:
            async with self._clock.timeout(timeout_ms / 1000):
                await self._tell_store()
                await self._until_empty()
        except TimeoutError:
            logger.warning(
                "partitions not handed over in time timeout_ms=%d led_here=%d",
                timeout_ms,
                self._leading.led_count,
            )
        left = self._leading.led_count
        logger.info("partitions given up moved=%d led_here=%d", led_before - left, left)
        return left

    async def _until_empty(self) -> None:
        while self._leading.led_count and self._leading.has_others:
            self._changed.clear()
            try:
                async with self._clock.timeout(LOOK_EVERY_S):
                    await self._changed.wait()
            except TimeoutError:
                continue  # Looked at again, whether or not somebody says so.
