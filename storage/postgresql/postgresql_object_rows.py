"""The ObjectRows in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final, Self

from barnabas.storage.objects.object_rows import (
    Held,
    Moment,
    NamedExtent,
    NamedObject,
    Requests,
    Usage,
)
from barnabas.storage.postgresql.primary import Primary
from barnabas.storage.postgresql.schema import bring_up_to_date

_MOMENT: Final = """
WITH moment AS MATERIALIZED (
    SELECT coalesce(pg_sequence_last_value(
            pg_get_serial_sequence('barnabas.sessions', 'session_id')::regclass), 0),
        (SELECT version FROM barnabas.picture),
        (SELECT coalesce(json_object_agg(session_id || '/' || lane, next_flush), '{}')::text
            FROM barnabas.lanes)
)
SELECT moment.*, barnabas.confirm()::text FROM moment
"""
_RAISE_SESSIONS: Final = """
SELECT setval(sequence, greatest(%s::bigint, coalesce(pg_sequence_last_value(sequence), 1)))
    FROM CAST(pg_get_serial_sequence('barnabas.sessions', 'session_id') AS regclass) AS sequence
"""
_NAMED: Final = """
SELECT object_id, key, size_bytes FROM barnabas.objects
    WHERE object_id > %s AND key IS NOT NULL AND size_bytes IS NOT NULL ORDER BY object_id LIMIT %s
"""
_EXTENTS: Final = """
SELECT partition_id, base_offset, next_offset FROM barnabas.extents JOIN barnabas.objects
    USING (object_id) WHERE key = %s ORDER BY partition_id, base_offset
"""
_REQUESTS: Final = """
SELECT operation, sum(requests)::bigint, sum(size_bytes)::bigint,
    extract(epoch FROM clock_timestamp() - min(min(hour)) OVER ())::float8
    FROM barnabas.object_requests
    WHERE hour > clock_timestamp() - %s * interval '1 hour' GROUP BY operation ORDER BY operation
"""
_HELD: Final = """
SELECT kind, count(*), sum(size_bytes)::bigint FROM barnabas.objects
    WHERE size_bytes IS NOT NULL GROUP BY kind ORDER BY kind
"""
_SIZES: Final = """
SELECT (SELECT count(*) FROM barnabas.dereferenced_keys), count(*),
    coalesce(sum(octet_length(payload)), 0)::bigint, pg_database_size(current_database())
    FROM barnabas.objects WHERE payload IS NOT NULL
"""


class PostgreSqlObjectRows:
    """An ObjectRows on one connection."""

    def __init__(self, primary: Primary, warning: str | None) -> None:
        """Use a started connection."""
        self._primary = primary
        self.warning = warning
        """Warning for the operator about the server's durability, or None."""

    @classmethod
    def begin(cls, primary: Primary) -> Self:
        """Open on the caller's connection, which the caller closes after an error."""
        return cls(primary, primary.start(bring_up_to_date))

    def moment(self) -> Moment:
        """Return the present moment: what is read is replicated with the confirmation."""
        ((session, version, flushes, _),) = self._primary.execute(_MOMENT)
        return Moment(session, version, json.loads(flushes))

    def raise_sessions(self, session: int) -> None:
        """Raise the ID of the next session above ``session``."""
        self._primary.execute(_RAISE_SESSIONS, (session,))

    def named_objects(self, after_row: int, most: int) -> Sequence[NamedObject]:
        """Return objects in the order of their rows."""
        rows = self._primary.execute(_NAMED, (after_row, most))
        return [NamedObject(*row) for row in rows]

    def extents_in(self, key: str) -> Sequence[NamedExtent]:
        """Return the extents of an object."""
        return [NamedExtent(*row) for row in self._primary.execute(_EXTENTS, (key,))]

    def add_requests(self, requests: Mapping[str, Requests]) -> None:
        """Add requests of this hour."""
        counts = [each.calls for each in requests.values()]
        sizes = [each.size_bytes for each in requests.values()]
        statement = "SELECT barnabas.add_object_requests(%s, %s, %s)"
        self._primary.execute(statement, ([*requests], counts, sizes))

    def usage(self, hours: int) -> Usage:
        """Return the contents of the stores, and the requests of the last hours."""
        sent = self._primary.execute(_REQUESTS, (hours,))
        held = self._primary.execute(_HELD)
        ((waiting_keys, rows, row_bytes, index_bytes),) = self._primary.execute(_SIZES)
        return Usage(
            min(max((each[3] for each in sent), default=0.0), hours * 3600.0),
            {operation: Requests(count, size) for operation, count, size, _ in sent},
            {kind: Held(count, size) for kind, count, size in held},
            waiting_keys,
            Held(rows, row_bytes),
            index_bytes,
        )

    def close(self) -> None:
        """End every wait, on any thread."""
        self._primary.close()
