"""Looks for the one of several servers that takes writes.

Rules of this file:

1. All of them are asked, each a little later than the one before it, or as soon as that has failed,
   in the order of the driver: at random. So one that does not answer at all holds up nobody, one
   that takes no writes does not either, and one that does is often the only one that is asked.
2. One that refuses, or takes no writes, is asked again while another is waited for: it may be about
   to be promoted. It is asked less and less often, from one search to the next.
3. It fails once each of them has failed and none is waited for, or when the time is up.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from typing import Final, Self

import psycopg
from psycopg import pq
from psycopg.conninfo import (
    conninfo_attempts,
    conninfo_to_dict,
    make_conninfo,
    timeout_from_conninfo,
)

from barnabas.storage.runtime.clock import monotonic

STAGGER_S: Final = 0.2
AGAIN_S_MIN: Final = 0.1
"""Until one is asked again that has refused; twice as long each time that it does."""
AGAIN_S_MAX: Final = 1.0
POLL_MS: Final = 50
NOT_IN_TIME: Final = "connection timeout expired"

_WAITS_FOR: Final[dict[int, int]] = {
    pq.PollingStatus.READING: select.POLLIN,
    pq.PollingStatus.WRITING: select.POLLOUT,
}


class _Attempt:
    """One server, asked again and again."""

    def __init__(self, address: str, begins_s: float, again_s: float) -> None:
        self._address = address
        self._begins_s = begins_s
        self.again_s = again_s
        """Until it is asked again, should it refuse."""
        self._status: int = pq.PollingStatus.WRITING
        self.pgconn: pq.abc.PGconn | None = None
        self.error: psycopg.OperationalError | None = None
        """What the last one failed by."""

    @property
    def is_over(self) -> bool:
        """Whether it has failed, and nothing is waited for."""
        return self.pgconn is None and self.error is not None

    @property
    def waits_for(self) -> tuple[int, int] | None:
        """Return the socket, and what of it is waited for."""
        if self.pgconn is None:
            return None
        return self.pgconn.socket, _WAITS_FOR[self._status]

    def may_begin(self, now_s: float) -> None:
        """Take note that nothing is to be waited for any more before it is asked first."""
        if self.error is None:
            self._begins_s = min(self._begins_s, now_s)

    def begin(self, now_s: float) -> None:
        """Ask, if it is time for that."""
        if self.pgconn is None and now_s >= self._begins_s:
            self.pgconn = pq.PGconn.connect_start(self._address.encode())
            self._status = pq.PollingStatus.WRITING
            if self.pgconn.status == pq.ConnStatus.BAD:
                self._fail(now_s)

    def go_on(self, now_s: float) -> pq.abc.PGconn | None:
        """Go on, since what was waited for is there; return a connection that is made."""
        assert self.pgconn is not None
        self._status = self.pgconn.connect_poll()
        if self._status == pq.PollingStatus.OK:
            made, self.pgconn = self.pgconn, None
            made.nonblocking = 1  # As the driver expects it.
            return made
        if self._status not in _WAITS_FOR:
            self._fail(now_s)
        return None

    def close(self) -> None:
        """Ask no more."""
        if self.pgconn is not None:
            self.pgconn.finish()
            self.pgconn = None

    def _fail(self, now_s: float) -> None:
        assert self.pgconn is not None
        self.error = psycopg.OperationalError(
            f"connection failed: {self.pgconn.get_error_message()}"
        )
        self._begins_s = now_s + self.again_s
        self.again_s = min(2 * self.again_s, AGAIN_S_MAX)
        self.close()


class Search:
    """One search. What it has found is its caller's to close; the rest is gone with ``close``."""

    def __init__(
        self,
        address: str,
        *,
        but_for: tuple[str, str] | None = None,
        again_s: float = AGAIN_S_MIN,
    ) -> None:
        """``address`` is libpq's, with ``connect_timeout``; ``but_for``: a host and its port.

        ``again_s`` is that of the search before, which has found none. Raises
        psycopg.OperationalError for names that cannot be resolved.
        """
        given = conninfo_to_dict(address)
        now_s = monotonic()
        self._until_s = now_s + timeout_from_conninfo(given)
        found = [each for each in conninfo_attempts(given) if _place(each) != but_for]
        self._attempts = [
            _Attempt(make_conninfo("", **each), now_s + number * STAGGER_S, again_s)
            for number, each in enumerate(found)
        ]

    @property
    def again_s(self) -> float:
        """Return how long the next search may wait until it asks one again."""
        return max((each.again_s for each in self._attempts), default=AGAIN_S_MIN)

    def step(self, timeout_ms: int = POLL_MS) -> pq.abc.PGconn | None:
        """Go on for so long, or less; return a connection to a server that takes writes, if found.

        Raises psycopg.OperationalError when there is none.
        """
        now_s = monotonic()
        poll = select.poll()
        waiting = {}
        before: _Attempt | None = None
        for each in self._attempts:
            if before is not None and before.error is not None:
                each.may_begin(now_s)
            before = each
            each.begin(now_s)
            waits_for = each.waits_for
            if waits_for is not None:
                poll.register(*waits_for)
                waiting[waits_for[0]] = each
        if all(each.is_over for each in self._attempts):
            raise self._error()
        for ready, _ in poll.poll(timeout_ms):
            made = waiting[ready].go_on(monotonic())
            if made is not None:
                return made
        if monotonic() > self._until_s:
            raise self._error()
        return None

    def close(self) -> None:
        """Ask nobody any more."""
        for each in self._attempts:
            each.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Ask nobody any more."""
        self.close()

    def _error(self) -> psycopg.OperationalError:
        errors = [each.error for each in self._attempts if each.error is not None]
        if len(errors) < len(self._attempts):
            errors.insert(0, psycopg.OperationalError(NOT_IN_TIME))
        return psycopg.OperationalError("; ".join(map(str, errors)))


def _place(parameters: Mapping[str, object]) -> tuple[str, str]:
    host = parameters.get("hostaddr") or parameters.get("host") or ""
    return str(host), str(parameters.get("port") or _default_port())


def _default_port() -> str:
    """Return the port of an address that names none: PGPORT, or libpq's."""
    (found,) = (each.val for each in pq.Conninfo.get_defaults() if each.keyword == b"port")
    return (found or b"").decode()


def place_of(connection: psycopg.Connection[object]) -> tuple[str, str]:
    """Return where a connection leads, as ``but_for`` names it."""
    return connection.info.hostaddr or connection.info.host, str(connection.info.port)
