"""A broker whose view of the cluster is a script."""

from __future__ import annotations

from barnabas.broker.cluster.view import Leader, Node
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.testing import Broker

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
EPOCH = 700
"""The epoch of the leader that a test invents."""
LISTENER = "PLAINTEXT"


class ScriptedView:
    """The cluster as one broker sees it, set by a test."""

    controller_id = 1

    def __init__(
        self,
        node_id: int,
        nodes: list[Node],
        leaders: dict[int, int] | None = None,
        epoch: int = EPOCH,
    ) -> None:
        """``leaders``: node ids by partition id; this broker leads all others.

        ``epoch``: of the others.
        """
        self.node_id = node_id
        self.version = 1
        self.nodes = nodes
        self.leaders = dict(leaders or {})
        self.epoch = epoch
        self.own_epoch = lambda: epoch
        self.fenced: list[Node] = []

    @property
    def live_count(self) -> int:
        return len(self.nodes)

    def leader_of(self, partition_id: int) -> Leader:
        node_id = self.leaders.get(partition_id, self.node_id)
        return Leader(node_id, self.own_epoch() if node_id == self.node_id else self.epoch)

    def changed_since(self, _version: int) -> None:
        return None

    def led_by(self, partition_id: int, node_id: int) -> None:
        """Set the leader of a partition; logs stay where they are."""
        self.leaders[partition_id] = node_id
        self.version += 1

    def in_service(self, *nodes: Node) -> None:
        """Set the brokers of the cluster."""
        self.nodes = list(nodes)
        self.version += 1


class BrokerWithView(Broker):
    """A broker that follows a view, and finds its topics in the MetaStore when it starts."""

    def __init__(
        self,
        view: ScriptedView,
        topics: dict[str, int],
        **config: str,
    ) -> None:
        super().__init__(config={"node.id": str(view.node_id), **config})
        self.view = view
        self._metastore = SqliteMetaStore.open(
            MEMORY, node_id=view.node_id, new_cluster_id=CLUSTER_ID
        )
        for number, (name, partitions) in enumerate(topics.items(), start=1):
            self._metastore.create_topic(name, topic_id(number), partitions, {})

    def _new_server(self, view=None, peers=None, durable_logs=None):
        server = super()._new_server(view or self.view, peers, durable_logs)
        self.view.own_epoch = lambda: server.logs.leader_epoch
        return server

    def log(self, topic: str, index: int):
        """The log of a partition, None where another broker leads it."""
        return self.server.catalogue.partition(topic, index).log


def topic_id(number: int) -> bytes:
    return bytes([number] * 16)


def node(node_id: int, *endpoints: tuple[str, str, int], rack: str | None = None) -> Node:
    """One broker, and its listeners with their addresses."""
    return Node(node_id, rack, {name: (host, port) for name, host, port in endpoints})
