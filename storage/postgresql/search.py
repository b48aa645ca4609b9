"""Searches several servers for the one that takes writes.

Rules of this file:

1. Connections to all servers are attempted in the driver's order: at random. Each attempt starts
   shortly after the one before it, or as soon as that has failed. So a server that is silent, or
   takes no writes, delays no attempt; and a server that takes writes is often the only one tried.
2. A server that refuses, or takes no writes, is tried again while another attempt is pending: it
   may be about to be promoted. Its attempts become rarer from one search to the next.
3. A search fails once each attempt has failed and none is pending, or when the time is up.
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
"""Time until a server is tried again that has refused; twice as long after each refusal."""
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
        """Time until the server is tried again, should it refuse."""
        self._status: int = pq.PollingStatus.WRITING
        self.pgconn: pq.abc.PGconn | None = None
        self.error: psycopg.OperationalError | None = None
        """Error of the last attempt."""

    @property
    def is_over(self) -> bool:
        """Whether the attempt has failed, and no other is pending."""
        return self.pgconn is None and self.error is not None

    @property
    def waits_for(self) -> tuple[int, int] | None:
        """Return the socket and the awaited events, or None if no attempt is pending."""
        if self.pgconn is None:
            return None
        return self.pgconn.socket, _WAITS_FOR[self._status]

    def may_begin(self, now_s: float) -> None:
        """Start the first attempt without the rest of its delay."""
        if self.error is None:
            self._begins_s = min(self._begins_s, now_s)

    def begin(self, now_s: float) -> None:
        """Start an attempt, if it is due."""
        if self.pgconn is None and now_s >= self._begins_s:
            self.pgconn = pq.PGconn.connect_start(self._address.encode())
            self._status = pq.PollingStatus.WRITING
            if self.pgconn.status == pq.ConnStatus.BAD:
                self._fail(now_s)

    def advance(self, now_s: float) -> pq.abc.PGconn | None:
        """Continue after the awaited event; return the connection when it is complete."""
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
        """End the attempts."""
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
    """One search. The caller closes the connection that it found; ``close`` closes the others."""

    def __init__(
        self,
        address: str,
        *,
        but_for: tuple[str, str] | None = None,
        again_s: float = AGAIN_S_MIN,
    ) -> None:
        """``address`` is libpq's, with ``connect_timeout``; ``but_for``: a host and its port.

        ``again_s`` is that of the previous search, which has found none. Raises
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
        """Return the time after which the next search repeats a refused attempt."""
        return max((each.again_s for each in self._attempts), default=AGAIN_S_MIN)

    def step(self, timeout_ms: int = POLL_MS) -> pq.abc.PGconn | None:
        """Continue for at most ``timeout_ms``; return a connection to a server that takes writes,
        if found.

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
            made = waiting[ready].advance(monotonic())
            if made is not None:
                return made
        if monotonic() > self._until_s:
            raise self._error()
        return None

    def close(self) -> None:
        """End all attempts."""
        for each in self._attempts:
            each.close()

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all attempts."""
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
    """Return the host and port of a connection, as ``but_for`` names them."""
    return connection.info.hostaddr or connection.info.host, str(connection.info.port)
