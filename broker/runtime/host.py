"""Interface of the broker to its long-lived parts: settings, time, the event loop, its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock


class Host(Protocol):
    """Broker that a part belongs to."""

    @property
    def config(self) -> BrokerConfig:
        """Return the current settings, some of which change while the broker runs."""

    @property
    def clock(self) -> Clock:
        """Return the clock for all times and timers."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop."""

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a background task until the broker ends; an exception in it is fatal."""

    def fatal(self, error: BaseException) -> None:
        """Stop serving permanently: durability can no longer be guaranteed (D9)."""

    def flush_answers(self) -> None:
        """Complete the fetches that are due, and write all pending responses."""
