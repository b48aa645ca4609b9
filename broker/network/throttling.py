"""Usage of a request, and the throttle time of its client (KIP-219).

The response leaves at once and has the throttle time; then no request is handled for that long,
whether the client waits or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from barnabas.broker.api.dispatch import PRODUCE_KEY, Route, Usage
from barnabas.broker.security.quotas.quotas import throttle_time_ms

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock, Timer


def throttle_of(usage: Usage, route: Route, response: Any) -> float:  # noqa: ANN401
    """Count the usage of a request; return the throttle time in ms, and set it in the response.

    ``response`` is None if there is none: Produce with acks=0, whose time does not count, or the
    client has left. A response already has the throttle time that its handler has counted itself
    (the bytes of a Fetch, changes of partitions).
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
        """Resume handling requests."""


class Mute:
    """The pause of a connection; a later request may extend it."""

    __slots__ = ("_clock", "_muted", "_timer", "_until_s")

    def __init__(self, muted: Muted, clock: Clock) -> None:
        self._muted = muted
        self._clock = clock
        self._timer: Timer | None = None
        self._until_s = 0.0

    def extend(self, throttle_ms: float) -> None:
        """Resume after ``throttle_ms``, but not before the time of an earlier call."""
        until_s = self._clock.monotonic() + throttle_ms / 1000
        if until_s > self._until_s:
            self.cancel()
            self._until_s = until_s
            self._timer = self._clock.call_later(throttle_ms, self._over)

    def cancel(self) -> None:
        """Cancel the resumption: the client has disconnected."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self._timer = None
        self._muted.unmute()
