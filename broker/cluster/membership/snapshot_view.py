"""View of the cluster as its newest snapshot shows it."""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from barnabas.broker.cluster.endpoints import UnreadableEndpoints, decode_place
from barnabas.broker.cluster.membership.assigner import Rules
from barnabas.broker.cluster.view import NO_NODE, Leader, Node
from barnabas.storage.replicated.cluster_index import ClusterSnapshot, Led, Member

logger = logging.getLogger("barnabas.broker.cluster")

_NOT_KNOWN = Leader(NO_NODE, -1)
CHANGES_KEPT: Final = 64
"""Number of view versions whose changes are kept."""


class Unseen:
    """Changes of all snapshots that the view has not applied yet."""

    def __init__(self) -> None:
        """Start without changes."""
        self.is_whole = False
        """Whether it has all partitions, which replace those known before."""
        self.led: dict[int, Led] = {}
        self.gone: set[int] = set()
        self.newest: ClusterSnapshot | None = None
        """Newest snapshot, for everything except the partitions; or None."""

    def add(self, snapshot: ClusterSnapshot, *, is_whole: bool) -> None:
        """Add a newer snapshot, with all partitions or only the changed ones."""
        if is_whole:
            self.is_whole = True
            self.led.clear()
            self.gone.clear()
        for partition_id in snapshot.gone:
            self.led.pop(partition_id, None)
        self.gone.update(snapshot.gone)
        self.led.update((each.partition_id, each) for each in snapshot.led)
        self.newest = snapshot

    def update(self, known: dict[int, Led]) -> None:
        """Apply the changes to the known partitions."""
        if self.is_whole:
            known.clear()
        for partition_id in self.gone:
            known.pop(partition_id, None)
        known.update(self.led)


