"""Three brokers on simulated disks that ask each other over the loopback; a restart is in place.

Each broker leads a share of the partitions, its disk is its own, and the MetaStore is everybody's:
what it has committed is durable. A broker that has crashed is started again on what its disk kept.
Their threads, links and clock move only when a test says so.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from barnabas.broker.cluster.view import Leader, Node
from barnabas.broker.coordination.key_hash import java_hash
from barnabas.broker.peers.interface import Peers
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.testing.loopback import LoopbackNetwork, Script
from barnabas.broker.topics.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.add_offsets_to_txn import ADD_OFFSETS_TO_TXN
from barnabas.protocol.messages.add_partitions_to_txn import ADD_PARTITIONS_TO_TXN
from barnabas.protocol.messages.end_txn import END_TXN
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from barnabas.storage.metastore.sqlite import SqliteMetaStore
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.simulated import SimulatedFileSystem
from tests.broker.several import SharedMetaStore
from tests.crash.pipeline_connection import PipelineConnection
from tests.crash.transaction_life import PARTITIONS, TOPIC, Life, new_metastore
from tests.history.logs import Place, TransactionHistory

NODES = (1, 2, 3)
TURNS = 8
"""Of the loop, for what asks over the loopback to get on."""
PATIENCE_MS = 20_000
"""How long a decided transaction may take to get to its end."""
ATTEMPTS = 60
"""How often a client sends a request again, before it gives up what it does."""
RETRIABLE = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
}


async def turns(number: int = TURNS) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


async def made_topics() -> tuple[SqliteMetaStore, dict[Place, int]]:
    """A MetaStore that has the topics, and the ids of their partitions."""
    store = new_metastore()
    life = Life(SimulatedFileSystem(), store, 0)
    life.open()
    await life.catalogue.create_topic(TOPIC, PARTITIONS[TOPIC], {})
    await life.groups.ensure()
    await life.transactions.ensure()
    life.settle()
    life.end()
    ids = {
        (name, partition.index): partition.partition_id
        for name, topic in life.catalogue.topics.items()
        for partition in topic.partitions
    }
    return store, ids


class LivesView:
    """The cluster as one broker knows it: of the others' epochs perhaps old ones."""

    controller_id = NODES[0]
    fenced = ()

    def __init__(self, node_id: int, leaders: dict[int, int], epochs: dict[int, int]) -> None:
        self.node_id = node_id
        self.version = 1
        self.nodes = [Node(each, None, {}) for each in NODES]
        self.live_count = len(NODES)
        self.own_epoch: Callable[[], int] = lambda: epochs.get(node_id, 0)
        self._leaders = leaders
        self._epochs = epochs
        self._known = dict(epochs)

    def refresh(self) -> None:
        """Learn what is true now."""
        if self._known != self._epochs:
            self._known = dict(self._epochs)
            self.version += 1

    def leader_of(self, partition_id: int) -> Leader:
        node_id = self._leaders[partition_id]
        own = node_id == self.node_id
        return Leader(node_id, self.own_epoch() if own else self._known.get(node_id, 0))

    def changed_since(self, _version: int) -> None:
        return None


class LifeOfSeveral(Life):
    """One run of one of the brokers."""

    def __init__(
        self,
        node_id: int,
        disk: SimulatedFileSystem,
        store: SqliteMetaStore,
        clock: ManualClock,
        view: LivesView,
        network: LoopbackNetwork,
        session: int,
    ) -> None:
        self.node_id = node_id
        self._network = network
        self._session = session
        self._view = view
        shared: Any = SharedMetaStore(store, node_id, threading.RLock())
        super().__init__(disk, shared, clock.now_ms(), clock=clock)
        view.own_epoch = lambda: self.logs.leader_epoch

    def _new_view(self) -> LivesView:
        return self._view

    def _make_peers(self) -> None:
        """Take part: others can ask, and are asked."""
        self.peers = self._network.join(self.node_id, session=self._session, routes=self.routes)

    def _spawn(self, coroutine: Any, name: str) -> None:
        del name
        self.start_request(coroutine)


