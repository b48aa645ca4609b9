"""Use of the object store by one broker: not before all brokers of the cluster have it.

Rules of this file:

1. A broker that lacks the object store cannot lead a partition with records in it. So the index
   lets the use begin only while each live session has the same store, and then registers no other
   one (``ClusterIndex.begin_objects``, ``ClusterIndex.register``).
2. A session begins the use for itself: between two sessions of a broker the cluster may have ended
   it. Until then all records go into the index.
"""

from __future__ import annotations

from collections.abc import Sequence


class ObjectUse:
    """Whether this broker may put records into the object store; readable on any thread."""

    def __init__(self, address: str | None) -> None:
        """``address`` names the object store for the other brokers, or is None without one."""
        self.address = address
        self.lacking: tuple[int, ...] = ()
        """IDs of the nodes that lack the store, as of the last attempt to begin."""
        self._begun_in: int | None = None

    def note(self, session: int, lacking: Sequence[int]) -> bool:
        """Record an attempt of a session to begin the use; return whether its result is news."""
        before = self._begun_in is None, self.lacking
        self.lacking = tuple(lacking)
        self._begun_in = None if lacking else session
        return before != (self._begun_in is None, self.lacking)

    @property
    def waits_for(self) -> tuple[int, ...] | None:
        """Return the IDs of the nodes that lack the store, none once it is in use.

        None without a store, and before the first attempt to begin.
        """
        if self._begun_in is not None:
            return ()
        return self.lacking or None

    def may_put(self, session: int | None) -> bool:
        """Return whether a session may put records where new ones go, which may be the index."""
        return self.address is None or (session is not None and session == self._begun_in)
