"""What the long-lived parts of a broker are given of it: settings, time, the loop, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.runtime.clock import Clock


class Host(Protocol):
    """The broker that a part belongs to, as far as every part may know it."""

    @property
    def config(self) -> BrokerConfig:
        """The settings of this moment: some change while the broker runs."""

    @property
    def clock(self) -> Clock:
        """Every "now" and every timer."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The one event loop."""

    def spawn(self, coroutine: Coroutine[Any, Any, None], name: str) -> None:
        """Run a background task until the broker ends; an exception in it is fatal."""

    def fatal(self, error: BaseException) -> None:
        """Stop serving for good: something durable can no longer be promised (D9)."""

    def flush_answers(self) -> None:
        """Answer the fetches that are due and write everything that is ready."""