class Brokers:
    """The brokers that there are, as their clients and a test use them."""

    def __init__(
        self,
        store: SqliteMetaStore,
        ids: dict[Place, int],
        leaders: dict[Place, int],
        disks: dict[int, SimulatedFileSystem],
        *,
        now_ms: int,
        seed: int,
    ) -> None:
        """``ids`` of partitions; ``leaders``: the broker that leads each."""
        self.store = store
        self.ids = ids
        self.leaders = leaders
        self.disks = disks
        self.clock = ManualClock(now_ms)
        self.network = LoopbackNetwork(self.clock, seed)
        self.lives: dict[int, LifeOfSeveral] = {}
        self.views: dict[int, LivesView] = {}
        self._epochs: dict[int, int] = {}
        self._sessions = count(1)
        self._random = Random(f"{seed} clients")
        self._connections: set[RoutedConnection] = set()
        self._closing: list[Peers] = []

    # -------------------------------------------------------------------------------- their lives

    def start(self, node_id: int, *, opened: bool = True) -> None:
        """Start a broker on its disk; ``opened``: with its coordinators."""
        by_id = {self.ids[place]: node for place, node in self.leaders.items()}
        view = self.views[node_id] = LivesView(node_id, by_id, self._epochs)
        life = LifeOfSeveral(
            node_id,
            self.disks[node_id],
            self.store,
            self.clock,
            view,
            self.network,
            next(self._sessions),
        )
        self.lives[node_id] = life
        self._epochs[node_id] = life.logs.leader_epoch
        if opened:
            life.open()

    def refresh(self) -> None:
        """Let every broker know what is true now."""
        for view in self.views.values():
            view.refresh()

    def crash(self, node_id: int, draw: Random) -> None:
        """End a broker; its disk is what ``draw`` leaves of it."""
        self._end(self.lives.pop(node_id))
        self.disks[node_id] = self.disks[node_id].crash(draw)
        for connection in list(self._connections):
            connection.lost(node_id)

    def _end(self, life: LifeOfSeveral) -> None:
        self.network.leave(life.node_id)
        life.disk.after = None
        life.end()
        if life.peers is not None:
            self._closing.append(life.peers)

    async def end(self) -> None:
        """Let go of everything."""
        for life in self.lives.values():
            self._end(life)
        for connection in list(self._connections):
            connection.abandon()
        for peers in self._closing:
            await peers.close()
        await turns()

    def raise_failures(self) -> None:
        """Raise what went wrong inside."""
        for life in self.lives.values():
            if life.failures:
                raise life.failures[0]
        if self.network.errors:
            raise self.network.errors[0]

    # -------------------------------------------------------------------------------- what they do

    def script(self, script: Script) -> None:
        """Let this happen on all links."""
        for asker in NODES:
            for asked in NODES:
                self.network.scripts[asker, asked] = script

    async def turn(self) -> None:
        """Let the loop, and what is ready to leave, go on."""
        await turns()
        for life in self.lives.values():
            life.flush_answers()
        self.raise_failures()

    async def settle(self) -> None:
        """Let everything happen that can happen at this time."""
        while True:
            for life in self.lives.values():
                life.settle()
            await self.turn()
            if not any(life.engine.busy for life in self.lives.values()):
                break

    async def drain(self, timeout_ms: int) -> None:
        """Let everything come to its end with no client there (C6), as far as it does in time."""
        self.refresh()
        deadline_s = self.clock.monotonic() + (2 * timeout_ms + PATIENCE_MS) / 1000
        await self.settle()
        while self._is_busy() and self.clock.monotonic() < deadline_s:
            self.clock.advance(milliseconds=100)
            await self.settle()

    def _is_busy(self) -> bool:
        """Whether a transaction has not ended, or a question is on its way."""
        return bool(self.network.in_transit) or any(
            machine.open for life in self.lives.values() for machine in life.transactions.machines
        )

    # --------------------------------------------------------------------------- where things are

    def log(self, topic: str, index: int) -> PartitionLog:
        return self.life_of((topic, index)).log(topic, index)

    def life_of(self, place: Place) -> LifeOfSeveral:
        return self.lives[self.leaders[place]]

    def leader_of_request(self, api: Any, request: Any) -> int:
        """The broker that a client sends a request to."""
        if api is PRODUCE:
            (topic,) = request.topic_data
            (data,) = topic.partition_data
            return self.leaders[topic.name, data.index]
        if api is TXN_OFFSET_COMMIT:
            return self.leaders[_place_of(GROUP_OFFSETS, request.group_id)]
        if api is ADD_PARTITIONS_TO_TXN:
            return self.leaders[_place_of(TRANSACTION_STATE, request.v3_and_below_transactional_id)]
        assert api in {INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, END_TXN}, api
        return self.leaders[_place_of(TRANSACTION_STATE, request.transactional_id)]

    def history(self) -> TransactionHistory:
        """What all logs say together, as far as they are durable."""
        found: dict[Place, list[bytes]] = {}
        for life in self.lives.values():
            batches = life.batches()
            assert not found.keys() & batches.keys()
            found |= batches
        assert found.keys() == self.ids.keys()
        return TransactionHistory(found)

    # ------------------------------------------------------------------------------- their clients

    def connect(self, client_id: str) -> RoutedConnection:
        connection = RoutedConnection(self, client_id)
        self._connections.add(connection)
        return connection

    def forget(self, connection: RoutedConnection) -> None:
        self._connections.discard(connection)

    def send_again(self) -> None:
        """Let some of those clients try again that have to."""
        for connection in sorted(self._connections, key=lambda each: each.client_id):
            if self._random.random() < 0.5:
                connection.send_again()


