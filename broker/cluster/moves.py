"""Which partitions are to be led by another broker than now, and saying so.

A wish is kept in the cluster's store. It is met by the partition's leader, which lets go of it, or
by whoever gives a partition a leader that has none; it is gone then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Moves(Protocol):
    """The wishes of a cluster, as handlers read and make them on the loop."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that is to lead a partition and does not yet; None: there is no wish."""

    async def want(self, wishes: Mapping[int, int | None]) -> None:
        """Wish for leaders, by partition id; None takes a wish back.

        When this returns the wishes are durable, and ``wanted`` tells of them. It waits for a store
        that is away for as long as it takes; whoever gives up waiting does not know what came of
        it.
        """
