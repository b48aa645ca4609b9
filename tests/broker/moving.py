"""Whole brokers over one store of flushes: partitions move from one to the other.

What is durable, and who may write it, is decided by a log index in memory. Each broker learns of
that when a test tells it, or when it is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from random import Random
from typing import Any

from barnabas.broker.cluster.view import NO_NODE, Leader, Node
from barnabas.broker.topics.leadership import State
from barnabas.storage.flush_committer import FlushCommitter
from barnabas.storage.loading import DurableLog, LongReading
from barnabas.storage.log_index import Flush
from barnabas.storage.log_reading import read_log
from barnabas.storage.memory_index import MemoryIndex, MemoryLogIndex
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.runtime.clock import sleep
from barnabas.storage.runtime.threads import Queue, new_event, new_queue, new_rlock
from tests.broker.several import (
    CLUSTER_ID,
    LISTENER,
    BrokerWithView,
    ScriptedView,
    SharedMetaStore,
    has_loaded,
    node,
)
from tests.storage.flushes import assign, register
from tests.waiting import wait_until

NOBODY = Leader(NO_NODE, -1)


class MovingView(ScriptedView):
    """The cluster as one broker sees it: what it was told last."""

    def __init__(self, node_id: int, nodes: list[Node]) -> None:
        super().__init__(node_id, nodes)
        self._told: dict[int, Leader] = {}

    def leader_of(self, partition_id: int) -> Leader:
        return self._told.get(partition_id, NOBODY)

    def told(self, leaders: dict[int, Leader]) -> None:
        self._told = leaders
        self.version += 1


class Flushing:
    """What makes the groups of one broker durable, each a while after it came; on threads."""

    def __init__(self, store: Store, broker: MovingBroker, random: Random) -> None:
        self._store = store
        self._node_id = broker.view.node_id
        self._random = random
        logs = broker.server.logs
        self._was_forgotten = logs.callbacks.on_forgotten
        logs.callbacks.on_forgotten = self._forgotten
        self.way = MemoryLogIndex(store.index, on_flush=self._take_a_while)
        self.committer = FlushCommitter(self.way, logs, logs.flush_times, logs.flush_batches)
        self._begin_session()
        logs.files = None
        logs.start_on(self.committer)

    def _take_a_while(self, _flush: Flush) -> None:
        sleep(self._random.random() * 0.004)

    def _begin_session(self) -> None:
        self.session = self._store.register_node(self._node_id)
        self.committer.begin_session(self.session)

    def _forgotten(self, logs: list[PartitionLog], moved: frozenset[int]) -> None:
        self._was_forgotten(logs, moved)
        if self.committer.session is None:
            self._begin_session()


class Store:
    """The index that all brokers share, each on threads of its own."""

    def __init__(self) -> None:
        self.index = MemoryIndex()
        self.nodes: dict[int | None, int] = {None: NO_NODE}
        """Node ids by session."""
        self._may_read = new_event()
        self._may_read.set()

    def register_node(self, node_id: int) -> int:
        session: int = register(self.index, node_id, len(self.nodes))
        self.nodes[session] = node_id
        return session

    def assign(self, partition_id: int, session: int) -> None:
        assert assign(self.index, partition_id, session) is not None, "the session is over"

    def epoch_of(self, partition_id: int) -> int:
        return self.index.rows[partition_id].leader_epoch

    @contextlib.contextmanager
    def nothing_is_read(self) -> Iterator[None]:
        """Let everyone wait who wants to load a log."""
        self._may_read.clear()
        try:
            yield
        finally:
            self._may_read.set()

    @contextlib.contextmanager
    def reading(
        self,
        partition_id: int,
        _leader_epoch: int,
        _memory: contextlib.ExitStack,
        long: LongReading | None = None,
    ) -> Iterator[DurableLog]:
        """See ``DurableLogs``."""
        assert long is None
        assert self._may_read.wait(60)
        yield read_log(MemoryLogIndex(self.index), partition_id)

    def leaders(self) -> dict[int, Leader]:
        rows = [*self.index.rows.items()]
        return {
            each: Leader(self.nodes[row.leader_session], row.leader_epoch) for each, row in rows
        }


class MovingBroker(BrokerWithView):
    """One of the brokers."""

    runner: Flushing

    def __init__(self, view: MovingView, store: Store, metastore: Any, **config: str) -> None:
        super().__init__(view, {}, metastore, **config)
        self._store = store

    def _new_server(self, view=None, peers=None, durable_logs=None):
        return super()._new_server(view, peers, durable_logs or self._store)

    def join(self, random: Random) -> None:
        """Begin to flush to the store of the cluster; nothing is led here before."""

        def join() -> None:
            self.runner = Flushing(self._store, self, random)

        genuine = self.server.logs._runner
        wait_until(lambda: self.call(self.server.logs.journal.newest_group) is None)
        self.call(join)
        genuine.stop()

    def learn(self) -> None:
        """Let this broker know who leads what."""

        def learn() -> None:
            self.view.told(self._store.leaders())
            self.server.leadership.look()

        self.call(learn)

    def hold(self, *, held: bool = True) -> None:
        """Let nothing become durable, until it may."""
        if held:
            self.runner.way.cut()
        else:
            self.runner.way.mend()

    def lose_session(self) -> None:
        """End its session; it learns that at once."""

        session = self.runner.session

        def end() -> None:
            self.runner.committer.end_session(session)
            self.server.logs.journal.add_operation(lambda: None)

        self._store.index.fence(session)
        self.call(end)

    def state(self, partition_id: int) -> State:
        return self.call(lambda: self.server.leadership.state_of(partition_id))


class MovingCluster:
    """All brokers, and the ids of all partitions by topic."""

    def __init__(self, store: Store, brokers: list[MovingBroker]) -> None:
        self.store = store
        self.brokers = brokers
        self.ids: dict[str, list[int]] = {}
        self.leader: dict[int, MovingBroker] = {}
        """Whom each partition was given to last."""
        self.waits_for_loads = True
        """Whether one who serves a partition has read what its coordinators go by, too."""

    def note_topics(self) -> None:
        for name, topic in self.brokers[0].server.catalogue.topics.items():
            self.ids[name] = [each.partition_id for each in topic.partitions]

    def assign(self, broker: MovingBroker, *partition_ids: int) -> None:
        """Decide who leads partitions; nobody is told."""
        for partition_id in partition_ids:
            self.store.assign(partition_id, broker.runner.session)
            self.leader[partition_id] = broker

    def tell(self) -> None:
        for broker in self.brokers:
            broker.learn()

    def give(self, broker: MovingBroker, *partition_ids: int) -> None:
        """Have a broker lead partitions, whoever did before, and wait until it serves them."""
        self.assign(broker, *partition_ids)
        self.tell()
        self.served(broker, *partition_ids)

    def move(self, broker: MovingBroker, *partition_ids: int) -> None:
        """The same, once who leads them now has let go of them."""
        released: Queue[int] = new_queue()
        for partition_id in partition_ids:
            former = self.leader[partition_id]
            former.call(
                lambda former=former, each=partition_id: former.server.leadership.release(
                    each, lambda: released.put(each)
                )
            )
        for _ in partition_ids:
            released.get(timeout=60)
        self.give(broker, *partition_ids)

    def served(self, broker: MovingBroker, *partition_ids: int) -> None:
        for each in partition_ids:
            wait_until(
                lambda each=each: broker.state(each) is State.SERVED,
                lambda each=each: f"{each}: {broker.state(each)}",
            )
        if self.waits_for_loads:
            wait_until(lambda: has_loaded(broker), "coordinators have read what came to them")

    def others(self, broker: MovingBroker) -> list[MovingBroker]:
        return [each for each in self.brokers if each is not broker]


def moving_pair(
    topics: dict[str, int], *, seed: int = 0, **config: str
) -> contextlib.AbstractContextManager[MovingCluster]:
    """Brokers 1 and 2, of which neither leads anything yet."""
    return moving_brokers(topics, 2, seed=seed, **config)


@contextlib.contextmanager
def moving_brokers(
    topics: dict[str, int], count: int, *, seed: int = 0, **config: str
) -> Iterator[MovingCluster]:
    """Brokers from 1 on, of which none leads anything yet."""
    database = SqliteMetaStore.open(MEMORY, node_id=0, new_cluster_id=CLUSTER_ID)
    for number, (name, partitions) in enumerate(topics.items(), start=1):
        database.create_topic(name, bytes([number] * 16), partitions, {})
    lock = new_rlock()
    store = Store()
    random = Random(seed)
    brokers: list[MovingBroker] = []
    with contextlib.closing(database), contextlib.ExitStack() as stack:
        for node_id in range(1, count + 1):
            metastore = SharedMetaStore(database, node_id, lock)
            view = MovingView(node_id, [node(node_id)])
            broker = stack.enter_context(MovingBroker(view, store, metastore, **config))
            stack.callback(broker.crash)  # Its files are a cache: nothing is to be said of them.
            broker.join(Random(random.random()))
            brokers.append(broker)
        nodes = [node(each.view.node_id, (LISTENER, *each.address)) for each in brokers]
        for broker in brokers:
            broker.call(lambda view=broker.view: view.in_service(*nodes))
        cluster = MovingCluster(store, brokers)
        cluster.note_topics()
        yield cluster
        assert [broker.server.failure for broker in brokers] == [None] * count
