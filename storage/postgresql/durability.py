"""Whether PostgreSQL's commits survive the loss of its primary.

An asynchronous standby that is promoted lacks the newest acknowledged commits: offsets would be
assigned twice. So such a server is refused, at a start or later. A single server keeps its commits
on its one disk; a server with an unavailable standby looks the same.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import psycopg

from barnabas.storage.errors import StoreUnusable

_CONFIRMING: Final = b"pg_logical_emit_message(true, 'barnabas', '')"
CONFIRM: Final = b"SELECT " + _CONFIRMING
"""A separate commit that needs no table: rows read before it are durable after it."""
CONFIRM_IN_TURN: Final = b"SELECT pg_advisory_xact_lock(33611471017833331), " + _CONFIRMING
"""The same, one caller of all after the other. The lock is "witness"."""

OLDEST_VERSION: Final = 15
"""Oldest version of PostgreSQL that the tests run and docs/cluster.md names."""
_STRONG: Final = ("on", "remote_apply")

# Without the privilege to see more, a standby's row has nothing but its process.
_QUESTION: Final = """
SELECT current_setting('fsync'), current_setting('full_page_writes'),
    current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
    (SELECT count(*) FROM pg_stat_replication AS standby
        WHERE coalesce(standby.state, 'streaming') <> 'backup'
        AND coalesce(standby.application_name, '') NOT IN ('pg_basebackup', 'pg_receivewal')
        AND NOT EXISTS (SELECT 1 FROM pg_replication_slots AS slot
            WHERE slot.active_pid = standby.pid AND slot.slot_type = 'logical')),
    current_setting('server_version_num')::int / 10000,
    (SELECT count(*) FROM pg_stat_replication
        WHERE coalesce(sync_state, 'sync') IN ('sync', 'quorum'))
"""


class NotDurable(StoreUnusable):
    """The server can lose commits, by itself or when its standby takes over."""


class Durability(NamedTuple):
    """Settings of a server that decide how it commits."""

    fsync: str
    full_page_writes: str
    synchronous_commit: str
    synchronous_standby_names: str
    standbys: int
    """Standbys that follow now, without standbys that are being created and without subscribers."""
    version: int
    confirming_standbys: int
    """Number of standbys whose confirmation a commit waits for, if this role may see them."""


def read_durability(connection: psycopg.Connection[Any]) -> Durability:
    """Return the server's settings for commits on this connection."""
    row = connection.execute(_QUESTION).fetchone()
    assert row is not None
    return Durability(*row)


def missing_standby(found: Durability) -> str:
    """Return the reason that no commit ends now, or "" if a synchronous standby is connected."""
    names = found.synchronous_standby_names.strip()
    if not names or found.confirming_standbys:
        return ""
    return (
        "PostgreSQL takes connections, but commits wait for a synchronous standby"
        f" (synchronous_standby_names = {names}), and none is connected"
    )


def judge(found: Durability) -> str | None:
    """Return a warning for the operator, or None; raises NotDurable."""
    if found.version < OLDEST_VERSION:
        raise NotDurable(
            f"PostgreSQL has version {found.version}: Barnabas needs {OLDEST_VERSION} or newer"
        )
    for name, value in (("fsync", found.fsync), ("full_page_writes", found.full_page_writes)):
        if value != "on":
            raise NotDurable(f"PostgreSQL has {name} = {value}: a crash may lose what it committed")
    if found.synchronous_commit not in _STRONG:
        raise NotDurable(
            f"PostgreSQL has synchronous_commit = {found.synchronous_commit} for this role: it has"
            " to be on or remote_apply"
        )
    if found.synchronous_standby_names.strip():
        return None
    if found.standbys:
        raise NotDurable(
            f"PostgreSQL has {found.standbys} asynchronous standby(s) and no"
            " synchronous_standby_names: a standby that is promoted may lack what was acknowledged"
        )
    return (
        "PostgreSQL has no synchronous_standby_names, and nothing follows it now: all that is"
        " acknowledged is on this one server"
    )
