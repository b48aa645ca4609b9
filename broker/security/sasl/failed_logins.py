"""What slows guessing down: failed logins are answered late, and an address has only so many.

Rules of this file:

* **The limit is on guesses, not on their answers.** Whoever guesses need not wait for the answer
  that is late. An address that has used up its failures is not listened to: its connections are
  closed without a word, which clients take for a reason to come again, where an error would tell
  good ones behind the same address to give up.
* **Each door has limits of its own** (``apart``): behind a proxy all clients of the HTTP port have
  one address, which may be that of Kafka clients, too.
* **What slows others down must not be a burden here.** Few answers are held back at a time, the
  rest leaves at once; addresses are remembered up to a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

ADDRESSES_MAX: Final = 10_000
"""Addresses that are remembered; then the one that has not failed for longest is forgotten."""
PERIOD_S: Final = 60.0


class FailedLogins:
    """Counts the failed logins of one broker."""

    def __init__(self, clock: Clock, *, per_address: int, held_back: int, delay_ms: float) -> None:
        """``per_address``: failures in a minute; ``held_back``: answers that are late at a time."""
        self._count = 0
        self._apart: list[FailedLogins] = []
        self._clock = clock
        self._per_address = per_address
        self._held_back_max = held_back
        self._delay_ms = delay_ms
        self._held_back = 0
        self._leaving = 0
        # How many failures an address has left, and when that was so; the latest one last.
        self._left: dict[str, tuple[float, float]] = {}

    @property
    def count(self) -> int:
        """Number of logins that have failed so far, with those that are limited apart."""
        return self._count + sum(each.count for each in self._apart)

    def apart(self) -> FailedLogins:
        """Return the same limits for another door, whose failures use up nothing here."""
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
        """Take note of a failure."""
        self._count += 1
        left = max(0.0, self._left_of(address) - 1)
        self._left.pop(address, None)
        if len(self._left) >= ADDRESSES_MAX:
            del self._left[next(iter(self._left))]
        self._left[address] = left, self._clock.monotonic()

    def hold_back(self) -> float:
        """Return for how many milliseconds the answer to a failure is to be held back."""
        if self._held_back >= self._held_back_max:
            return 0
        self._held_back += 1
        self._clock.call_later(self._delay_ms, self._release)
        return self._delay_ms

    def may_leave_late(self) -> bool:
        """Reserve a place for a client that is to close its connection; call `left` at its end.

        Returns whether there was a place: as many as answers may be held back.
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
