"""Requests in turns: the loop does other work meanwhile, by the processor's time."""

from __future__ import annotations

import asyncio

from barnabas.broker.runtime.turns import SLICE_SECONDS
from barnabas.storage.runtime.clock import processor_seconds
from tests.broker.handlers.test_configs import BROKER, administration, describe

__all__ = ["administration"]


async def test_other_tasks_run_during_a_long_description(administration):
    turns = 0

    async def count():
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    begun = processor_seconds()
    await describe(administration, *[(BROKER, "1", [f"none-{n}"]) for n in range(200)])
    # A turn each 5 ms, so half of them under any load of the machine.
    enough = (processor_seconds() - begun) / SLICE_SECONDS / 2
    counting.cancel()
    assert turns > min(enough, 10)
