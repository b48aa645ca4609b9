"""The ClusterIndex in PostgreSQL: each method is one call of a function of ``migrations``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Self
from uuid import UUID

from barnabas.storage.errors import StoreDamaged
from barnabas.storage.postgresql.log_rows import beginnings_of
from barnabas.storage.postgresql.primary import PATIENCE_S, Primary, Row
from barnabas.storage.postgresql.schema import bring_up_to_date
from barnabas.storage.replicated.cluster_index import (
    FENCED_MAX,
    Assignment,
    ClusterSnapshot,
    HandOver,
    Led,
    Member,
    Poll,
)

_CHANNEL: Final = "barnabas"
_SEEN: Final = (
    "SELECT version, metadata_version, controller,"
    " member_sessions, member_nodes, member_endpoints, member_draining,"
    " led_partitions, led_sessions, led_epochs, led_wanted, led_pinned, gone,"
    " fenced_sessions, fenced_nodes, fenced_endpoints, failing_sessions"
)
_SEEN_COLUMNS: Final = 17
_FENCED: Final = f"""
    SELECT array_agg(session_id ORDER BY node_id) AS fenced_sessions,
        array_agg(node_id ORDER BY node_id) AS fenced_nodes,
        array_agg(endpoints ORDER BY node_id) AS fenced_endpoints
    FROM (
        SELECT session_id, node_id, endpoints FROM (
            SELECT DISTINCT ON (node_id) session_id, node_id, state, endpoints FROM (
                SELECT session_id, node_id, state, endpoints FROM barnabas.sessions
                WHERE endpoints <> '' ORDER BY session_id DESC LIMIT 1000
            ) AS latest ORDER BY node_id, session_id DESC
        ) AS newest WHERE state = 'fenced' ORDER BY session_id DESC LIMIT {FENCED_MAX}
    ) AS recent
"""  # noqa: S608  The number is a constant.
"""Fenced brokers: an import has a session without endpoints, and is none. A broker that restarts
again and again leaves many sessions, of which each look reads the newest ones only."""
_FAILING: Final = """
    SELECT array_agg(session_id ORDER BY session_id) AS failing_sessions
    FROM barnabas.object_access JOIN barnabas.sessions USING (session_id)
    WHERE failing_since IS NOT NULL AND state <> 'fenced'
