"""Requests for partitions to be led by another broker.

A wish is stored by the cluster. It ends when it is met: the partition's leader releases the
partition, or the planner assigns a partition that has no leader. A pin stays: it takes effect again
whenever its broker returns.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Protocol


class Pinning(IntEnum):
    """Pin that a reassignment requests, in a tag of Barnabas that Kafka's clients do not send."""

    SET = 0
    """Pin the partition to its first replica, which is Kafka's preferred leader."""
    LEFT = 1
    """Move the partition to its first replica, without a pin."""
    ENDED = 2
    """End the pin, regardless of the replicas."""


class Moves(Protocol):
    """Wishes of a cluster, read and written by handlers on the event loop."""

    def wanted(self, partition_id: int) -> int | None:
        """Return the node that must lead a partition and does not yet, or None."""

    def pinned(self, partition_id: int) -> int | None:
        """Return the node that a partition is pinned to, or None."""

    def takes_partitions(self, node_id: int) -> bool:
        """Whether a node takes partitions: it is neither draining nor cordoned."""

    async def want(self, wishes: Mapping[int, int | None]) -> None:
        """Write wishes for leaders, by partition ID; None withdraws a wish.

        On return the wishes are durable, and ``wanted`` shows them. The call waits without a
        timeout while the store is unavailable. A caller that stops waiting does not know whether
        the wishes were written.
        """

    async def pin(self, pins: Mapping[int, int | None]) -> None:
        """Pin partitions to nodes, or to none by None, and wish for them as leaders.

        A pin withdraws a wish for another node. Otherwise as ``want``.
        """
