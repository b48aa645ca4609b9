"""Time of the broker: every current time and every timer comes from a Clock.

``now_ms`` is the wall clock, which is used in records and retention, and ``monotonic`` measures
durations. A test moves both together with ``ManualClock``, which fires the timers that have become
due.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, Protocol

from barnabas.storage.runtime.clock import monotonic, now_ns


class Timer(Protocol):
    """Callback that will run once unless it is cancelled first."""

    def cancel(self) -> None:
        """Cancel the callback; no effect after it has run."""


class Clock(Protocol):
    """Clock and timers of the broker. Timers run their callbacks on the event loop."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:  # noqa: ANN401
        """Run ``callback(*args)`` on the running loop in ``delay_ms`` milliseconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``; 0 gives other tasks one turn."""

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a limit for an ``async with`` block, which then raises TimeoutError."""


class SystemClock:
    """Clock of the machine."""

    __slots__ = ()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return now_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds on a clock that never goes back."""
        return monotonic()

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:  # noqa: ANN401
        """Run ``callback(*args)`` on the running loop in ``delay_ms`` milliseconds."""
        return asyncio.get_running_loop().call_later(delay_ms / 1000, callback, *args)

    async def sleep(self, seconds: float) -> None:
        """Wait for ``seconds``; 0 gives other tasks one turn."""
        await asyncio.sleep(seconds)

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a limit for an ``async with`` block, which then raises TimeoutError."""
        return asyncio.timeout(seconds)


class _ManualTimer:
    """Timer of a ManualClock, ordered by due time and then by creation."""

    __slots__ = ("_args", "_callback", "_handle", "due", "number")

    def __init__(
        self, due: float, number: int, callback: Callable[..., object], args: tuple[Any, ...]
    ) -> None:
        self.due = due
        self.number = number
        self._callback: Callable[..., object] | None = callback
        self._args = args
        self._handle: asyncio.TimerHandle | None = None

    def __lt__(self, other: _ManualTimer) -> bool:
        return (self.due, self.number) < (other.due, other.number)

    def arm(self, delay: float) -> None:
        """Fire this timer on the event loop, too, after ``delay`` seconds of real time."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_later(delay, self.fire)

    def cancel(self) -> None:
        """Cancel the callback."""
        self._callback = None
        self._args = ()
        if self._handle is not None:
            self._handle.cancel()

    def fire(self) -> None:
        """Run the callback once."""
        callback, args = self._callback, self._args
        self.cancel()
        if callback is not None:
            callback(*args)

    @property
    def done(self) -> bool:
        """Whether this timer has run or was cancelled."""
        return self._callback is None


class _ManualTimeout:
    """Timeout by a ManualClock for one ``async with`` block."""

    __slots__ = ("_clock", "_limit", "_seconds", "_timer")

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._limit = asyncio.timeout(None if seconds > 0 else 0)
        self._timer: Timer | None = None

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        self._timer = self._clock.call_later(self._seconds * 1000, self._end)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._limit.__aexit__(kind, error, traceback)

    def _end(self) -> None:
        self._limit.reschedule(asyncio.get_running_loop().time())


def _complete(waited: asyncio.Future[None]) -> None:
    if not waited.done():
        waited.set_result(None)


class ManualClock:
    """Clock that a test moves with ``advance``.

    With ``running`` it also moves by itself, at the speed of the machine's clock. An embedded
    broker needs that: its clients live in real time, and its test skips a quarter of an hour.
    Without it, the time is constant between two calls of ``advance``.
    """

    def __init__(self, now_ms: int | None = None, *, running: bool = False) -> None:
        self._started = monotonic()
        self._start_ms = now_ns() // 1_000_000 if now_ms is None else now_ms
        self._running = running
        self._skipped = 0.0
        self._number = 0
        self._timers: list[_ManualTimer] = []
        self._forget_at = 64
        """Number of timers above which finished ones are dropped."""

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        return self._start_ms + int(self.monotonic() * 1000)

    def monotonic(self) -> float:
        """Return the seconds since this clock was created, including skipped ones."""
        elapsed = monotonic() - self._started if self._running else 0.0
        return elapsed + self._skipped

    def call_later(self, delay_ms: float, callback: Callable[..., object], *args: Any) -> Timer:  # noqa: ANN401
        """Run ``callback(*args)`` once ``delay_ms`` milliseconds have passed or were skipped."""
        self._number += 1
        timer = _ManualTimer(self.monotonic() + delay_ms / 1000, self._number, callback, args)
        if self._running:
            timer.arm(delay_ms / 1000)
        if len(self._timers) >= self._forget_at:
            self._forget_done()
            self._forget_at = max(64, 2 * len(self._timers))
        heapq.heappush(self._timers, timer)
        return timer

    async def sleep(self, seconds: float) -> None:
        """Wait until ``seconds`` have passed or were skipped; 0 gives other tasks one turn."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds * 1000, _complete, over)
        try:
            await over
        finally:
            timer.cancel()

    def timeout(self, seconds: float) -> AbstractAsyncContextManager[object]:
        """Return a limit for an ``async with`` block, which then raises TimeoutError."""
        return _ManualTimeout(self, seconds)

    def advance(self, **amount: float) -> None:
        """Skip time and fire the timers that have become due: ``advance(minutes=15)``, as for
        timedelta.

        Call it on the event loop's thread. Timers fire in order, each at its own time.
        """
        seconds = timedelta(**amount).total_seconds()
        if seconds < 0:
            raise ValueError("time does not go back")
        target = self.monotonic() + seconds
        while self._timers and self._timers[0].due <= target:
            timer = heapq.heappop(self._timers)
            if not timer.done:
                self._skipped += max(0.0, timer.due - self.monotonic())
                timer.fire()
        self._skipped += max(0.0, target - self.monotonic())
        self._forget_done()
        if self._running:  # the loop knows nothing of the skipped time
            now = self.monotonic()
            for timer in self._timers:
                timer.arm(max(0.0, timer.due - now))

    def jump(self, **amount: float) -> None:
        """Set the wall clock forward or back: ``jump(hours=-1)``. Monotonic time does not pass."""
        self._start_ms += int(timedelta(**amount) / timedelta(milliseconds=1))

    def _forget_done(self) -> None:
        self._timers = [timer for timer in self._timers if not timer.done]
        heapq.heapify(self._timers)
