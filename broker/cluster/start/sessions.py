"""The session in which a broker leads: its end ends all that is led here, and another one begins.

Rules of this file:

* The next session is registered when all that was led in the last one is forgotten, and logs are
  read for it only once the committer flushes for it (``StoredLogs.begin``): the view may name it
  before.
* A broker that gives up what it leads begins no other one.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.cluster.membership.durable_logs import StoredLogs
    from barnabas.broker.cluster.start.cluster_directory import ClusterHome
    from barnabas.broker.runtime.host import Host
    from barnabas.storage.replicated.flush_committer import FlushCommitter
    from barnabas.storage.store.log_store import LogStore

logger = logging.getLogger("barnabas.broker.cluster")


class Sessions:
    """Those of one broker, one after the other; all of it on the loop."""

    def __init__(
        self,
        host: Host,
        home: ClusterHome,
        logs: LogStore,
        durable_logs: StoredLogs,
        register: Callable[[], Awaitable[int]],
        on_begun: Callable[[], None],
        on_event: Callable[[str, str], object],
    ) -> None:
        """``register`` returns a new session of this node, however long the store is away.

        ``on_begun`` is called when another one has begun than that which the home was opened with.
        ``on_event``: see ``Newcomer``.
        """
        self._host = host
        self._home = home
        self._logs = logs
        self._durable_logs = durable_logs
        self._register = register
        self._on_begun = on_begun
        self._on_event = on_event
        self._ended_session: int | None = None
        """One that the store has ended, be it before anything is led."""
        self._is_leading = False
        self._is_last = False
        """Whether no other session is to begin."""
        self._is_closed = False

    @property
    def newest(self) -> int:
        """Return the newest session, be it over or not."""
        return self._home.session

    def leading(self) -> int | None:
        """Return the session in which logs are led here; None: it is over, or has not begun."""
        committer = self._home.committer
        return None if committer is None else committer.session

    def lead(self) -> None:
        """Lead from now on what the store says, in the session that the home was opened with."""
        self._is_leading = True
        self._durable_logs.begin(self.newest)
        if self._ended_session == self.newest:
            self.ended(self.newest)

    def ended(self, session: int) -> None:
        """Take note that the store has ended a session of ours, before a flush has found out."""
        self._ended_session = session
        if self._is_leading and not self._is_closed:
            self._committer.end_session(session)
            self._logs.journal.add_operation(lambda: None)  # A group, with which it is told.

    def forgotten(self) -> None:
        """Begin anew where the session is lost: nothing is left of what was led in it."""
        if self._committer.session is None and not self._is_last:
            self._durable_logs.end()
            self._host.spawn(self._begin(), "register again")

    def begin_no_other(self) -> None:
        """Let this session be the last one."""
        self._is_last = True

    def close(self) -> None:
        """Take note of nothing any more."""
        self._is_last = self._is_closed = True
        self._durable_logs.close()

    async def _begin(self) -> None:
        former = self.newest
        logger.warning("session lost, all that was led here is forgotten session=%d", former)
        self._on_event("session_lost", f"session {former}: all that was led here is forgotten")
        session = await self._register()
        self._committer.begin_session(session)
        self._home.session = session
        self._durable_logs.begin(session)
        logger.info("session started session=%d", session)
        self._on_event("session_begun", f"session {session}")
        if self._ended_session == session:  # Already; it was told when nobody could be lost yet.
            self.ended(session)
        self._on_begun()

    @property
    def _committer(self) -> FlushCommitter:
        committer = self._home.committer
        assert committer is not None, "logs are open"
        return committer
