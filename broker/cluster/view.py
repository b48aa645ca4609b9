"""What a broker knows of the cluster: its brokers, who leads each partition, and since which epoch.

The leader of a partition of ``__consumer_offsets`` or ``__transaction_state`` is the coordinator of
the keys that fall to it, and its leader epoch is the coordinator epoch in the markers (D6).

A view may be out of date, and is never what protects data: what a broker that leads a partition no
more appends is refused by the store, whatever its view says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from barnabas.broker.config.features import FEATURES, Ranges

NO_NODE: Final = -1
"""In the place of a node id: no broker."""


class Node(NamedTuple):
    """One broker that is in service."""

    node_id: int
    rack: str | None
    endpoints: Mapping[str, tuple[str, int]]
    """Where clients find it: host and port by the name of the listener that they have come by."""
    features: Ranges = MappingProxyType({})
    """The levels of features that it supports."""


class Leader(NamedTuple):
    """Who leads a partition."""

    node_id: int
    """NO_NODE where nobody does."""
    epoch: int
    """Of the newest leadership, be it in service or not."""


class ClusterView(Protocol):
    """The cluster as one of its brokers sees it. All of it is read on the loop."""

    @property
    def node_id(self) -> int:
        """Return this broker's id."""

    @property
    def controller_id(self) -> int:
        """Return the id of the broker that clients send changes to; NO_NODE: not known now."""

    @property
    def version(self) -> int:
        """Return another number whenever a broker or a leader is another one."""

    @property
    def nodes(self) -> Sequence[Node]:
        """Return the brokers in service by id, this one among them, be it so or not."""

    @property
    def fenced(self) -> Sequence[Node]:
        """Return the brokers that are out of service, by id: a limited number, for about a week."""

    @property
    def live_count(self) -> int:
        """Return how many brokers have a lease, as far as is known; this one while it has."""

    def leader_of(self, partition_id: int) -> Leader:
        """Return who leads a partition that exists."""

    def changed_since(self, version: int) -> Collection[int] | None:
        """Return the partitions whose leader may be another one than in a version; None: all."""


class OneBroker:
    """The view of a broker that is alone: it leads everything, in the epoch of its start."""

    def __init__(self, node_id: int, rack: str | None, epoch: Callable[[], int]) -> None:
        """``epoch`` is asked once the logs are open: it is greater than every epoch in them."""
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
        """Return nothing: it is asked once only."""
        del version
