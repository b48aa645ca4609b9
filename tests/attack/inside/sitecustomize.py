"""Found by the broker's Python on its path: measures from within how long its loop was held.

Lines go to the file that ATTACK_LOOP_LAG names, each with the monotonic time in seconds and two
figures in milliseconds: how long the loop's own thread worked between two turns, and how long all
threads of the process did meanwhile. The second one sees a thread that keeps the interpreter lock.
A turn of AT_ONCE_MS or more has a line of its own, at once; of all others the longest in a tenth of
a second has one, from LEAST_MS on. Both are processor time, which a crowded machine does not
stretch.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

LOOK_EVERY_S = 0.002
LEAST_MS = 0.1
AT_ONCE_MS = 20.0
PERIOD_S = 0.1


class Looks:
    """Looks at the loop that it is started on, for as long as that runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str) -> None:
        self._loop = loop
        self._file = open(path, "a", buffering=1, encoding="ascii")  # noqa: SIM115  as long as the broker
        self._longest = (0.0, 0.0)
        self._period_end_s = time.monotonic() + PERIOD_S
        self._begin()
        loop.call_later(LOOK_EVERY_S, self._look)

    def _begin(self) -> None:
        self._busy_s, self._worked_s = time.thread_time(), time.process_time()
        self._seen_s = time.monotonic()

    def _look(self) -> None:
        now_s = time.monotonic()
        busy_ms = (time.thread_time() - self._busy_s) * 1e3
        # Two threads at a time work for longer than the loop was held.
        held_s = min(now_s - self._seen_s, time.process_time() - self._worked_s)
        held_ms = max(busy_ms, held_s * 1e3)
        if held_ms >= AT_ONCE_MS:
            self._note(now_s, busy_ms, held_ms)
        else:
            busy_before_ms, held_before_ms = self._longest
            self._longest = max(busy_before_ms, busy_ms), max(held_before_ms, held_ms)
        if now_s >= self._period_end_s:
            if self._longest[1] >= LEAST_MS:
                self._note(now_s, *self._longest)
            self._longest, self._period_end_s = (0.0, 0.0), now_s + PERIOD_S
        self._begin()
        self._loop.call_later(LOOK_EVERY_S, self._look)

    def _note(self, now_s: float, busy_ms: float, held_ms: float) -> None:
        self._file.write(f"{now_s:.3f} {busy_ms:.1f} {held_ms:.1f}\n")


def _watch(path: str) -> None:
    from barnabas.broker.server import BrokerServer

    start = BrokerServer.start

    async def watched(self, *arguments, **settings):
        Looks(asyncio.get_running_loop(), path)
        return await start(self, *arguments, **settings)

    BrokerServer.start = watched


if (_path := os.environ.get("ATTACK_LOOP_LAG")) and "barnabas" in sys.orig_argv:
    _watch(_path)
