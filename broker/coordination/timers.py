"""The timers of one coordinator, one at a time of each: set and cancelled by decisions' effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Cancel, Effect, Schedule, Timer
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.runtime.clock import Timer as ClockTimer

RETRY_MS: Final = 1000
"""A timer whose records cannot be written (the disk is full) comes again after this time."""


@dataclass(slots=True, eq=False)
class Expiry:
    """A timer that has come, while its command waits for its turn."""

    timer: Timer
    is_overtaken: bool = False
    """Whether the timer was scheduled again or cancelled meanwhile.

    A member whose session ran out while its answer was on its way to the disk is not gone.
    """


class Timers:
    """Timers of the broker's clock by what they are for."""

    def __init__(self, clock: Clock, expired: Callable[[Timer], None]) -> None:
        """``expired`` is called with each timer that has come."""
        self._clock = clock
        self._expired = expired
        self._running: dict[Timer, ClockTimer] = {}
        self._expiries: dict[Timer, Expiry] = {}
        self._closed = False

    def take(self, effect: Effect) -> None:
        """Do what a Schedule or Cancel says."""
        if isinstance(effect, Schedule):
            tick_ms = int(self._clock.monotonic() * 1000)
            self._start(effect.timer, max(0, effect.at_tick_ms - tick_ms))
        else:
            assert isinstance(effect, Cancel), effect
            self._stop(effect.timer)

    def retry(self, timer: Timer, code: ErrorCode) -> None:
        """Let a timer come again whose command met an error, unless its key is not known here."""
        if code != ErrorCode.NOT_COORDINATOR:
            self._start(timer, RETRY_MS)

    def waiting(self, timer: Timer) -> Expiry:
        """Return what says of a timer's command, which may have to wait, if it is overtaken."""
        expiry = self._expiries[timer] = Expiry(timer)
        return expiry

    def begin(self, expiry: Expiry) -> bool:
        """Whether the command of a timer still counts, now that it is its turn."""
        if expiry.is_overtaken:
            return False
        del self._expiries[expiry.timer]
        return True

    def clear(self) -> None:
        """Forget all timers."""
        for running in self._running.values():
            running.cancel()
        self._running.clear()
        for expiry in self._expiries.values():
            expiry.is_overtaken = True
        self._expiries.clear()

    def close(self) -> None:
        """Let no timer run any more."""
        self._closed = True
        self.clear()

    def _start(self, timer: Timer, delay_ms: int) -> None:
        self._stop(timer)
        if not self._closed:
            self._running[timer] = self._clock.call_later(delay_ms, self._expire, timer)

    def _stop(self, timer: Timer) -> None:
        expiry = self._expiries.pop(timer, None)
        if expiry is not None:
            expiry.is_overtaken = True
        running = self._running.pop(timer, None)
        if running is not None:
            running.cancel()

    def _expire(self, timer: Timer) -> None:
        del self._running[timer]
        self._expired(timer)