class SnapshotView:
    """``ClusterView`` of the newest snapshot, read and updated on the event loop.

    This broker is among the nodes even after its session has ended, since it still responds. A
    client that gets an empty list of brokers drops all brokers it knows. librdkafka (2.10 to 2.16
    at least) then sends no more requests.
    """

    def __init__(self, own: Node, has_lease: Callable[[], bool]) -> None:
        """Start with ``own``, this broker as it registers, as the only node.

        ``has_lease``: whether this broker's lease excludes a takeover by another one.
        """
        self.node_id = own.node_id
        self._own = own
        self._has_lease = has_lease
        self.controller_id = NO_NODE
        self.version = 0
        self.picture_version = 0
        """Version of the newest snapshot applied."""
        self.metadata_version = 0
        """Version of the metadata; see ``ClusterSnapshot``."""
        self.nodes: Sequence[Node] = (own,)
        self.fenced: Sequence[Node] = ()
        self.failing: frozenset[int] = frozenset()
        """Sessions whose brokers report that the object store fails."""
        self._led: dict[int, Led] = {}
        self._wished: set[int] = set()
        """Partitions with a wanted node."""
        self._members: dict[int, Member] = {}
        """Members by session; only those with readable endpoints."""
        self._sessions: dict[int, int] = {}
        """Sessions by node ID."""
        self._rules = Rules()
        self._cordoned: frozenset[int] = frozenset()
        """Nodes that their own configuration cordons."""
        self._takers: frozenset[int] = frozenset()
        """Nodes that receive partitions."""
        self._unreadable: set[int] = set()
        """Sessions that the log reports as unreadable."""
        self._changes: deque[Collection[int] | None] = deque(maxlen=CHANGES_KEPT)
        """Changed partitions of each of the newest versions, or None if all can have changed."""

    @property
    def live_count(self) -> int:
        """Return the number of brokers with a lease in the newest snapshot. This broker counts only
        while its lease is valid.
        """
        is_over = self.node_id in self._sessions and not self._has_lease()
        return len(self._sessions) - is_over

    def leader_of(self, partition_id: int) -> Leader:
        """Return the leader of a partition; NO_NODE and epoch -1 if the partition is not known."""
        led = self._led.get(partition_id)
        if led is None:
            return _NOT_KNOWN
        member = None if led.session is None else self._members.get(led.session)
        return Leader(NO_NODE if member is None else member.node_id, led.epoch)

    def changed_since(self, version: int) -> Collection[int] | None:
        """Return the partitions that changed since a version; see ``ClusterView``."""
        found: set[int] = set()
        count = self.version - version
        if count > len(self._changes):
            return None
        for changed in [*self._changes][len(self._changes) - count :]:
            if changed is None:
                return None
            found.update(changed)
        return found

    def led_by(self, session: int) -> Sequence[int]:
        """Return the partitions that a session leads, by a scan of all partitions."""
        return [each.partition_id for each in self._led.values() if each.session == session]

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that must lead a partition, or None if no node is wanted."""
        led = self._led.get(partition_id)
        return None if led is None else led.wanted_node

    def pinned(self, partition_id: int) -> int | None:
        """Return the node that a partition is pinned to, or None."""
        led = self._led.get(partition_id)
        return None if led is None else led.pinned_node

    def wanted_elsewhere(self, session: int) -> Sequence[int]:
        """Return the partitions that a session of this broker leads and another node must lead.

        Only nodes that take partitions count: otherwise a released partition would have no leader.
        """
        found = []
        for partition_id in sorted(self._wished):
            led = self._led[partition_id]
            if led.session == session and led.wanted_node not in {None, self.node_id}:
                assert led.wanted_node is not None
                if self.takes_partitions(led.wanted_node):
                    found.append(partition_id)
        return found

    def session_of(self, node_id: int) -> int | None:
        """Return the session of a node, or None if it is not in service."""
        return self._sessions.get(node_id)

    def takes_partitions(self, node_id: int) -> bool:
        """Whether a node takes partitions: in service, not draining and not cordoned.

        As in plans, cordoning has no effect if all nodes are cordoned.
        """
        return node_id in self._takers

    def could_lead(self, node_id: int) -> bool:
        """Whether a node could take partitions if no other node did."""
        session = self._sessions.get(node_id)
        return session is not None and not self._members[session].is_draining

    def plan_by(self, rules: Rules) -> None:
        """Apply the cordons of the cluster's settings."""
        self._rules = rules
        self._find_takers()

    def _find_takers(self) -> None:
        cordoned = self._rules.all_cordoned(self._cordoned)
        could_lead = frozenset(filter(self.could_lead, self._sessions))
        self._takers = could_lead - cordoned or could_lead

    def apply(self, unseen: Unseen) -> bool:
        """Apply the changes of snapshots; return whether the view has changed."""
        snapshot = unseen.newest
        assert snapshot is not None
        is_changed = (
            snapshot.version != self.picture_version
            or snapshot.metadata_version != self.metadata_version
            or unseen.is_whole
        )
        if not is_changed:
            return False
        unseen.update(self._led)
        if unseen.is_whole:
            self._wished = {each for each, led in self._led.items() if led.wanted_node is not None}
        else:
            for partition_id in unseen.gone | unseen.led.keys():
                if self.wanted(partition_id) is None:
                    self._wished.discard(partition_id)
                else:
                    self._wished.add(partition_id)
        nodes_before = self._sessions
        self._show_members(snapshot.members)
        self._show_fenced(snapshot.fenced)
        self.failing = frozenset(snapshot.failing)
        # Leaders are stored by session and shown by node, so a new or ended session can change any.
        is_same = not unseen.is_whole and self._sessions == nodes_before
        self._changes.append(unseen.gone | unseen.led.keys() if is_same else None)
        controller = None
        if snapshot.controller is not None:
            controller = self._members.get(snapshot.controller)
        self.controller_id = NO_NODE if controller is None else controller.node_id
        self.picture_version = snapshot.version
        self.metadata_version = snapshot.metadata_version
        self.version += 1
        return True

    def _show_members(self, members: Iterable[Member]) -> None:
        nodes = []
        readable = {}
        cordoned = set()
        for member in members:
            try:
                place = decode_place(member.endpoints)
            except UnreadableEndpoints as error:
                self._log_unreadable(member, error)
                continue
            nodes.append(Node(member.node_id, place.rack, place.endpoints, place.features))
            readable[member.session] = member
            if place.is_cordoned:
                cordoned.add(member.node_id)
        if all(node.node_id != self.node_id for node in nodes):
            nodes.append(self._own)
        self.nodes = sorted(nodes, key=lambda node: node.node_id)
        self._members = readable
        self._sessions = {member.node_id: session for session, member in readable.items()}
        self._unreadable &= {member.session for member in members}
        self._cordoned = frozenset(cordoned)
        self._find_takers()

    def _show_fenced(self, members: Iterable[Member]) -> None:
        in_service = {node.node_id for node in self.nodes}
        fenced = []
        for member in members:
            if member.node_id in in_service:
                continue  # This broker, after its session has ended.
            with contextlib.suppress(UnreadableEndpoints):  # Logged while it was in service.
                place = decode_place(member.endpoints)
                fenced.append(Node(member.node_id, place.rack, place.endpoints, place.features))
        self.fenced = fenced

    def _log_unreadable(self, member: Member, error: UnreadableEndpoints) -> None:
        if member.session not in self._unreadable:
            self._unreadable.add(member.session)
            logger.error(
                "broker ignored, its registration is unreadable node=%d: %s",
                member.node_id,
                error,
            )
