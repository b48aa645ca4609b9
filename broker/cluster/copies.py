"""Which brokers are said to have copies of a partition.

Copies are the business of the store that all brokers share, and every broker can come to lead every
partition. Clients and tools expect a list of replicas all the same, with its leader in it, as long
as the topic's replication factor says: this makes one up, the same at each broker.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

from barnabas.broker.cluster.view import NO_NODE


def copies(
    partition_id: int, leader_id: int, node_ids: Iterable[int], replication_factor: int
) -> list[int]:
    """Return the brokers said to have copies: the leader first, then others in service.

    The others are in an order of the partition's own, in which a broker that comes or goes changes
    no places but its own. Without a leader (NO_NODE) nobody is said to have a copy.
    """
    if leader_id == NO_NODE:
        return []
    if replication_factor <= 1:
        return [leader_id]
    others = sorted(
        (each for each in node_ids if each != leader_id),
        key=lambda node_id: (crc32(b"%d %d" % (partition_id, node_id)), node_id),
    )
    return [leader_id, *others[: replication_factor - 1]]
