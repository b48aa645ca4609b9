"""Hand-over of all partitions before a broker stops, so that clients hardly notice.

Rules of this file:

* The store is notified first. From then on this broker receives no partitions, and the planner
  moves its partitions to others. The broker serves each partition until it has released it.
* The drain has a timeout. Partitions that are still here when it expires are taken over when the
  session ends, a little later for their clients. No record is lost either way.
* The drain does not wait if no other broker takes partitions: all brokers of a cluster can be
  stopped at once.
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
"""Interval, in seconds, between checks of the partitions left, without a notification."""


class Leading(Protocol):
    """Number of partitions led here, and whether other brokers can take them."""

    @property
    def led_count(self) -> int:
        """Return the number of partitions that this broker leads, or is about to lead."""

    @property
    def has_others(self) -> bool:
        """Whether another broker is in service that takes partitions."""


class Drain:
    """Drain of one broker of a cluster."""

    def __init__(
        self, leading: Leading, start_draining: Callable[[], Awaitable[None]], clock: Clock
    ) -> None:
        """``start_draining`` makes the store assign no more partitions to this broker."""
        self._leading = leading
        self._start_draining = start_draining
        self._clock = clock
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Check again, after a partition was handed over or a broker has left."""
        self._changed.set()

    async def run(self, timeout_ms: int) -> int:
        """Wait for the drain; return the number of partitions that are still led here.

        It ends after ``timeout_ms`` at the latest, or when no other broker can take partitions.
        """
        led_before = self._leading.led_count
        if not led_before or not self._leading.has_others:
            return led_before
        try:
            async with self._clock.timeout(timeout_ms / 1000):
                await self._start_draining()
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
                continue  # Checked again, with or without a notification.
