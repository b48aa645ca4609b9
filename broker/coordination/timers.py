"""The timers of one coordinator, one at a time of each: set and cancelled by decisions' effects.

Timers are stored by partition. The loss of a partition removes its timers in one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.coordinator.decision import Cancel, Effect, Schedule, Timer
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.coordination.shard import Shard
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.runtime.clock import Timer as ClockTimer

RETRY_MS: Final = 1000
"""A timer whose records cannot be written (the disk is full) is repeated after this time."""


@dataclass(slots=True, eq=False)
class Expiry:
    """Expired timer whose command waits for its turn."""

    shard: Shard[Any]
    timer: Timer
    is_overtaken: bool = False
    """Whether the timer was scheduled again or cancelled before its command ran.

    Then the session of a member has not expired, although its time ran out while its command
    waited.
    """
    is_postponed: bool = False
    """Whether the timer was postponed at its last expiry."""


class Timers:
    """Timers of the broker's clock, by partition and purpose."""

    def __init__(self, clock: Clock, expired: Callable[[Shard[Any], Expiry], None]) -> None:
        """``expired`` is called with each expired timer and its partition."""
        self._clock = clock
        self._expired = expired
        self._running: dict[Shard[Any], dict[Timer, ClockTimer]] = {}
        self._expiries: dict[Timer, Expiry] = {}
        self._postponed: set[Timer] = set()
        self._closed = False

    def __len__(self) -> int:
        """Return the number of timers that run, or have expired and wait for their turn."""
        return sum(map(len, self._running.values())) + len(self._expiries)

    def take(self, shard: Shard[Any], effect: Effect) -> None:
        """Apply a Schedule or Cancel of a partition's machine."""
        if isinstance(effect, Schedule):
            tick_ms = int(self._clock.monotonic() * 1000)
            self._start(shard, effect.timer, max(0, effect.at_tick_ms - tick_ms))
        else:
            assert isinstance(effect, Cancel), effect
            self._stop(shard, effect.timer)

    def retry(self, shard: Shard[Any], timer: Timer, code: ErrorCode) -> None:
        """Repeat a timer whose command failed, unless another broker coordinates its key."""
        if code != ErrorCode.NOT_COORDINATOR:
            self._start(shard, timer, RETRY_MS)

    def postpone(self, expiry: Expiry) -> None:
        """Repeat a timer after RETRY_MS, unless a newer one replaces it."""
        if self.begin(expiry):
            self._start(expiry.shard, expiry.timer, RETRY_MS)
            self._postponed.add(expiry.timer)

    def begin(self, expiry: Expiry) -> bool:
        """Return whether the command of a timer is still valid."""
        if expiry.is_overtaken:
            return False
        del self._expiries[expiry.timer]
        return True

    def forget(self, shard: Shard[Any]) -> None:
        """Forget the timers of a partition."""
        for running in self._running.pop(shard, {}).values():
            running.cancel()
        for expiry in [each for each in self._expiries.values() if each.shard is shard]:
            expiry.is_overtaken = True
            del self._expiries[expiry.timer]
        self._postponed = {each for each in self._postponed if not shard.owns(each.key)}

    def close(self) -> None:
        """Stop all timers."""
        self._closed = True
        for shard in [*self._running, *(each.shard for each in self._expiries.values())]:
            self.forget(shard)

    def _start(self, shard: Shard[Any], timer: Timer, delay_ms: int) -> None:
        self._stop(shard, timer)
        if self._closed or shard.is_gone:
            return
        running = self._running.get(shard)
        if running is None:
            running = self._running[shard] = {}
        running[timer] = self._clock.call_later(delay_ms, self._expire, shard, timer)

    def _stop(self, shard: Shard[Any], timer: Timer) -> None:
        self._postponed.discard(timer)
        expiry = self._expiries.pop(timer, None)
        if expiry is not None:
            expiry.is_overtaken = True
        of_shard = self._running.get(shard)
        running = None if of_shard is None else of_shard.pop(timer, None)
        if running is not None:
            running.cancel()

    def _expire(self, shard: Shard[Any], timer: Timer) -> None:
        del self._running[shard][timer]
        expiry = self._expiries[timer] = Expiry(shard, timer, is_postponed=timer in self._postponed)
        self._postponed.discard(timer)
        self._expired(shard, expiry)
