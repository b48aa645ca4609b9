"""What a request has used, and how long its client is to wait for that (KIP-219).

The answer leaves at once and says for how long nothing more will be handled; then nothing more is
handled for that long, whether the client waits or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.api.dispatch import PRODUCE_KEY, Route, Usage
from barnabas.broker.security.quotas.quotas import throttle_time_ms

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock, Timer


def throttle_of(usage: Usage, route: Route, response: Any) -> float:  # noqa: ANN401
    """Count what a request has used; return for how many ms its client waits, and say so.

    ``response`` is None where there is none: Produce with acks=0, whose time does not count, or the
    client has left. What its handler has counted itself (the bytes of a Fetch, changes of
    partitions) stands in it already.
    """
    quota, is_produce = usage.quota, route.key == PRODUCE_KEY
    is_exempt = is_produce and response is None
    throttle_ms = 0.0 if is_exempt else quota.used(usage.took_ns)
    if is_produce:
        throttle_ms = max(throttle_ms, quota.produced(usage.frame_bytes))
    throttle_ms = max(throttle_ms, getattr(response, "throttle_time_ms", 0))
    if throttle_ms and hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = throttle_time_ms(throttle_ms)
    return throttle_ms


class Muted(Protocol):
    """The requests of a connection that are not handled for a while."""

    def unmute(self) -> None:
        """Go on."""


class Mute:
    """How long a connection is not handled; what comes later may make it longer."""

    __slots__ = ("_clock", "_muted", "_timer", "_until_s")

    def __init__(self, muted: Muted, clock: Clock) -> None:
        self._muted = muted
        self._clock = clock
        self._timer: Timer | None = None
        self._until_s = 0.0

    def extend(self, throttle_ms: float) -> None:
        """Go on in so many milliseconds, and no sooner than was said before."""
        until_s = self._clock.monotonic() + throttle_ms / 1000
        if until_s > self._until_s:
            self.cancel()
            self._until_s = until_s
            self._timer = self._clock.call_later(throttle_ms, self._over)

    def cancel(self) -> None:
        """Do not go on: the client has gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._timer = None
        self._muted.unmute()
