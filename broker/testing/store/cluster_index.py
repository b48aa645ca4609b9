"""Connection of one broker to the members and leaders, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.broker.testing.store.unreliable_calls import Link, Way
from barnabas.storage.errors import IndexClosed

if TYPE_CHECKING:
    from barnabas.broker.testing.store.index import MemoryIndex
    from barnabas.storage.replicated.cluster_index import (
        Assignment,
        ClusterSnapshot,
        HandOver,
        Poll,
    )


class MemoryClusterIndex(Way):
    """``ClusterIndex`` in memory: the calls of one broker, each repeated until it gets a result."""

    def __init__(self, index: MemoryIndex, link: Link | None = None) -> None:
        """``link``: see ``Way``."""
        super().__init__(link)
        self._index = index

    def new_node_id(self) -> int:
        """See ``ClusterIndex``."""
        return self._ask(self._index.new_node_id)

    def register(
        self,
        token: UUID,
        node_id: int,
        endpoints: str,
        lease_ms: int,
        object_store: str | None = None,
    ) -> int:
        """See ``ClusterIndex``."""
        return self._ask(self._index.register, token, node_id, endpoints, lease_ms, object_store)

    def begin_objects(self, session: int) -> Sequence[int]:
        """See ``ClusterIndex``."""
        return self._ask(self._index.begin_objects, session)

    def heartbeat(self, session: int, lease_ms: int) -> bool:
        """See ``ClusterIndex``."""
        return self._ask(self._index.heartbeat, session, lease_ms)

    def report_objects(
        self, session: int, *, failing_ms: int | None, stored_ms: int | None, within_ms: int
    ) -> Sequence[int]:
        """See ``ClusterIndex``."""
        return self._ask(
            self._index.report_objects,
            session,
            failing_ms=failing_ms,
            stored_ms=stored_ms,
            within_ms=within_ms,
        )

    def yield_to(self, session: int, nodes: Sequence[int], within_ms: int) -> bool:
        """See ``ClusterIndex``."""
        return self._ask(self._index.yield_to, session, nodes, within_ms)

    def fence_expired(self) -> frozenset[int]:
        """See ``ClusterIndex``."""
        return self._ask(self._index.fence_expired)

    def fence(self, session: int) -> None:
        """See ``ClusterIndex``."""
        self._ask(self._index.fence, session)

    def drain(self, session: int) -> None:
        """See ``ClusterIndex``."""
        self._ask(self._index.drain, session)

    def control(self, session: int) -> bool:
        """See ``ClusterIndex``."""
        return self._ask(self._index.control, session)

    def snapshot(self, since: int) -> ClusterSnapshot:
        """See ``ClusterIndex``."""
        return self._ask(self._index.snapshot, since)

    def poll(self, since: int, session: int, *, most_logs: int, most: int, most_bytes: int) -> Poll:
        """See ``ClusterIndex``."""
        return self._ask(
            self._index.poll,
            since,
            session,
            most_logs=most_logs,
            most=most,
            most_bytes=most_bytes,
        )

    def wait(self, since: int, timeout_s: float) -> None:
        """Wait for a change; see ``ClusterIndex``. A cut connection notices none."""
        with self._link.changed:
            is_cut = self._link.is_cut
            if is_cut:
                self._link.changed.wait_for(
                    lambda: self.is_closed or not self._link.is_cut, timeout_s
                )
        if not is_cut:
            self._index.wait(since, timeout_s, lambda: self.is_closed)
        if self.is_closed:
            raise IndexClosed

    def assign(self, assignments: Sequence[Assignment]) -> frozenset[int]:
        """See ``ClusterIndex``."""
        return self._ask(self._index.assign, assignments)

    def hand_over(self, session: int, partitions: Sequence[HandOver]) -> None:
        """See ``ClusterIndex``."""
        self._ask(self._index.hand_over, session, partitions)

    def want(self, wishes: Mapping[int, int | None]) -> None:
        """See ``ClusterIndex``."""
        self._ask(self._index.want, wishes)

    def pin(self, pins: Mapping[int, int | None]) -> None:
        """See ``ClusterIndex``."""
        self._ask(self._index.want, pins, pins=True)

    def close(self) -> None:
        """See ``ClusterIndex``."""
        super().close()
        self._index.wake()
