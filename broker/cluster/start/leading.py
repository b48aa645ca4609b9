"""Service of a cluster member: leading, hand-overs and metadata, as its view requires.

Each change of the view or the metadata is passed to all parts; each finds its own changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.cluster.leading.leadership import Leadership
    from barnabas.broker.cluster.membership.handovers import HandOvers
    from barnabas.broker.cluster.peers.interface import Peers
    from barnabas.broker.cluster.start.metadata_follower import MetadataFollower
    from barnabas.broker.cluster.view import ClusterView


class Service:
    """Service of one broker, from opening its logs until it starts to stop; on the event loop."""

    def __init__(
        self,
        view: ClusterView,
        peers: Peers,
        leadership: Leadership,
        hand_overs: HandOvers,
        follower: MetadataFollower,
        on_event: Callable[[str, str], object],
        on_brokers_changed: Callable[[], object],
        session_of: Callable[[int], int | None],
    ) -> None:
        """``on_event`` and ``on_brokers_changed``: see ``Newcomer``.

        ``session_of`` returns a node's session in the view, or None.
        """
        self._view = view
        self._session_of = session_of
        self._peers = peers
        self.leadership = leadership
        self._hand_overs = hand_overs
        self.follower = follower
        self._on_event = on_event
        self._on_brokers_changed = on_brokers_changed
        on_brokers_changed()
        self._nodes = self._nodes_now()
        self._is_stopped = False
        leadership.on_taking_over = self._taking_over

    def changed(self) -> None:
        """Apply a change of the view or of the metadata."""
        if not self._is_stopped:
            self._compare_nodes()
            self.leadership.follow_view()
            self._hand_overs.release_next()
            self.follower.follow_next()

    @property
    def led_count(self) -> int:
        """Return the number of partitions led here; a partition in a hand-over may count twice."""
        return self.leadership.led_count + self._hand_overs.unfinished

    def stop(self) -> None:
        """Stop applying changes."""
        self._is_stopped = True
        self._hand_overs.stop()

    def _compare_nodes(self) -> None:
        before, now, own_id = self._nodes, self._nodes_now(), self._view.node_id
        if now != before:
            self._on_brokers_changed()
        for node_id in sorted(now.keys() - before.keys() - {own_id}):
            self._on_event("broker_came", f"node {node_id} is in service")
        for node_id, session in sorted(before.items()):
            if node_id not in now:
                self._peers.forget(node_id)
                if node_id != own_id:
                    self._on_event("broker_gone", f"node {node_id} is out of service")
            elif now[node_id] != session:
                # The node was started again. If it ended without closing its connections, pending
                # requests would wait for their timeout: for markers half a minute.
                self._peers.forget(node_id)
        self._nodes = now

    def _nodes_now(self) -> dict[int, int | None]:
        return {each.node_id: self._session_of(each.node_id) for each in self._view.nodes}

    def _taking_over(self, count: int) -> None:
        self._on_event("taking_over", f"{count} partitions are to be led here")
