"""Makes sure that this broker leads a partition still, before it answers from what it remembers.

What a broker appends is compared by the store, what it remembers is not: one that was paused may
have lost a partition long ago, and know nothing of it. So where an old answer would do harm, the
row of the partition is read first.

Rules of this file:

* A read answers only those who came before it began: what was answered by a successor before that
  is not missing then.
* All who come while one read is under way share the next one; there is one at a time, on a thread.
* A read alone says too little after a failover of the store, in which a former primary may go on
  answering: the lease has to be valid as well. Once it is not, nobody waits any longer.
* In doubt the answer is no: the client looks for the coordinator and asks again.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from barnabas.broker.coordination.runner import respond_to
from barnabas.broker.runtime.threads import Pool
from barnabas.storage.replicated.log_index import IndexClosed

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Timer
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.replicated.log_index import PartitionState
    from barnabas.storage.store.log_store import LogStore

Waiting: TypeAlias = dict[int, list[Callable[[bool], None]]]
"""Whom to tell whether a partition is led here, by its id."""

_WHAT: Final = "of a coordinator"
"""In the place of a topic's name, should who waits fail."""
LOOK_EVERY_MS: Final = 250
"""How often the lease is looked at while the store does not answer."""


class PartitionRows(Protocol):
    """A way to the store of its own, for one thread; see ``LogIndex``."""

    def partition(self, partition_id: int) -> PartitionState | None:
        """Return what is known of a partition; None: there is none."""

    def close(self) -> None:
        """End whatever waits."""


class LeadershipCheck:
    """Asks the store for those who wait; all of it on the loop."""

    def __init__(
        self,
        host: Host,
        rows: PartitionRows,
        logs: LogStore,
        session: Callable[[], int | None],
        may_serve: Callable[[], bool],
    ) -> None:
        """``session``: this broker's; None: it has none now. ``may_serve``: its lease is valid."""
        self._host = host
        self._rows = rows
        self._may_serve = may_serve
        self._logs = logs
        self._session = session
        self._thread = Pool("leadership")
        self._asking: Waiting = {}
        """Those for whom a read is under way."""
        self._waiting: Waiting = defaultdict(list)
        """Those who have come since it began."""
        self._is_reading = False
        self._timer: Timer | None = None
        self._is_closed = False

    def check(self, partition_id: int, then: Callable[[bool], None]) -> None:
        """Call ``then``, later: with whether this broker leads the partition."""
        self._waiting[partition_id].append(then)
        if not self._is_reading:
            self._is_reading = True
            self._host.loop.call_soon(self._read)  # With all others that came in this turn.

    def close(self) -> None:
        """Answer nobody any more: the broker ends."""
        self._is_closed = True
        self._stop_looking()
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
        self._look_later()
        reading = self._thread.run(partial(self._read_rows, tuple(self._asking)))
        reading.add_done_callback(self._take)

    def _read_rows(self, partition_ids: tuple[int, ...]) -> dict[int, PartitionState]:
        """On the thread."""
        found = {each: self._rows.partition(each) for each in partition_ids}
        return {each: row for each, row in found.items() if row is not None}

    def _take(self, reading: asyncio.Future[dict[int, PartitionState]]) -> None:
        if reading.cancelled():
            return
        error = reading.exception()
        if self._is_closed or isinstance(error, IndexClosed):
            return
        self._stop_looking()
        if error is not None:
            self._host.fatal(error)
            return
        # The lease as of now: it has to cover the moment of the read.
        rows = reading.result() if self._may_serve() else {}
        self._asking = self._answered(self._asking, rows)
        self._read()
        self._host.flush_answers()

    def _answered(self, asking: Waiting, rows: dict[int, PartitionState]) -> Waiting:
        """Tell all of some; return that nobody is left."""
        for partition_id, waiting in asking.items():
            row, log = rows.get(partition_id), self._logs.logs.get(partition_id)
            is_led = (
                row is not None
                and log is not None
                and row.leader_epoch == log.leader_epoch
                and row.leader_session == self._session()
            )
            for then in waiting:
                respond_to(then, is_led, _WHAT)
        return {}

    def _look_later(self) -> None:
        self._timer = self._host.clock.call_later(LOOK_EVERY_MS, self._look)

    def _look(self) -> None:
        """Let nobody wait for a store that is away for longer than the lease lasts."""
        if not self._may_serve():
            self._asking = self._answered(self._asking, {})
            waiting, self._waiting = self._waiting, defaultdict(list)
            self._answered(waiting, {})
            self._host.flush_answers()
        self._look_later()

    def _stop_looking(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
