"""View of a cluster: its brokers, and the leader and leader epoch of each partition.

The leader of a partition of ``__consumer_offsets`` or ``__transaction_state`` is the coordinator of
the partition's keys, and its leader epoch is the coordinator epoch in the markers (D6).

A view can be outdated. The store protects the data: if a broker appends to a partition that it does
not lead any more, the store refuses the append, regardless of that broker's view.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from barnabas.broker.config.features import FEATURES, Ranges

NO_NODE: Final = -1
"""Value in the place of a node ID: no broker."""


class Node(NamedTuple):
    """Broker in service."""

    node_id: int
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    """Host and port for clients, by the name of the listener that they connected to."""
    features: Ranges = MappingProxyType({})
    """Levels of the features that it supports."""


class Leader(NamedTuple):
    """Leader of a partition."""

    node_id: int
    """Node ID of the leader, or NO_NODE."""
    epoch: int
    """Epoch of the newest leadership, even if that leader is not in service."""


class ClusterView(Protocol):
    """Cluster as one of its brokers sees it; read on the event loop."""

    @property
    def node_id(self) -> int:
        """Return this broker's node ID."""

    @property
    def controller_id(self) -> int:
        """Return the node ID of the broker that receives clients' changes, or NO_NODE."""

    @property
    def version(self) -> int:
        """Return a number that changes with every change of a broker or a leader."""

    @property
    def nodes(self) -> Sequence[Node]:
        """Return the brokers in service by ID, including this one in any case."""

    @property
    def fenced(self) -> Sequence[Node]:
        """Return the brokers out of service by ID: a limited number, for about a week."""

    @property
    def live_count(self) -> int:
        """Return the known number of brokers with a lease. This broker counts only while its lease
        is valid.
        """

    def leader_of(self, partition_id: int) -> Leader:
        """Return the leader of an existing partition."""

    def changed_since(self, version: int) -> Collection[int] | None:
        """Return the partitions whose leader may have changed since a version, or None for all."""


class OneBroker:
    """View of a standalone broker: it leads everything, in the epoch of its start."""

    def __init__(self, node_id: int, rack: str | None, epoch: Callable[[], int]) -> None:
        """``epoch`` is called once the logs are open: its result exceeds every epoch in them."""
        self.node_id = node_id
        self.controller_id = node_id
        self.version = 0
        self.nodes = (Node(node_id, rack, {}, FEATURES),)
        self.fenced: Sequence[Node] = ()
        self.live_count = 1
        self._epoch = epoch

    def leader_of(self, partition_id: int) -> Leader:
        """Return this broker."""
        del partition_id
        return Leader(self.node_id, self._epoch())

    def changed_since(self, version: int) -> None:
        """Return None: callers start from all partitions and then see no changes."""
        del version
