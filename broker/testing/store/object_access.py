"""Reports of brokers about the object store, and sessions that yield because of them.

The functions of ``storage/postgresql/migrations/0021_object_access.sql`` do the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from barnabas.broker.testing.store.log_upkeep import LogUpkeep


class ObjectAccess(LogUpkeep):
    """The part of ``MemoryIndex`` that notes where the object store fails."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` returns the time of leases and reports, in seconds."""
        super().__init__(clock)
        self._version = 0
        """Version of the snapshot."""

    def report_objects(
        self, session: int, *, failing_ms: int | None, stored_ms: int | None, within_ms: int
    ) -> Sequence[int]:
        """See ``ClusterIndex``."""
        with self._changed:
            own = self._session(session)
            if not own.is_live:
                return []
            before, own.has_failing_objects = own.has_failing_objects, failing_ms is not None
            age_s = math.inf if stored_ms is None else stored_ms / 1000
            own.stored_s = self._clock() - age_s
            if own.has_failing_objects != before:
                self._raise_version()
            return self._storing_nodes(session, within_ms)

    def yield_to(self, session: int, nodes: Sequence[int], within_ms: int) -> bool:
        """See ``ClusterIndex``."""
        with self._changed:
            own = self._session(session)
            if own.is_live and {*nodes}.intersection(self._storing_nodes(session, within_ms)):
                own.is_live = False
                self._raise_version()
            return not own.is_live

    def _storing_nodes(self, session: int, within_ms: int) -> list[int]:
        own, since_s = self._session(session), self._clock() - within_ms / 1000
        return sorted(
            each.node_id
            for each in self._sessions.values()
            if each is not own
            and each.takes_partitions
            and own.object_store is not None
            and each.object_store == own.object_store
            and not each.has_failing_objects
            and each.stored_s > since_s
        )

    def _failing_sessions(self) -> list[int]:
        return [
            number
            for number, each in self._sessions.items()
            if each.is_live and each.has_failing_objects
        ]

    def _raise_version(self) -> None:
        self._version += 1
        self._changed.notify_all()
