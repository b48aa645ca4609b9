"""Brokers that come to lead partitions and lose them, over one store, without sockets.

Everything takes its step when a test says so: what is read arrives, flushes are committed, segments
are written, the view learns of what the store has known for long.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

from barnabas.broker.cluster.view import Leader
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.topics.leadership import Leadership, State
from barnabas.broker.topics.topic import Partition, Topic
from barnabas.broker.topics.topic_names import GROUP_OFFSETS
from barnabas.protocol.records import read_header
from barnabas.storage.config import LogConfig
from barnabas.storage.errors import Corrupt, LedSince, LogClosed, NoRoom
from barnabas.storage.loading import DurableLog, LongLog, LongReading
from barnabas.storage.log_reading import read_log
from barnabas.storage.log_store import LogStore, StoreCallbacks
from barnabas.storage.memory_index import MemoryIndex, MemoryLogIndex
from barnabas.storage.partition_log import PartitionLog
from barnabas.storage.refusal import Refusal
from barnabas.storage.simulated import SimulatedFileSystem
from tests.storage.flushes import FlushEngine, assign, register
from tests.storage.stores import NOW_MS, ROOT, batch

TURNS = 8
"""Of the loop: as many as anything needs that waits for nobody else."""
INTERNAL, DATA = 1, 2
"""Ids of partitions: one of a coordinator's topic, one of a topic of clients."""


def topics() -> list[Topic]:
    """The topics with these two partitions, as one broker shows them."""
    found = []
    for partition_id, name in ((INTERNAL, GROUP_OFFSETS), (DATA, "data")):
        topic = Topic(name, bytes([partition_id] * 16), {}, LogConfig())
        topic.partitions.append(Partition(topic, 0, partition_id, None))
        found.append(topic)
    return found


class Cluster:
    """The store, and who has which session."""

    def __init__(self) -> None:
        self.index = MemoryIndex()
        self.stranger = register(self.index, 0)
        """The session of a broker that takes no part otherwise."""
        self.nodes: dict[int | None, int] = {self.stranger: 0}
        """Node ids by session. Node 0 is none of the members."""
        for topic in topics():
            self.assign(topic.partitions[0].partition_id, self.stranger)
        self.acknowledged: dict[int, list[tuple[int, bytes]]] = {INTERNAL: [], DATA: []}
        """Offset and bytes of each batch that was."""
        self.are_long: Callable[[], bool] = lambda: False
        """Whether a log that is read is a long one."""
        self.held: list[int] = []
        """Partitions that were read, and whose memory was not given back yet."""
        self.readings = 0
        self.beginning: Callable[[], object] | None = None
        """Makes all that there is of a log, which is damaged."""

    def assign(self, partition_id: int, session: int) -> None:
        """Have a partition led by a session from now on, unless that is over."""
        assign(self.index, partition_id, session)

    def leaders(self) -> dict[int, Leader]:
        rows = self.index.rows.items()
        return {
            each: Leader(self.nodes[row.leader_session], row.leader_epoch) for each, row in rows
        }

    def epoch_of(self, partition_id: int) -> int:
        return self.index.rows[partition_id].leader_epoch

    def read(self, partition_id: int) -> DurableLog:
        return read_log(MemoryLogIndex(self.index), partition_id)

    @contextlib.contextmanager
    def reading(
        self,
        partition_id: int,
        _leader_epoch: int,
        memory: contextlib.ExitStack,
        long: LongReading | None = None,
    ) -> Iterator[DurableLog]:
        """See ``DurableLogs``."""
        self.readings += 1
        if self.beginning is not None:
            held = self.beginning()
            raise Corrupt("partition in the store", 0, f"{held} ends too early")
        if long is None and self.are_long():
            raise LongLog(partition_id, LongReading())
        self.held.append(partition_id)
        memory.callback(self.held.remove, partition_id)
        yield self.read(partition_id)

    def check(self) -> None:
        """Every batch that was acknowledged is there once, where it was said to be."""
        for partition_id in self.index.rows:
            batches = [bytes(each) for each in self.read(partition_id).batches]
            known = {read_header(memoryview(each)).base_offset: each for each in batches}
            assert len(known) == len(batches)
            for offset, value in self.acknowledged[partition_id]:
                assert value in known[offset], f"{partition_id}@{offset}"


