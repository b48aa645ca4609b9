"""Two whole brokers over one store of flushes: partitions move from one to the other.

What is durable, and who may write it, is decided in memory (``tests/storage/flushes.py``), as
PostgreSQL would. Each broker learns of that when a test tells it, or when it is refused.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any

from barnabas.broker.cluster.view import NO_NODE, Leader, Node
from barnabas.broker.topics.leadership import State
from barnabas.storage.journal import CommitGroup, StoredBatches
from barnabas.storage.metastore.sqlite import MEMORY, SqliteMetaStore
from tests.broker.several import (
    CLUSTER_ID,
    LISTENER,
    BrokerWithView,
    ScriptedView,
    SharedMetaStore,
    node,
)
from tests.storage.flushes import Flushes
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


class FlushRunner:
    """Makes the groups of one broker durable, each a while after it came; on the broker's loop."""

    def __init__(self, store: Store, broker: MovingBroker, random: Random) -> None:
        self._store = store
        self._logs = broker.server.logs
        self._loop = broker.server.loop
        self._random = random
        self._waiting: deque[CommitGroup] = deque()
        self._run = -1
        self._flush = 0
        self._is_under_way = False
        self.held = False
        """Whether nothing becomes durable for now."""
        self.session = store.register_node(broker.view.node_id)

    def submit(self, group: CommitGroup) -> None:
        self._waiting.append(group)
        self.go_on()

    def commit_here(self, group: CommitGroup, meanwhile: Any) -> bool:
        del group, meanwhile
        return False

    def stop(self) -> None:
        self.held = True

    def go_on(self) -> None:
        """Flush what waits, some milliseconds later, unless it is held."""
        if self._waiting and not self._is_under_way and not self.held:
            self._is_under_way = True
            self._loop.call_later(self._random.random() * 0.004, self._flushed)

    def _flushed(self) -> None:
        self._is_under_way = False
        if self.held:
            return
        groups = [group for group in self._waiting if group.run > self._run]
        self._waiting.clear()
        if groups:
            self._hear(groups, self._store.commit_flush(self.session, self._flush, groups))

    def _hear(self, groups: list[CommitGroup], answer: Any) -> None:
        if answer is True:
            self._flush += 1
            self._logs.durable(len(groups))
            for group in groups:
                for operation in group.operations:
                    if isinstance(operation, StoredBatches):
                        chunk = memoryview(operation.chunk)[operation.start : operation.end]
                        operation.segment.write([chunk], operation.position)
                    else:
                        operation()
            self._logs.written(len(groups))
        elif answer is None:
            self._run = groups[0].run
            self.session, self._flush = (
                self._store.register_node(self._store.nodes[self.session]),
                0,
            )
            self._logs.lost()
        else:
            self._run = groups[0].run
            self._logs.refused(len(groups), answer)


class Store(Flushes):
    """The flushes of all brokers, each on a thread of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes: dict[int, int] = {}
        self._lock = threading.RLock()
        self._may_read = threading.Event()
        self._may_read.set()

    def register_node(self, node_id: int) -> int:
        with self._lock:
            session: int = self.register()
            self.nodes[session] = node_id
            return session

    def assign(self, partition_id: int, session: int) -> None:
        with self._lock:
            super().assign(partition_id, session)

    def commit_flush(self, session: int, flush: int, groups: Any) -> Any:
        with self._lock:
            return super().commit_flush(session, flush, groups)

    @contextlib.contextmanager
    def nothing_is_read(self) -> Iterator[None]:
        """Let everyone wait who wants to load a log."""
        self._may_read.clear()
        try:
            yield
        finally:
            self._may_read.set()

    def read(self, partition_id: int) -> Any:
        """See ``DurableLogs``."""
        assert self._may_read.wait(60)
        with self._lock:
            return self.rows[partition_id].durable()

    def leaders(self) -> dict[int, Leader]:
        with self._lock:
            return {
                each: Leader(self.nodes[row.session], row.epoch) for each, row in self.rows.items()
            }


class MovingBroker(BrokerWithView):
    """One of the brokers."""

    runner: FlushRunner

    def __init__(self, view: MovingView, store: Store, metastore: Any, **config: str) -> None:
        super().__init__(view, {}, metastore, **config)
        self._store = store

    def _new_server(self, view=None, peers=None, durable_logs=None):
        return super()._new_server(view, peers, durable_logs or self._store)

    def join(self, random: Random) -> None:
        """Begin to flush to the store of the cluster; nothing is led here before."""

        def join() -> None:
            self.runner = self.server.logs._runner = FlushRunner(self._store, self, random)
            self.server.logs.files = None

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

        def hold() -> None:
            self.runner.held = held
            self.runner.go_on()

        self.call(hold)

    def state(self, partition_id: int) -> State:
        return self.call(lambda: self.server.leadership.state_of(partition_id))


class MovingCluster:
    """Both brokers, and the ids of all partitions by topic."""

    def __init__(self, store: Store, brokers: list[MovingBroker]) -> None:
        self.store = store
        self.brokers = brokers
        self.ids: dict[str, list[int]] = {}
        self.leader: dict[int, MovingBroker] = {}
        """Whom each partition was given to last."""

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
        released = threading.Semaphore(0)
        for partition_id in partition_ids:
            former = self.leader[partition_id]
            former.call(
                lambda former=former, each=partition_id: former.server.leadership.release(
                    each, released.release
                )
            )
        for _ in partition_ids:
            assert released.acquire(timeout=60)
        self.give(broker, *partition_ids)

    def served(self, broker: MovingBroker, *partition_ids: int) -> None:
        for each in partition_ids:
            wait_until(
                lambda each=each: broker.state(each) is State.SERVED,
                lambda each=each: f"{each}: {broker.state(each)}",
            )

    def other(self, broker: MovingBroker) -> MovingBroker:
        return self.brokers[1 - self.brokers.index(broker)]


@contextlib.contextmanager
def moving_pair(topics: dict[str, int], *, seed: int = 0, **config: str) -> Iterator[MovingCluster]:
    """Brokers 1 and 2, of which neither leads anything yet."""
    database = SqliteMetaStore.open(MEMORY, node_id=0, new_cluster_id=CLUSTER_ID)
    for number, (name, partitions) in enumerate(topics.items(), start=1):
        database.create_topic(name, bytes([number] * 16), partitions, {})
    lock = threading.Lock()
    store = Store()
    random = Random(seed)
    brokers: list[MovingBroker] = []
    with contextlib.closing(database), contextlib.ExitStack() as stack:
        for node_id in (1, 2):
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
        assert [broker.server.failure for broker in brokers] == [None, None]
