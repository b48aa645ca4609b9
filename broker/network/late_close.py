"""The close of a connection after a failed login, which the broker leaves to the client."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock, Timer
    from barnabas.broker.security.sasl.failed_logins import FailedLogins

LEAVE_MS: Final = 500.0
"""Time limit for a client to close its connection after a failed login. kafka-python 3.0.12 reports
a lost connection without the reason if the broker closes it right after the response."""


class LateClose:
    """Close of one connection whose login has failed."""

    __slots__ = ("_clock", "_failed_logins", "_timer")

    def __init__(self, failed_logins: FailedLogins, clock: Clock) -> None:
        self._failed_logins = failed_logins
        self._clock = clock
        self._timer: Timer | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the client still has time to close the connection."""
        return self._timer is not None

    def begin(self, transport: asyncio.Transport) -> bool:
        """Close ``transport`` after ``LEAVE_MS``; return False if too many connections wait."""
        if not self._failed_logins.may_leave_late():
            return False
        self._timer = self._clock.call_later(LEAVE_MS, transport.close)
        return True

    def end(self) -> None:
        """Release the place of the connection, which is lost."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            self._failed_logins.left()
