"""Commits that a cluster's store has confirmed to one broker, to detect their loss.

Rules of this file:

1. Only commits that a standby confirmed count: no failover to a standby loses them. So a server
   that lacks any of them was restored to an older moment, or was promoted though it lacked some. A
   broker that continued with its own state would serve records that do not exist any more, and
   other records would get their offsets.
2. The check runs on every new connection before any other query, for a restored server ends all
   connections. It also runs with each heartbeat, and before a session begins, for tables can be
   restored under connections that stay open.
3. A loss is believed only when a standby has confirmed a commit since. A primary that was replaced
   and still runs lacks commits as well, but no standby confirms anything to it, so it does not
   respond. A caller that waits for it repeatedly leaves one such wait behind, not one for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from psycopg import errors

from barnabas.storage.errors import StoreUnusable
from barnabas.storage.postgresql.durability import CONFIRM_IN_TURN
from barnabas.storage.runtime.threads import new_lock

if TYPE_CHECKING:
    from uuid import UUID

    import psycopg

_SEEN: Final = """
SELECT (SELECT version FROM barnabas.picture),
    coalesce((SELECT version FROM barnabas.cluster), 0),
    (SELECT token FROM barnabas.sessions WHERE session_id = %(session)s),
    (SELECT next_flush FROM barnabas.lanes WHERE session_id = %(session)s AND lane = %(lane)s)
"""
_LOST: Final = (
    "it has lost what it had confirmed ({}): it was restored to an older moment, or a standby was"
    " promoted that had not got everything. This broker forgets what it knew when it is started"
    " again"
)
_NO_SESSION: Final = -1
_INLINE: Final = 0
"""The lane of all flushes so far."""


class Witness:
    """The confirmed commits that the connections of one broker have seen; usable on any thread."""

    def __init__(self) -> None:
        """Start without any confirmed commit."""
        self._lock = new_lock()
        self._session = _NO_SESSION
        self._token: UUID | None = None
        self._next_flush = 0
        """The session's next flush: all before it are committed."""
        self._picture_version = 0
        self._metadata_version = 0

    def session_begun(self, session: int, token: UUID) -> None:
        """Remember the newest session of this broker, which has that token."""
        with self._lock:
            if session != self._session:
                self._session, self._token, self._next_flush = session, token, 0

    def flush_committed(self, session: int, number: int) -> None:
        """Record the newest flush of a session in the inline lane."""
        with self._lock:
            if session == self._session:
                self._next_flush = max(self._next_flush, number + 1)

    def picture_seen(self, version: int) -> None:
        """Remember a version of the picture that was confirmed."""
        with self._lock:
            self._picture_version = max(self._picture_version, version)

    def metadata_seen(self, version: int) -> None:
        """Remember a version of the metadata that was confirmed."""
        with self._lock:
            self._metadata_version = max(self._metadata_version, version)

    def check(self, connection: psycopg.Connection[Any]) -> None:
        """Raise StoreUnusable if a server lacks known commits, and its standby confirms it."""
        lost = self._lost(connection)
        if lost:
            connection.execute(CONFIRM_IN_TURN)
            raise StoreUnusable(_LOST.format(lost))

    def _lost(self, connection: psycopg.Connection[Any]) -> str:
        """Return a description of the commits that a server lacks now, or ""."""
        with self._lock:
            session, token, next_flush = self._session, self._token, self._next_flush
            versions = self._picture_version, self._metadata_version
        if versions == (0, 0) and session == _NO_SESSION:
            return ""
        try:
            row = connection.execute(_SEEN, {"session": session, "lane": _INLINE}).fetchone()
        except (errors.UndefinedTable, errors.InvalidSchemaName):
            return "all of it"
        assert row is not None
        *found_versions, found_token, found_flush = row
        kinds = ("cluster", "metadata")
        for kind, seen, found in zip(kinds, versions, found_versions, strict=True):
            if found < seen:
                return f"version {seen} of its {kind}, {found} is there"
        # A missing row was deleted long after its session had ended: no snapshot that this broker
        # has seen is from before it.
        if found_token not in {None, token}:
            return f"session {session} is another broker's"
        if found_flush is not None and found_flush < next_flush:
            return f"{next_flush} flushes of session {session}, {found_flush} are there"
        return ""