class MemberEngine(FlushEngine):
    """What flushes for one of the brokers, in one session after the other."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        super().__init__(cluster.index)
        self._cluster = cluster
        self._node_id = node_id

    @property
    def has_submitted(self) -> bool:
        return bool(self._submitted) or self._pending is not None

    def _begin_session(self) -> None:
        self._lives += 1
        self.session = register(self.index, self._node_id, self._lives)
        self._cluster.nodes[self.session] = self._node_id
        self.committer.begin_session(self.session)


class Acknowledged:
    """A batch that is noted as soon as it is said to be durable."""

    def __init__(self, noted: list[tuple[int, bytes]], offset: int, value: bytes) -> None:
        self.noted = noted
        self.batch = offset, value

    def durable(self) -> None:
        self.noted.append(self.batch)

    def refused(self, _refusal: Refusal) -> None:
        """Nothing was promised."""


class Member:
    """One of the brokers."""

    def __init__(self, cluster: Cluster, node_id: int = 1) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.topics = topics()
        self.partitions = {
            each.partition_id: each for topic in self.topics for each in topic.partitions
        }
        self.told = [cluster.leaders()]
        """In each version of the view."""
        self.shown_again: set[int] = set()
        """Partitions that the view shows as changed, whatever it tells of them."""
        self.compared: list[int] = []
        self.engine = MemberEngine(cluster, node_id)
        self.disk = SimulatedFileSystem()
        self.disk.make_directory(ROOT)
        self.store = LogStore(self.disk, ROOT, engine=self.engine, now_ms=lambda: NOW_MS)
        self.engine.start(self.store)
        self.reads: deque[tuple[asyncio.Future[Any], partial[Any]]] = deque()
        self.tasks: list[asyncio.Task[None]] = []
        self.removed: list[PartitionLog] = []
        self.opened: list[PartitionLog] = []
        self.shards: dict[str, PartitionLog] = {}
        self.released: list[int] = []
        self.asked_to_release: list[int] = []
        host: Any = SimpleNamespace(
            clock=SystemClock(),
            loop=SimpleNamespace(run_in_executor=self._read_aside),
            spawn=self._spawn,
        )
        view: Any = self
        self.leadership = Leadership(host, self.store, view, cluster, self.removed.append)
        self.store.callbacks = StoreCallbacks(
            on_forgotten=self.leadership.forgotten,
            on_session_lost=self.leadership.session_lost,
            on_fatal=self._fatal,
        )
        for topic in self.topics:
            self.leadership.shown(topic.partitions)
        self.leadership.open(self)

    def _fatal(self, error: BaseException) -> None:
        raise error

    # What a leadership asks of its surroundings

    @property
    def version(self) -> int:
        return len(self.told) - 1

    def leader_of(self, partition_id: int) -> Leader:
        self.compared.append(partition_id)
        return self.told[-1][partition_id]

    def changed_since(self, version: int) -> set[int]:
        return {
            each for each, leader in self.told[-1].items() if leader != self.told[version][each]
        } | self.shown_again

    def gain(self, topic: str, index: int) -> None:
        (log,) = (each.partitions[index].log for each in self.topics if each.name == topic)
        assert topic not in self.shards
        assert log is not None
        assert not log.unflushed, "its replay would miss what is not in the segments"
        self.shards[topic] = log

    def lose(self, topic: str, index: int) -> None:
        assert index == 0
        self.shards.pop(topic, None)

    def _read_aside(self, executor: Any, read: partial[Any]) -> asyncio.Future[Any]:
        long = read.args[-1]
        assert (executor is self.leadership._long_threads._executor) == (long is not None)
        future = asyncio.get_running_loop().create_future()
        self.reads.append((future, read))
        return future

    def _spawn(self, coroutine: Any, name: str) -> None:
        self.tasks.append(asyncio.get_running_loop().create_task(coroutine, name=name))

    # What a test does

    async def turns(self) -> None:
        """Let the loop do what there is."""
        for _ in range(TURNS):
            await asyncio.sleep(0)
        done = [task for task in self.tasks if task.done()]
        self.tasks = [task for task in self.tasks if not task.done()]
        for task in done:
            task.result()

    async def learn(
        self, leaders: dict[int, Leader] | None = None, changed: Iterable[int] = ()
    ) -> None:
        """Let the view know who leads what, and show some partitions again."""
        self.shown_again = {*changed}
        self.told.append(self.cluster.leaders() if leaders is None else leaders)
        self.leadership.look()
        await self.turns()

    async def read(self, meanwhile: Callable[[], Awaitable[None]] | None = None) -> None:
        """Let everything arrive that is being read, whatever is read because of that, too.

        ``meanwhile`` happens between when a log is ready and when that is known.
        """
        while self.reads:
            future, read = self.reads.popleft()
            try:
                result = read()
            except (Corrupt, LedSince, LongLog, NoRoom) as error:
                future.set_exception(error)
            else:
                if meanwhile is not None:
                    await meanwhile()
                future.set_result(result)
            if not self.reads:
                await self.turns()

    async def commit(self) -> None:
        """Let everything that is placed become durable, or be refused."""
        self.engine.end_turns()
        while self.engine.has_submitted:
            self.engine.commit()
            self.engine.hear(1000)
            self.engine.end_turns()
        await self.turns()

    async def write(self) -> None:
        """Let everything that is durable come into its segments."""
        self.engine.write()
        self.engine.hear(1000)
        await self.turns()

    async def settle(self) -> None:
        """Let everything come to rest."""
        while self.reads or self.engine.busy:
            await self.read()
            await self.commit()
            await self.write()

    @property
    def session(self) -> int:
        session: int = self.engine.session
        return session

    def state(self, partition_id: int) -> State:
        return self.leadership.state_of(partition_id)

    def place(self, partition_id: int, value: bytes = b"v" * 20) -> bool:
        """Append a batch; False if the partition takes none."""
        log = self.partitions[partition_id].log
        if log is None:
            return False
        try:
            appended = log.append_records(batch(value=value))
        except LogClosed:
            return False
        assert appended.durable is not None
        acknowledged = self.cluster.acknowledged[partition_id]
        appended.durable.add_waiter(Acknowledged(acknowledged, appended.base_offset, value))
        return True

    def release(self, partition_id: int) -> None:
        self.asked_to_release.append(partition_id)
        self.leadership.release(partition_id, lambda: self.released.append(partition_id))

    async def serve(self, *partition_ids: int) -> None:
        """Come to lead partitions."""
        for partition_id in partition_ids:
            self.cluster.assign(partition_id, self.session)
        await self.learn()
        await self.settle()
        for partition_id in partition_ids:
            assert self.state(partition_id) is State.SERVED

    def check(self) -> None:
        """What holds after every step."""
        for partition_id, partition in self.partitions.items():
            self._check_one(partition_id, partition)
        assert {*self.store._when_written} <= {*self.store.logs.values()}
        assert len({*self.removed}) == len(self.removed), "told once of each log"
        assert not {*self.removed} & {*self.store.logs.values()}
        assert all(log.closed for log in self.removed)
        here = [each for each, part in self.partitions.items() if part.log is not None]
        assert sorted(self.store.logs) == sorted(here)
        waiting = sum(len(place.on_released) for place in self.leadership._places.values())
        assert len(self.released) + waiting == len(self.asked_to_release)

    def _check_one(self, partition_id: int, partition: Partition) -> None:
        state, log = self.state(partition_id), partition.log
        if state in {State.AWAY, State.READING}:
            assert log is None
        else:
            assert log is not None
            assert self.store.logs[partition_id] is log
            assert log.closed == (state is State.DRAINING)
        shard = self.shards.get(partition.topic.name)
        if state is not State.DRAINING and partition.topic.is_internal:
            assert (shard is log) if state is State.SERVED else shard is None
