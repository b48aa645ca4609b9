"""Which partitions are to be led by another broker than now, and saying so.

A wish is kept in the cluster's store. It is met by the partition's leader, which lets go of it, or
by whoever gives a partition a leader that has none; it is gone then. A pin stays: it is a wish that
is made again whenever the broker is back.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol


class Pinning(IntEnum):
    """What a reassignment means for later, in a tag of ours that Kafka's clients do not send."""

    SET = 0
    """The partition is pinned to its first replica, which is Kafka's preferred leader."""
    LEFT = 1
    """It is only to be led by the first replica next."""
    ENDED = 2
    """It is not pinned any more, whatever the replicas say."""


class Moves(Protocol):
    """The wishes of a cluster, as handlers read and make them on the loop."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that is to lead a partition and does not yet; None: there is no wish."""

    def pinned(self, partition_id: int) -> int | None:
        """Return the node that is to lead a partition whenever it can; None: whichever."""

    def takes_partitions(self, node_id: int) -> bool:
        """Return whether a node is given partitions: it neither drains nor is it cordoned."""

    async def want(self, wishes: Mapping[int, int | None]) -> None:
        """Wish for leaders, by partition id; None takes a wish back.

        When this returns the wishes are durable, and ``wanted`` tells of them. It waits for a store
        that is away for as long as it takes; whoever gives up waiting does not know what came of
        it.
        """

    async def pin(self, pins: Mapping[int, int | None]) -> None:
        """Pin partitions to nodes, which are to lead them next as well; None: to none.

        That takes back a wish for another. Otherwise as ``want``.
        """
