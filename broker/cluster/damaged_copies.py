"""Replica lists of partitions, as reported to clients.

All brokers share one store with the records, and any broker can lead any partition. Clients and
tools still expect a list of replicas that includes the leader and has the length of the topic's
replication factor. This module computes such a list, the same at each broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from barnabas.broker.cluster.view import NO_NODE, ClusterView


def copies(
    partition_id: int,
    leader_id: int,
    node_ids: Iterable[int],
    replication_factor: int,
    fenced: Iterable[int] = (),
) -> list[int]:
    """Return the brokers said to have copies: the leader first, if there is one, then others.

    ``node_ids`` are the brokers in service, which come before the ``fenced`` ones: these fill
    the list up where a topic has a larger replication factor than there are brokers in service. The
    others are in an order of the partition's own, in which a broker that comes or goes changes no
    places but its own.
    """
    first = [] if leader_id == NO_NODE else [leader_id]
    count = max(replication_factor, 1) - len(first)
    if not count:
        return first

    def place(node_id: int) -> tuple[int, int]:
        return crc32(b"%d %d" % (partition_id, node_id)), node_id

    others = sorted((each for each in node_ids if each != leader_id), key=place)[:count]
    if len(others) < count:
        absent = sorted((each for each in fenced if each != leader_id), key=place)
        others = sorted([*others, *absent[: count - len(others)]], key=place)
    return first + others


class Copies:
    """The brokers that are reported to have copies of any partition, according to the present
    view.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self.in_service = frozenset(node.node_id for node in view.nodes)
        """Node IDs of the brokers in service."""
        self._fenced = [node.node_id for node in view.fenced]

    def of(
        self, partition_id: int, replication_factor: int, leader_id: int | None = None
    ) -> list[int]:
        """Return the replicas of a partition, its leader first.

        ``leader_id``: another leader than the current one, or ``None`` for the current one.
        """
        if leader_id is None:
            leader_id = self._view.leader_of(partition_id).node_id
        return copies(partition_id, leader_id, self.in_service, replication_factor, self._fenced)