def _place_of(topic: str, key: str) -> Place:
    return topic, java_hash(key) % PARTITIONS[topic]


class RoutedConnection:
    """A client's connections: to whom each request belongs; it asks again as clients do."""

    def __init__(self, brokers: Brokers, client_id: str) -> None:
        self.client_id = client_id
        self._brokers = brokers
        self._open: dict[int, PipelineConnection] = {}
        self._asked: tuple[Any, int, Any, Callable[[Any], None]] | None = None
        self._node_id: int | None = None
        """Where an answer is awaited from; None: it is to be sent again."""
        self._attempts = 0

    def send(self, api: Any, version: int, request: Any, respond: Callable[[Any], None]) -> None:
        assert self._asked is None, "one at a time"
        self._asked = (api, version, request, respond)
        self._attempts = 0
        self._send()

    def send_again(self) -> None:
        if self._asked is not None and self._node_id is None:
            self._send()

    def _send(self) -> None:
        assert self._asked is not None
        api, version, request, _ = self._asked
        node_id = self._brokers.leader_of_request(api, request)
        life = self._brokers.lives.get(node_id)
        if life is None:
            return  # Nobody listens there now.
        connection = self._open.get(node_id)
        if connection is None:
            connection = self._open[node_id] = life.connect(self.client_id)
        self._node_id = node_id
        connection.send(api, version, request, self._answered)

    def _answered(self, response: Any) -> None:
        assert self._asked is not None
        api, _, _, respond = self._asked
        self._node_id = None
        self._attempts += 1
        if error_of(api, response) in RETRIABLE and self._attempts < ATTEMPTS:
            return
        self._asked = None
        respond(response)

    def lost(self, node_id: int) -> None:
        """A broker has gone: what it was asked is asked again."""
        connection = self._open.pop(node_id, None)
        if connection is not None:
            connection.abandon()
        if self._node_id == node_id:
            self._node_id = None

    def abandon(self) -> None:
        """The client has gone."""
        for connection in self._open.values():
            connection.abandon()
        self._open = {}
        self._asked = self._node_id = None
        self._brokers.forget(self)


def error_of(api: Any, response: Any) -> int:
    """The one error code of a response."""
    if api is PRODUCE:
        return response.responses[0].partition_responses[0].error_code
    if api is TXN_OFFSET_COMMIT:
        return response.topics[0].partitions[0].error_code
    if api is ADD_PARTITIONS_TO_TXN:
        return (
            response.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        )
    return response.error_code
