"""Sessions in which a broker leads: the end of one ends all leaderships, and the next one starts.

Rules of this file:

* The next session is registered after all logs of the last one are dropped. Logs are read in it
  only once the committer flushes in it (``StoredLogs.begin``), though the view may name it before.
* A broker that drains starts no other session.
* A broker that gave a session up because it alone lacks the object store starts the next one once
  the store works for it (``object_access.py``).
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
    """Consecutive sessions of one broker; used on the event loop only."""

    def __init__(
        self,
        host: Host,
        home: ClusterHome,
        logs: LogStore,
        durable_logs: StoredLogs,
        until_ready: Callable[[int], Awaitable[None]],
        register: Callable[[], Awaitable[int]],
        on_begun: Callable[[], None],
        on_event: Callable[[str, str], object],
    ) -> None:
        """``until_ready`` waits until another session may follow the given one.

        ``register`` returns a new session of this node, and waits while the store is unavailable.
        ``on_begun`` is called after each session except the one that the home was opened with.
        ``on_event``: see ``Newcomer``.
        """
        self._host = host
        self._home = home
        self._logs = logs
        self._durable_logs = durable_logs
        self._until_ready = until_ready
        self._register = register
        self._on_begun = on_begun
        self._on_event = on_event
        self._ended_session: int | None = None
        """Session that the store has ended, possibly before partitions were led, or None."""
        self._is_leading = False
        self._is_last = False
        """Whether no other session may start."""
        self._is_closed = False

    @property
    def newest(self) -> int:
        """Return the newest session, whether or not it has ended."""
        return self._home.session

    def leading(self) -> int | None:
        """Return the session in which logs are led here, or None between sessions."""
        committer = self._home.committer
        return None if committer is None else committer.session

    def lead(self) -> None:
        """Start to lead partitions in the session that the home was opened with."""
        self._is_leading = True
        self._durable_logs.begin(self.newest)
        if self._ended_session == self.newest:
            self.ended(self.newest)

    def ended(self, session: int) -> None:
        """Record that the store has ended a session, before a flush has found out."""
        self._ended_session = session
        if self._is_leading and not self._is_closed:
            self._committer.end_session(session)
            self._logs.journal.add_operation(lambda: None)  # Makes a flush, which fails.

    def forgotten(self) -> None:
        """Replace a lost session, since all its logs are dropped."""
        if self._committer.session is None and not self._is_last:
            self._durable_logs.end()
            self._host.spawn(self._begin(), "register again")

    def begin_no_other(self) -> None:
        """Begin no further session when the current one ends."""
        self._is_last = True

    def close(self) -> None:
        """Stop: register no more sessions, and end all reads of logs."""
        self._is_last = self._is_closed = True
        self._durable_logs.close()

    async def _begin(self) -> None:
        former = self.newest
        logger.warning("session lost, all that was led here is forgotten session=%d", former)
        self._on_event("session_lost", f"session {former}: all that was led here is forgotten")
        await self._until_ready(former)
        if self._is_last:
            return
        session = await self._register()
        self._committer.begin_session(session)
        self._home.session = session
        self._durable_logs.begin(session)
        logger.info("session started session=%d", session)
        self._on_event("session_begun", f"session {session}")
        if self._ended_session == session:  # Ended before its start here.
            self.ended(session)
        self._on_begun()

    @property
    def _committer(self) -> FlushCommitter:
        committer = self._home.committer
        assert committer is not None, "logs are open"
        return committer
