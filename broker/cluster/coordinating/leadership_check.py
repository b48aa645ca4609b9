"""Check that this broker still leads a partition before it responds from its memory.

The store verifies the epoch of every append, but not of a response from memory. A broker that was
paused can have lost a partition without noticing. So where an outdated response would do harm, the
partition's row is read first.

Rules of this file:

* A read serves only the requests that arrived before the read started: it sees everything that a
  successor acknowledged before that.
* Requests that arrive during a read share the next one. One read runs at a time, on a thread.
* A read alone is not enough after a failover of the store, since a former primary may still
  respond: the lease must be valid, too. Once the lease has expired, all waiting requests fail at
  once.
* In doubt the result is False: the client looks up the coordinator and retries.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from barnabas.broker.api.waiting import respond_to
from barnabas.broker.runtime.threads import Pool
from barnabas.storage.errors import IndexClosed

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.replicated.log_index import PartitionState
    from barnabas.storage.store.log_store import LogStore

Waiting: TypeAlias = dict[int, list[Callable[[bool], None]]]
"""Callbacks that receive whether this broker leads the partition, by partition ID."""

_SUBJECT: Final = "of a coordinator"
"""Subject in the log line of a failing callback, in the place of a topic's name."""
LOOK_EVERY_MS: Final = 250
"""Interval, in milliseconds, between checks of the lease while the store does not respond."""


class PartitionRows(Protocol):
    """Store connection for the use of one thread; see ``LogIndex``."""

    def partition(self, partition_id: int) -> PartitionState | None:
        """Return the row of a partition, or ``None`` if it does not exist."""

    def close(self) -> None:
        """End the query in progress."""


class LeadershipCheck:
    """Batches leadership checks into reads of the store; used on the event loop only."""

    def __init__(
        self,
        host: Host,
        rows: PartitionRows,
        logs: LogStore,
        session: Callable[[], int | None],
        may_serve: Callable[[], bool],
    ) -> None:
        """Take ``session``, which returns this broker's session or None, and the lease's check."""
        self._host = host
        self._rows = rows
        self._may_serve = may_serve
        self._logs = logs
        self._session = session
        self._thread = Pool("leadership")
        self._asking: Waiting = {}
        """Checks that the current read covers."""
        self._waiting: Waiting = defaultdict(list)
        """Checks that arrived after the current read started."""
        self._is_reading = False
        self._timer: Timer | None = None
        self._is_closed = False

    def check(self, partition_id: int, then: Callable[[bool], None]) -> None:
        """Call ``then`` later with whether this broker leads the partition."""
        self._waiting[partition_id].append(then)
        if not self._is_reading:
            self._is_reading = True
            self._host.loop.call_soon(self._read)  # With all others that came in this turn.

    def close(self) -> None:
        """Discard all pending checks, since the broker stops."""
        self._is_closed = True
        self._stop_timer()
        self._rows.close()
        self._thread.close()

    def _read(self) -> None:
        self._asking, self._waiting = self._waiting, defaultdict(list)
        self._is_reading = bool(self._asking) and not self._is_closed
        if not self._is_reading:
            return
        if not self._may_serve():
            self._asking = self._answered(self._asking, {})
            self._host.loop.call_soon(self._read)
            return
        self._start_timer()
        reading = self._thread.run(partial(self._read_rows, tuple(self._asking)))
        reading.add_done_callback(self._take)

    def _read_rows(self, partition_ids: tuple[int, ...]) -> dict[int, PartitionState]:
        """Read the partitions' rows; runs on the thread."""
        found = {each: self._rows.partition(each) for each in partition_ids}
        return {each: row for each, row in found.items() if row is not None}

    def _take(self, reading: asyncio.Future[dict[int, PartitionState]]) -> None:
        if reading.cancelled():
            return
        error = reading.exception()
        if self._is_closed or isinstance(error, IndexClosed):
            return
        self._stop_timer()
        if error is not None:
            self._host.fatal(error)
            return
        # The lease as of now: it has to cover the moment of the read.
        rows = reading.result() if self._may_serve() else {}
        self._asking = self._answered(self._asking, rows)
        self._read()
        self._host.flush_answers()

    def _answered(self, asking: Waiting, rows: dict[int, PartitionState]) -> Waiting:
        """Complete the checks with the given rows, and return an empty dict."""
        for partition_id, waiting in asking.items():
            row, log = rows.get(partition_id), self._logs.logs.get(partition_id)
            is_led = (
                row is not None
                and log is not None
                and row.leader_epoch == log.leader_epoch
                and row.leader_session == self._session()
            )
            for then in waiting:
                respond_to(then, is_led, _SUBJECT)
        return {}

    def _start_timer(self) -> None:
        self._timer = self._host.clock.call_later(LOOK_EVERY_MS, self._check_lease)

    def _check_lease(self) -> None:
        """Fail all checks when the lease has expired while the store did not respond."""
        if not self._may_serve():
            self._asking = self._answered(self._asking, {})
            waiting, self._waiting = self._waiting, defaultdict(list)
            self._answered(waiting, {})
            self._host.flush_answers()
        self._start_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
