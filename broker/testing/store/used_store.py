"""The object store that records of the index in memory are in.

The functions of ``storage/postgresql/migrations/0015_object_store.sql`` do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from barnabas.broker.testing.store.rows import SessionRow
from barnabas.storage.errors import StoreUnusable


class UsedStore:
    """Object store in use, if any; the caller lets one call in at a time."""

    def __init__(self) -> None:
        """Create the state without a store."""
        self._address: str | None = None

    def lacks(self, own_store: str | None) -> bool:
        """Return whether a broker with a store, or without one, lacks the one in use."""
        return self._address is not None and self._address != own_store

    def replace(
        self,
        node_id: int,
        own_store: str | None,
        sessions: Iterable[SessionRow],
        has_objects: Callable[[], bool],
    ) -> None:
        """Replace the store by that of a node, which may be none; see ``ClusterIndex.register``.

        Raises StoreUnusable if a session or a record needs the one in use.
        """
        used = self._address
        has_others = any(
            each.is_live and each.node_id != node_id and each.object_store == used
            for each in sessions
        )
        if has_others:
            raise StoreUnusable(
                f"the brokers of the cluster keep records in the object store {used}, and "
                f"barnabas.storage of broker {node_id} is {own_store or 'not set'}: set it to the "
                "value that the other brokers have"
            )
        if own_store is None and has_objects():
            raise StoreUnusable(
                f"records of the cluster are in the object store {used}, and barnabas.storage of "
                f"broker {node_id} is not set: set it. A cluster leaves its object store by "
                "'barnabas cluster export' and 'barnabas cluster import' into another database"
            )
        self._address = own_store

    def begin(self, session: SessionRow, sessions: Iterable[SessionRow]) -> list[int]:
        """Begin the use of a session's store; return the nodes that lack it."""
        own_store = session.object_store if session.is_live else None
        live = [each for each in sessions if each.is_live]
        lacking = sorted(each.node_id for each in live if each.object_store != own_store)
        if own_store is not None and not lacking:
            self._address = own_store
        return lacking