"""
_PICTURE: Final = (
    f"{_SEEN} FROM barnabas.read_picture(%s), ({_FENCED}) AS fenced, ({_FAILING}) AS failing"
)
_BESIDE_SEEN: Final = (
    "SELECT seen.*, gained.* FROM seen FULL JOIN barnabas.read_placed_gained("
    "least(%s, (SELECT version FROM seen)), %s, %s::integer, %s::integer, %s::bigint"
    ") AS gained ON false ORDER BY gained.partition_id NULLS FIRST, gained.base_offset"
)
_LOOK: Final = f"WITH seen AS MATERIALIZED ({_PICTURE}) {_BESIDE_SEEN}"
"""The snapshot in the first row, logs in all others: one statement, and one commit. The logs are
read after the snapshot, whose version they use: each log that the snapshot shows as led is
included."""


class PostgreSqlClusterIndex:
    """A ClusterIndex on two connections, one of which only listens."""

    def __init__(self, primary: Primary, listener: Primary, warning: str | None) -> None:
        """Use started connections; call ``open`` to create the object."""
        self._primary = primary
        self._listener = listener
        self._failed_when_listening = 0
        self.warning = warning
        """Warning for the operator about the server's durability, or None."""

    @classmethod
    def open(cls, address: str, *, patience_s: float = PATIENCE_S) -> Self:
        """Connect, and bring the schema to this release's form.

        Waits for a server that takes writes. Raises NotDurable, SchemaTooNew.
        """
        primary = Primary(address, patience_s=patience_s)
        try:
            return cls.begin(primary, Primary(address, patience_s=patience_s))
        except BaseException:
            primary.close()
            raise

    @classmethod
    def begin(cls, primary: Primary, listener: Primary) -> Self:
        """Open like ``open`` on the caller's connections; after an error the caller closes them."""
        return cls(primary, listener, primary.start(bring_up_to_date))

    def new_node_id(self) -> int:
        """Return a node id that no broker has had."""
        return self._primary.value(int, "SELECT barnabas.new_node_id()")

    def register(
        self,
        token: UUID,
        node_id: int,
        endpoints: str,
        lease_ms: int,
        object_store: str | None = None,
    ) -> int:
        """Start a session and end the node's previous one."""
        statement = "SELECT barnabas.register(%s, %s::integer, %s::text, %s::integer, %s::text)"
        arguments = (token, node_id, endpoints, lease_ms, object_store)
        session = self._primary.value(int, statement, *arguments, checks_losses=True)
        self._primary.witness.session_begun(session, token)
        return session

    def begin_objects(self, session: int) -> Sequence[int]:
        """Begin to keep records in the object store, and return the nodes that lack it."""
        return self._primary.value(list, "SELECT barnabas.begin_objects(%s)", session)

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """Extend the session's lease to ``lease_ms`` from now."""
        statement = "SELECT barnabas.heartbeat(%s, %s::integer)"
        return self._primary.value(bool, statement, session, lease_ms, checks_losses=True)

    def report_objects(
        self, session: int, *, failing_ms: int | None, stored_ms: int | None, within_ms: int
    ) -> Sequence[int]:
        """Report a broker's puts into the object store; return the nodes where they succeed."""
        statement = "SELECT barnabas.report_objects(%s, %s::bigint, %s::bigint, %s::bigint)"
        return self._primary.value(list, statement, session, failing_ms, stored_ms, within_ms)

    def yield_to(self, session: int, nodes: Sequence[int], within_ms: int) -> bool:
        """End a session if one of ``nodes`` stores objects; return whether it has ended."""
        statement = "SELECT barnabas.yield_to(%s, %s::integer[], %s::bigint)"
        return self._primary.value(bool, statement, session, list(nodes), within_ms)

    def fence_expired(self) -> frozenset[int]:
        """End the sessions whose lease has expired."""
        return frozenset(self._primary.value(list, "SELECT barnabas.fence_expired()"))

    def fence(self, session: int) -> None:
        """End a session."""
        self._primary.execute("SELECT barnabas.fence(%s)", (session,))

    def drain(self, session: int) -> None:
        """Stop the assignment of partitions to a session."""
        self._primary.execute("SELECT barnabas.drain(%s)", (session,))

    def control(self, session: int) -> bool:
        """Return whether a live session is the controller."""
        return self._primary.value(bool, "SELECT barnabas.control(%s)", session)

    def snapshot(self, since: int) -> ClusterSnapshot:
        """Return the present state of the cluster."""
        (row,) = self._primary.execute(_PICTURE, (since,))
        return self._seen(since, row)

    def poll(self, since: int, session: int, *, most_logs: int, most: int, most_bytes: int) -> Poll:
        """Return the state of the cluster, with the starts of newly led logs.

        If a log is damaged, or the server is too slow to read the logs in time, the state comes
        without logs.
        """

        def in_time(silences: int) -> Sequence[object]:
            return since, since, session, 0 if silences else most_logs, most, most_bytes

        try:
            seen, *gained = self._primary.execute(_LOOK, in_time, does_without=True, binary=True)
        except StoreDamaged:
            return Poll(self.snapshot(since), ())
        return Poll(
            self._seen(since, seen[:_SEEN_COLUMNS]),
            beginnings_of(each[_SEEN_COLUMNS:] for each in gained),
        )

    def _seen(self, since: int, row: Row) -> ClusterSnapshot:
        """Return the picture in its row, which is confirmed."""
        version, metadata_version, controller, *columns = row
        if version > since:
            self._primary.witness.picture_seen(version)
        members, led, gone, fenced = columns[:4], columns[4:9], columns[9], columns[10:13]
        return ClusterSnapshot(
            version,
            metadata_version,
            controller,
            [Member(*row) for row in zip(*(column or () for column in members), strict=True)],
            [Led(*row) for row in zip(*(column or () for column in led), strict=True)],
            gone or [],
            [
                Member(session, node_id, endpoints, is_draining=False)
                for session, node_id, endpoints in zip(
                    *(column or () for column in fenced), strict=True
                )
            ],
            columns[13] or [],
        )

    def wait(self, since: int, timeout_s: float) -> None:
        """Return after a notification of a newer version, or on timeout."""
        # The lost connection may have been to a primary: threads that wait for its response leave
        # it.
        if self._primary.attempts_failed != self._failed_when_listening:
            self._failed_when_listening = self._primary.attempts_failed
            self._listener.disconnect()
        self._listener.await_news(
            _CHANNEL, timeout_s, lambda said: not said.isdigit() or int(said) > since
        )

    def assign(self, assignments: Sequence[Assignment]) -> frozenset[int]:
        """Make live sessions the leaders of partitions."""
        columns = [list(column) for column in zip(*assignments, strict=True)] or [[]] * 3
        statement = "SELECT barnabas.assign(%s::bigint[], %s::bigint[], %s::integer[])"
        return frozenset(self._primary.value(list, statement, *columns))

    def hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        """Release partitions."""
        columns = [list(column) for column in zip(*partitions, strict=True)] or [[]] * 3
        statement = "SELECT barnabas.hand_over(%s, %s::bigint[], %s::integer[], %s::bigint[])"
        self._primary.execute(statement, (session, *columns))

    def want(self, wishes: Mapping[int, int | None]) -> None:
        """Set the next leaders of partitions."""
        self._want(wishes, pins=False)

    def pin(self, pins: Mapping[int, int | None]) -> None:
        """Set the preferred leaders of partitions, effective whenever those are available."""
        self._want(pins, pins=True)

    def _want(self, nodes: Mapping[int, int | None], *, pins: bool) -> None:
        statement = "SELECT barnabas.want(%s::bigint[], %s::integer[], %s)"
        self._primary.execute(statement, (list(nodes), list(nodes.values()), pins))

    def close(self) -> None:
        """End every wait, on any thread."""
        self._primary.close()
        self._listener.close()
