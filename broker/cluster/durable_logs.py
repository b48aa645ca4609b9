"""The logs of a cluster, read by whoever leads them; see ``DurableLogs`` (topics/leadership.py).

Rules of this file:

* A log is served only when the store has said, in an answer that no failover takes back, that this
  session leads it in this epoch: from then on nobody else's flush of it is committed, so what is
  read after that is all there is.
* A session that the broker has not begun yet leads nothing here, be it named by the view already.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from barnabas.storage.errors import LedSince
from barnabas.storage.log_index import IndexClosed
from barnabas.storage.log_reading import read_log

if TYPE_CHECKING:
    from barnabas.broker.cluster.base import ClusterBase
    from barnabas.storage.loading import DurableLog
    from barnabas.storage.log_index import LogIndex


class StoredLogs:
    """Reads logs, on several threads at once."""

    def __init__(self, base: ClusterBase) -> None:
        """Nothing can be read before ``begin``; closing ``base`` ends what is being read."""
        self._base = base
        self._of_thread = threading.local()
        self._begun = threading.Condition()
        self._session: int | None = None
        self._is_closed = False

    def begin(self, session: int) -> None:
        """Read what ``session`` leads, from now on."""
        with self._begun:
            self._session = session
            self._begun.notify_all()

    def end(self) -> None:
        """Read nothing before the next session has begun."""
        with self._begun:
            self._session = None

    def close(self) -> None:
        """Read nothing any more."""
        with self._begun:
            self._is_closed = True
            self._begun.notify_all()

    def read(self, partition_id: int, leader_epoch: int) -> DurableLog:
        """See ``DurableLogs``; raises IndexClosed, too."""
        session = self._current_session()
        index = self._index()
        state = index.partition(partition_id)
        if state is None:
            raise LedSince(f"partition {partition_id} was deleted")
        if (state.leader_session, state.leader_epoch) != (session, leader_epoch):
            raise LedSince(
                f"partition {partition_id} is led by session {state.leader_session} in epoch"
                f" {state.leader_epoch}, not by {session} in {leader_epoch}"
            )
        return read_log(index, partition_id)

    def _current_session(self) -> int:
        with self._begun:
            self._begun.wait_for(lambda: self._is_closed or self._session is not None)
            if self._is_closed or self._session is None:
                raise IndexClosed
            return self._session

    def _index(self) -> LogIndex:
        """Return this thread's own way there."""
        found: LogIndex | None = getattr(self._of_thread, "index", None)
        if found is None:
            found = self._of_thread.index = self._base.log_index()
        return found
