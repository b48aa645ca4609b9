"""State shared by connections: the turn to write, and the wait for the journal."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

TURN_NS: Final = 20_000_000
"""Maximum time for which connections handle requests in one iteration of the loop. Then the sockets
are polled again, for other work: /livez, other connections, the disk's results."""

NOTICED_NS: Final = 100_000


class Deliverable(Protocol):
    """A connection that has something to write or to resume."""

    def deliver(self) -> None:
        """Deliver now."""


class Waiting(Protocol):
    """Requests that are not handled because the journal is behind."""

    def caught_up(self) -> None:
        """Resume."""


class Backlog:
    """Whether the journal has a backlog, and the connections that wait for its end."""

    def __init__(self) -> None:
        self.is_behind = False
        self._waiting: list[Waiting] = []

    def wait(self, waiting: Waiting) -> None:
        """Call ``waiting`` when the backlog of the journal has ended."""
        self._waiting.append(waiting)

    def set(self, is_behind: bool) -> None:  # noqa: FBT001
        """Start to pause each connection that produces, or resume them all."""
        self.is_behind = is_behind
        if not is_behind:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each.caught_up()


class Delivery:
    """Connections that have something to write or to resume, served once per loop iteration.

    Also the loop's time: each connection reports the time it spends. Once that is a turn, a
    connection that receives later is queued here for the next iteration, after those that queued
    before.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._spent_ns = 0
        self._ready: list[Deliverable] = []
        self._scheduled = False
        self._ended = False

    def add(self, connection: Deliverable) -> None:
        """Queue a connection; the first one in an iteration schedules the flush."""
        if self._ended:
            return
        self._ready.append(connection)
        self._schedule()

    def spend(self, took_ns: int) -> None:
        """Count a connection's time in this iteration, unless it is negligible."""
        if took_ns > NOTICED_NS:
            self._spent_ns += took_ns
            self._schedule()

    @property
    def overdrawn(self) -> bool:
        """Return whether this iteration has had its turn of requests."""
        return self._spent_ns > TURN_NS

    def flush(self) -> None:
        """Serve the queued connections now; the work that they cause is left to the next iteration.

        After a connection that took a whole turn, the other connections also wait for the next
        iteration.
        """
        if not self._ready:
            return
        ready, self._ready = self._ready, []
        for number, connection in enumerate(ready):
            connection.deliver()
            if self._spent_ns > TURN_NS and number + 1 < len(ready) and not self._ended:
                self._ready[:0] = ready[number + 1 :]
                self._schedule()
                break

    def end(self) -> None:
        """Stop all sending, even of prepared responses."""
        self._ended = True
        self._ready = []

    def _schedule(self) -> None:
        """Start the next iteration with the flush."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self._spent_ns = 0
        self.flush()
