"""Load and delay of the event loop, sampled once a second."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from barnabas.broker.runtime.clock import SystemClock, Timer
from barnabas.storage.counts import Histogram
from barnabas.storage.runtime.clock import counter_ns, processor_seconds

INTERVAL_SECONDS: Final = 1.0
TICKS_PER_WINDOW: Final = 60
AVERAGE_SECONDS: Final = 60.0
"""Kafka's idle shares are averages that forget over a minute."""


class LoopMonitor:
    """Measures the loop that starts it.

    Busy is the time for which its thread had a processor. Its waits for a processor or for the
    interpreter lock are in the lag. ``on_window`` is called every minute.
    """

    def __init__(self, on_window: Callable[[], None] = lambda: None) -> None:
        self.lag = Histogram()
        """Delays of a timer, in nanoseconds."""
        self.idle_share = 1.0
        self.busy_ns = 0
        self._on_window = on_window
        self.on_tick: Callable[[], None] = lambda: None
        """Called every second."""
        self._clock = SystemClock()
        """The machine's clock: a jump of the broker's clock leaves the loop alone."""
        self._timer: Timer | None = None
        self._due_ns = 0
        self._seen_ns = 0
        self._seen_busy_ns = 0
        self._ticks = 0

    def start(self) -> None:
        """Measure from now on."""
        self._seen_ns = counter_ns()
        self._seen_busy_ns = _processor_ns()
        self._schedule()

    def stop(self) -> None:
        """Stop measuring."""
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        self._due_ns = counter_ns() + int(INTERVAL_SECONDS * 1e9)
        self._timer = self._clock.call_later(INTERVAL_SECONDS * 1000, self._tick)

    def _tick(self) -> None:
        now_ns, busy_ns = counter_ns(), _processor_ns()
        # uvloop counts in whole milliseconds and may be a little early.
        self.lag.observe(max(now_ns - self._due_ns, 0))
        passed_ns, worked_ns = now_ns - self._seen_ns, busy_ns - self._seen_busy_ns
        self.busy_ns += worked_ns
        forgotten = 1 - math.exp(-passed_ns / 1e9 / AVERAGE_SECONDS)
        idle_share = 1 - min(worked_ns / passed_ns, 1)
        self.idle_share += (idle_share - self.idle_share) * forgotten
        self._seen_ns, self._seen_busy_ns = now_ns, busy_ns
        self._ticks += 1
        self._schedule()
        if self._ticks % TICKS_PER_WINDOW == 0:
            self._on_window()
        self.on_tick()


def _processor_ns() -> int:
    return int(processor_seconds() * 1e9)
