"""Opening of durable data on a thread, which the end of a broker interrupts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.opening.local_directory import GivenUp

if TYPE_CHECKING:
    from barnabas.broker.opening.local_directory import Home
    from barnabas.broker.runtime.engine import LoopEngine

logger = logging.getLogger("barnabas.broker.server")

Result = TypeVar("Result")


async def open_aside(engine: LoopEngine, home: Home, work: Callable[[], Result]) -> Result:
    """Run ``work`` on a thread, while the loop responds to probes; return its result.

    If the call is cancelled, ``home`` gives up, and the call ends after the thread.
    """
    opening = engine.answer_of(work)
    try:
        return await asyncio.shield(opening)
    except asyncio.CancelledError:
        home.give_up()
        await asyncio.wait([opening])  # The files must stay open until it has ended.
        error = opening.exception()
        if error is not None and not isinstance(error, GivenUp):
            logger.warning("storage not opened before the stop: %s", error)
        raise
