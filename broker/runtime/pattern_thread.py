"""One thread for comparing long texts with expressions of clients, beside the loop.

RE2 frees the interpreter's lock while it matches, so the loop runs meanwhile. There is one
thread: clients with heavy expressions wait for each other, and for no disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from barnabas.broker.runtime.threads import Pool
from barnabas.broker.runtime.turns import next_turn
from barnabas.coordinator.groups.consumer.patterns import WORK_PER_STEP, WholeMatch


class PatternThread:
    """Compares texts with expressions: short ones on the loop in slices, long ones on a thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._thread = Pool("patterns", loop=loop)

    async def matching(self, regex: str, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether a valid expression matches the whole text."""
        matches = WholeMatch(regex)
        verdicts = []
        work_done = 0
        for text in texts:
            work = matches.work(text)
            if work > WORK_PER_STEP:
                verdicts.append(await self._thread.run(partial(matches, text)))
                continue
            work_done += work
            if work_done > WORK_PER_STEP:
                await next_turn()
                work_done = work
            verdicts.append(matches(text))
        return verdicts

    def close(self) -> None:
        """End the thread and drop waiting work."""
        self._thread.close()
