"""Brokers that know of each other, in one process, and a script of who leads what."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.broker.client.security import security_of
from barnabas.broker.cluster.view import Leader, Node
from barnabas.broker.peers.client import PeerClient
from barnabas.broker.peers.connection import Network
from barnabas.broker.peers.interface import Limits
from barnabas.storage.metastore.interface import Identity, Outdated
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.runtime.threads import Lock
from barnabas.testing import Broker

CLUSTER_ID = "oKlTPFF2TkSvFtAbxy0nMg"
EPOCH = 700
"""Of a leader that a test makes up."""
FIRST_EPOCH = 1
"""Of every leader in ``pair``: these brokers have started once."""
LISTENER = "PLAINTEXT"
_SESSIONS = itertools.count(1)
"""Each life of a broker has one of its own."""


class ScriptedView:
    """The cluster as one broker sees it: whatever a test says."""

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
        """Say that another broker leads a partition now; logs stay where they are."""
        self.leaders[partition_id] = node_id
        self.version += 1

    def in_service(self, *nodes: Node) -> None:
        """Say which brokers there are."""
        self.nodes = list(nodes)
        self.version += 1


class SharedMetaStore:
    """A store as one of several brokers has it, each in a thread and under a node id of its own."""

    def __init__(self, store: SqliteMetaStore, node_id: int, lock: Lock) -> None:
        self.identity = Identity(store.identity.cluster_id, node_id)
        self._store = store
        self._lock = lock

    def __getattr__(self, name: str) -> Any:
        with self._lock:
            attribute = getattr(self._store, name)
        if not callable(attribute):
            return attribute

        def locked(*arguments: Any) -> Any:
            with self._lock:
                return attribute(*arguments)

        return locked

    def based_on(self, version: int, change: Callable[[], Any]) -> Any:
        with self._lock:
            if self._store.version > version:
                raise Outdated
            return change()

    def close(self) -> None:
        """Leave it open for the others."""


def has_loaded(broker: Broker) -> bool:
    """Whether a broker knows whom it coordinates: it reads that once it serves the partitions."""

    def is_so() -> bool:
        coordinators = (broker.server.groups, broker.server.transactions)
        return all(each.log.replayed.is_set() for each in coordinators)

    return broker.call(is_so)


class BrokerWithView(Broker):
    """A broker that goes by a view, and finds its topics in the MetaStore when it starts."""

    def __init__(
        self,
        view: ScriptedView,
        topics: dict[str, int],
        metastore: SharedMetaStore | None = None,
        **config: str,
    ) -> None:
        super().__init__(config={"node.id": str(view.node_id), **config})
        self.view = view
        self._metastore = metastore or SqliteMetaStore.open(
            MEMORY, node_id=view.node_id, new_cluster_id=CLUSTER_ID
        )
        for number, (name, partitions) in enumerate(topics.items(), start=1):
            self._metastore.create_topic(name, topic_id(number), partitions, {})

    def _new_server(self, view=None, peers=None, durable_logs=None):
        server = super()._new_server(view or self.view, peers or self._peers_of, durable_logs)
        self.view.own_epoch = lambda: server.logs.leader_epoch
        return server

    def _peers_of(self, server):
        """Ask the others at the listener that clients find them at."""

        def address_of(node_id: int) -> tuple[str, int] | None:
            found = {node.node_id: node.endpoints for node in self.view.nodes}
            return found.get(node_id, {}).get(LISTENER)

        limits = Limits()
        return PeerClient(
            node_id=self.view.node_id,
            session=next(_SESSIONS),
            address_of=address_of,
            transport=Network(lambda: security_of({}, {}), limits),
            clock=server.clock,
            limits=limits,
        )

    def follow(self) -> None:
        """Show what the MetaStore holds now."""

        async def follow() -> None:
            await self.server.catalogue.changes.follow(self.server.metastore.load())

        self.do(follow)

    def do(self, work):
        """Await something on the broker's loop; return its result."""
        return self._do(work()).result

    def log(self, topic: str, index: int):
        """The log of a partition, None where another broker leads it."""
        return self.server.catalogue.partition(topic, index).log


def topic_id(number: int) -> bytes:
    return bytes([number] * 16)


def node(node_id: int, *endpoints: tuple[str, str, int], rack: str | None = None) -> Node:
    """One broker, and its listeners with their addresses."""
    return Node(node_id, rack, {name: (host, port) for name, host, port in endpoints})


@contextlib.contextmanager
def pair(topics: dict[str, int], **config: str) -> Iterator[tuple[BrokerWithView, BrokerWithView]]:
    """Two brokers: 1 leads the partitions with an even number, 2 the others."""
    numbers = [index for count in topics.values() for index in range(count)]
    leaders = {each: 1 + number % 2 for each, number in enumerate(numbers, start=1)}
    brokers = []
    with contextlib.ExitStack() as stack:
        for node_id in (1, 2):
            view = ScriptedView(node_id, [node(node_id)], leaders, FIRST_EPOCH)
            brokers.append(stack.enter_context(BrokerWithView(view, topics, **config)))
        nodes = [node(each.view.node_id, (LISTENER, *each.address)) for each in brokers]
        for broker in brokers:
            broker.call(lambda view=broker.view: view.in_service(*nodes))
        yield brokers[0], brokers[1]
