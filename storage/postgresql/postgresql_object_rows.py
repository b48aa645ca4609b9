"""The ObjectRows in PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Self

from barnabas.storage.objects.object_rows import Moment, NamedExtent, NamedObject
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

    def close(self) -> None:
        """End every wait, on any thread."""
        self._primary.close()
