"""What connections share: the turn to write, and the wait for the journal."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

TURN_NS: Final = 20_000_000
"""How long connections handle requests in one iteration of the loop. Then the sockets are looked at
again, whatever else there is to do: /livez, other connections, the disk's answers."""

NOTICED_NS: Final = 100_000


class Deliverable(Protocol):
    """A connection that has something to write or to resume."""

    def deliver(self) -> None:
        """Do that now."""


class Waiting(Protocol):
    """Requests that are not handled because the journal is behind."""

    def caught_up(self) -> None:
        """Go on."""


class Backlog:
    """Whether the journal is behind, and who goes on when it is not any more."""

    def __init__(self) -> None:
        self.is_behind = False
        self._waiting: list[Waiting] = []

    def wait(self, waiting: Waiting) -> None:
        """Have ``waiting`` called when the journal has caught up."""
        self._waiting.append(waiting)

    def set(self, is_behind: bool) -> None:  # noqa: FBT001
        """Hold back each connection that produces from now on, or let them all go on."""
        self.is_behind = is_behind
        if not is_behind:
            waiting, self._waiting = self._waiting, []
            for each in waiting:
                each.caught_up()


class Delivery:
    """Connections that have something to write or to resume, served once per loop iteration.

    And the loop's time: each connection says what it spends. Once that is a turn, who comes
    in later queues up here for the next iteration, behind those who queued before.
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
        """Count what a connection took of this iteration, unless it is next to nothing."""
        if took_ns > NOTICED_NS:
            self._spent_ns += took_ns
            self._schedule()

    @property
    def overdrawn(self) -> bool:
        """Return whether this iteration has had its turn of requests."""
        return self._spent_ns > TURN_NS

    def flush(self) -> None:
        """Serve the queued connections now; what they cause is left to the next iteration.

        And who comes behind what took a whole turn.
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
        """Let nothing leave any more, whatever was made ready."""
        self._ended = True
        self._ready = []

    def _schedule(self) -> None:
        """Have the next iteration begin with this."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run)

    def _run(self) -> None:
        self._scheduled = False
        self._spent_ns = 0
        self.flush()
