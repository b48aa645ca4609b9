"""Limits on password guessing: failed logins get a late response, and each address has a limit.

Rules of this file:

* **The limit counts guesses, not responses,** since a guessing client need not wait for a late
  response. The connections of an address that has used up its failures are closed without a
  response. Clients retry after that, whereas an error would make valid clients of the same address
  give up.
* **Each port has its own limits** (``apart``): behind a proxy all clients of the HTTP port have one
  address, which Kafka clients may share.
* **The limits have limits themselves.** A fixed number of responses is delayed at a time, and the
  rest is sent at once. The number of recorded addresses is limited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

ADDRESSES_MAX: Final = 10_000
"""Maximum number of recorded addresses; then the one with the oldest failure is dropped."""
PERIOD_S: Final = 60.0


class FailedLogins:
    """Failed logins of one broker."""

    def __init__(self, clock: Clock, *, per_address: int, held_back: int, delay_ms: float) -> None:
        """``per_address``: failures in a minute; ``held_back``: responses that are delayed at a
        time.
        """
        self._count = 0
        self._apart: list[FailedLogins] = []
        self._clock = clock
        self._per_address = per_address
        self._held_back_max = held_back
        self._delay_ms = delay_ms
        self._held_back = 0
        self._leaving = 0
        # Remaining failures of each address, and the time of that count; the latest one last.
        self._left: dict[str, tuple[float, float]] = {}

    @property
    def count(self) -> int:
        """Number of logins that have failed so far, including those of ``apart``."""
        return self._count + sum(each.count for each in self._apart)

    def apart(self) -> FailedLogins:
        """Return a counter with the same limits for another port, and its own failures."""
        other = FailedLogins(
            self._clock,
            per_address=self._per_address,
            held_back=self._held_back_max,
            delay_ms=self._delay_ms,
        )
        self._apart.append(other)
        return other

    def may_try(self, address: str) -> bool:
        """Whether an address, or network, has failures left."""
        return self._left_of(address) >= 1

    def failed(self, address: str) -> None:
        """Count a failure."""
        self._count += 1
        left = max(0.0, self._left_of(address) - 1)
        self._left.pop(address, None)
        if len(self._left) >= ADDRESSES_MAX:
            del self._left[next(iter(self._left))]
        self._left[address] = left, self._clock.monotonic()

    def hold_back(self) -> float:
        """Return the delay, in milliseconds, of the response to a failure."""
        if self._held_back >= self._held_back_max:
            return 0
        self._held_back += 1
        self._clock.call_later(self._delay_ms, self._release)
        return self._delay_ms

    def may_leave_late(self) -> bool:
        """Reserve a place for a client that is to close its connection; call `left` at its end.

        Returns whether a place was free: there are as many as delayed responses.
        """
        if self._leaving >= self._held_back_max:
            return False
        self._leaving += 1
        return True

    def left(self) -> None:
        """Release the place of a client that has closed its connection, or was disconnected."""
        self._leaving -= 1

    def _release(self) -> None:
        self._held_back -= 1

    def _left_of(self, address: str) -> float:
        known = self._left.get(address)
        if known is None:
            return self._per_address
        left, seen = known
        left += (self._clock.monotonic() - seen) * self._per_address / PERIOD_S
        return min(left, self._per_address)
