"""Found by the broker's Python on its path: measures from within how long its loop was held.

For each tenth of a second in which the loop's own thread worked for longer than LEAST_MS between
two turns, a line goes to the file that ATTACK_LOOP_LAG names: the monotonic time in seconds, and
the milliseconds. It is processor time, which a crowded machine does not stretch.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

LOOK_EVERY_S = 0.002
LEAST_MS = 0.1
PERIOD_S = 0.1


class Looks:
    """Looks at the loop that it is started on, for as long as that runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: str) -> None:
        self._loop = loop
        self._file = open(path, "a", buffering=1, encoding="ascii")  # noqa: SIM115  as long as the broker
        self._busy_s = time.thread_time()
        self._period_end_s = time.monotonic() + PERIOD_S
        self._longest_ms = 0.0
        loop.call_later(LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        busy_s, now_s = time.thread_time(), time.monotonic()
        self._longest_ms = max(self._longest_ms, (busy_s - self._busy_s) * 1e3)
        if now_s >= self._period_end_s:
            if self._longest_ms >= LEAST_MS:
                self._file.write(f"{now_s:.3f} {self._longest_ms:.1f}\n")
            self._longest_ms, self._period_end_s = 0.0, now_s + PERIOD_S
        self._busy_s = time.thread_time()
        self._loop.call_later(LOOK_EVERY_S, self._look)


def _watch(path: str) -> None:
    from barnabas.broker.server import BrokerServer

    start = BrokerServer.start

    async def watched(self, *arguments, **settings):
        Looks(asyncio.get_running_loop(), path)
        return await start(self, *arguments, **settings)

    BrokerServer.start = watched


if (_path := os.environ.get("ATTACK_LOOP_LAG")) and "barnabas" in sys.orig_argv:
    _watch(_path)
