"""Brokers on one log index with real threads, to whom everything happens at any time.

What is judged in the end: every batch that was acknowledged is durable where its answer said, once;
what was refused is not; extents are dense. Below a log's start they may be deleted.
"""

import asyncio
import threading
import time
from collections import Counter
from dataclasses import replace
from random import Random

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.protocol.records import iterate_batches
from barnabas.storage.errors import LogClosed
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.log.config import LogConfig
from barnabas.storage.repair.check import verify
from barnabas.storage.replicated.log_index import IndexMisused
from barnabas.storage.replicated.log_reading import read_log
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.store.flush_start import open_cache
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory
from barnabas.storage.store.store_parts import PartitionSpec, StoreSettings
from tests.storage.engines import ThreadEngine
from tests.storage.flushes import assign, register
from tests.storage.stores import NOW_MS, batch, read_all
from tests.waiting import until

NODES = (1, 2, 3)
PARTITIONS = (1, 2, 3, 4, 5)
CONFIG = LogConfig(segment_bytes=2_000)
SETTINGS = StoreSettings(reserved_bytes=0)
DELAY_S_MAX = 0.002


class Sent:
    """A client's batch: sent again when it is refused, until it is acknowledged."""

    def __init__(self, cluster, partition_id, value):
        self.cluster = cluster
        self.partition_id = partition_id
        self.value = value
        self.log = None
        self.offset = None

    def send(self, node):
        """Append here; return False if this node refuses."""
        try:
            log = node.store.get(self.partition_id)
            appended = log.append(batch(value=self.value))
        except (KeyError, LogClosed):
            return False
        self.log, self.offset = log, appended.base_offset
        appended.group.add_waiter(self)
        return True

    def durable(self):
        self.cluster.acknowledged.append((self.partition_id, self.offset, self.value))

    def refused(self, refusal):
        assert refusal.takes_back(self.log.topic_id, 0, self.offset)
        self.cluster.refusals += 1
        self.cluster.unsent.append(self)


class Node:
    """One broker."""

    def __init__(self, cluster, node_id, path):
        loop = asyncio.get_running_loop()
        self.cluster = cluster
        self.index = cluster.index
        self.node_id = node_id
        self.lives = 0
        self.random = Random(f"{cluster.seed}/{node_id}")
        self.way = cluster.way(self)
        engine = ThreadEngine(
            loop.call_soon,
            loop.call_soon_threadsafe,
            lambda work: threading.Thread(target=work).start(),
        )
        self.store = LogStore(
            LocalFileSystem(), str(path), engine=engine, now_ms=lambda: NOW_MS, settings=SETTINGS
        )
        self.store.callbacks.on_fatal = cluster.failures.append
        self.store.callbacks.on_forgotten = self._forgotten
        lock_directory(self.store)
        self.committer = open_cache(self.store, self.way, self._register())
        self.store._runner = cluster.runner(self)

    def delay(self, _flush):
        time.sleep(self.random.random() * DELAY_S_MAX)

    def _register(self):
        self.lives += 1
        return register(self.index, self.node_id, self.lives)

    def _forgotten(self, logs, _moved):
        if self.committer.session is None:
            self.committer.begin_session(self._register())
        for log in logs:
            state = self.index.partition(log.partition_id)
            if state.leader_session == self.committer.session:
                self._load(log.partition_id, state.leader_epoch)

    def gain(self, partition_id):
        """Take a partition over from its leader."""
        session = self.committer.session
        epoch = None if session is None else assign(self.index, partition_id, session)
        if epoch is None:
            self.beat()
            return
        if partition_id in self.store.logs:
            self.store.delete(partition_id)
        self._load(partition_id, epoch)

    def _load(self, partition_id, epoch):
        topic_id = bytes([partition_id] * 16)
        spec = PartitionSpec(partition_id, f"t{partition_id}", 0, topic_id, CONFIG, epoch)
        self.store.load(spec, read_log(self.index, partition_id))

    def beat(self):
        """A heartbeat may find that the session has ended."""
        session = self.committer.session
        if session is not None and not self.index.heartbeat(session, 10_000):
            self.committer.end_session(session)
            self.store.journal.add_operation(lambda: None)

    def leads(self, partition_id):
        log = self.store.logs.get(partition_id)
        if log is None or log.closed:
            return False
        state = self.index.partition(partition_id)
        return (state.leader_session, state.leader_epoch) == (
            self.committer.session,
            log.leader_epoch,
        ) and self.index.heartbeat(state.leader_session, 10_000)


class FlushCluster:
    """Some nodes, and the responses to their clients."""

    def __init__(self, seed, path, index=None):
        self.seed = seed
        self.random = Random(seed)
        self.index = index or MemoryIndex()
        self.failures = []
        self.acknowledged = []
        self.refusals = 0
        self.unsent = []
        self.values = []
        self.nodes = [Node(self, node_id, path / str(node_id)) for node_id in NODES]

    def way(self, node):
        """Return a node's connection to the index."""
        return MemoryLogIndex(self.index, node.delay)

    def runner(self, node):
        """Return the runner of a node's store."""
        return node.store._runner

    async def run(self, steps):
        """Run random steps, then end them in order; AssertionError if anything is wrong."""
        try:
            for _ in range(steps):
                self.step()
                await asyncio.sleep(self.random.choice((0, 0, DELAY_S_MAX)))
                if self.failures:
                    break
            for node in self.nodes:
                node.way.mend()
            await until(self._is_over, lambda: (self.unsent, self.refusals, self.failures))
            self._raise_failure()
            for node in self.nodes:
                self.keep_snapshots(node)
                self.collect_garbage(node)
            self.judge()
            await until(self._is_settled, lambda: self.failures)
            await self._look_at_logs()
        finally:
            for node in self.nodes:
                node.way.mend()
                node.store.close()
                node.way.close()

    def step(self):
        random = self.random
        action = random.choice(("send", "send", "send", "send", *self.events))
        getattr(self, action)(random.choice(self.nodes))
        self._keep_led()
        self._send_again()

    events = (
        "move",
        "fence",
        "cut",
        "mend",
        "mend",
        "lose_answer",
        "lose_answer",
        "delete_records",
        "keep_snapshots",
        "collect_garbage",
    )

    def send(self, _node):
        for _ in range(self.random.randint(1, 12)):
            value = b"value %d" % len(self.values)
            self.values.append(value)
            self.unsent.append(Sent(self, self.random.choice(PARTITIONS), value))

    def move(self, node):
        node.gain(self.random.choice(PARTITIONS))

    def fence(self, node):
        if node.committer.session is not None and not self.random.randrange(3):
            self.index.fence(node.committer.session)

    def cut(self, node):
        node.way.cut()

    def mend(self, node):
        node.way.mend()

    def lose_answer(self, node):
        node.way.lose_answers(1)

    def delete_records(self, node):
        for log in node.store.logs.values():
            log.delete_records(log.high_watermark // 2)

    def keep_snapshots(self, node):
        for log in node.store.logs.values():
            if node.leads(log.partition_id) and log.high_watermark == log.next_offset:
                session, epoch = node.committer.session, log.leader_epoch
                try:
                    self.index.put_snapshot(session, log.partition_id, epoch, take_snapshot(log))
                except IndexMisused as error:
                    raise AssertionError("what was said to be durable is not") from error

    def collect_garbage(self, _node):
        self.index.collect_garbage(self.random.choice((2, 1000)))

    def _keep_led(self):
        for partition_id in PARTITIONS:
            if not any(node.leads(partition_id) for node in self.nodes):
                self.random.choice(self.nodes).gain(partition_id)

    def _send_again(self):
        """To any node that takes it, though another one may lead by now."""
        unsent, self.unsent = self.unsent, []
        for each in unsent:
            nodes = self.random.sample(self.nodes, len(self.nodes))
            if not any(each.send(node) for node in nodes):
                self.unsent.append(each)

    def _is_over(self):
        for node in self.nodes:
            node.beat()
        self._keep_led()
        self._send_again()
        return self.failures or len(self.acknowledged) >= len(self.values)

    def _is_settled(self):
        """Whether all is led, and no session will be found to have ended: nothing is on its way."""
        for node in self.nodes:
            node.beat()
        self._keep_led()
        return self.failures or not any(
            node.store.journal.newest_group() is not None for node in self.nodes
        )

    def judge(self):
        """Everything was acknowledged by now."""
        assert Counter(value for *_, value in self.acknowledged) == Counter(self.values)
        there = Counter()
        for partition_id in PARTITIONS:
            extents = self.index.extents(partition_id, 0, most=len(self.values))
            _, _, log_start, log_end = self.index.partition(partition_id)
            bounds = [*[extent.base_offset for extent in extents], log_end]
            assert bounds[0] <= log_start, "what can be read is there"
            assert [extent.next_offset for extent in extents] == bounds[1:], "extents are dense"
            epochs = [extent.leader_epoch for extent in extents]
            assert epochs == sorted(epochs)
            for extent in extents:
                view = memoryview(extent.data)
                for _, header in iterate_batches(view):
                    there[partition_id, header.base_offset] += 1
                    assert header.partition_leader_epoch == extent.leader_epoch
        assert set(there.values()) <= {1}
        logs = {partition_id: read_log(self.index, partition_id) for partition_id in PARTITIONS}
        offsets = sum(log.base_offset + len(log.batches) for log in logs.values())
        assert offsets == len(self.values), "each is there once, or was"
        for partition_id, offset, value in self.acknowledged:
            log = logs[partition_id]
            assert log.base_offset <= log.log_start_offset
            if offset >= log.base_offset:
                wanted = bytes(batch(value=value))[61:]
                found = bytes(log.batches[offset - log.base_offset])
                assert found.endswith(wanted), (partition_id, offset, value)

    async def _look_at_logs(self):
        """Check that leaders' logs, in memory and in files, are the durable ones."""
        done = []
        for node in self.nodes:
            node.store.checkpoint(lambda: done.append(True))
        await until(lambda: len(done) == len(self.nodes) or self.failures)
        for partition_id in PARTITIONS:
            (leader,) = [node for node in self.nodes if node.leads(partition_id)]
            log = leader.store.get(partition_id)
            assert log.high_watermark == self.index.partition(partition_id).log_end_offset
            assert verify(log) == []
            assert len(read_all(log)) == log.high_watermark - log.log_start_offset
        self._raise_failure()

    def _raise_failure(self):
        for failure in self.failures:
            raise AssertionError("a store has failed") from failure


class Unanswered(Exception):
    """The connection ends under a call."""


class ReplicatedIndex(MemoryIndex):
    """A primary with a standby: an answer comes when the standby has what it speaks of."""

    def __init__(self):
        super().__init__()
        self.isolated = False
        """Whether the primary is cut off from its standby: it commits and never responds."""
        self._order = threading.RLock()
        self._standby = self._copy()

    def _copy(self):
        rows = {each: replace(row, extents=[*row.extents]) for each, row in self.rows.items()}
        sessions = {
            each: replace(session, next_flushes=dict(session.next_flushes))
            for each, session in self._sessions.items()
        }
        return rows, sessions

    def commit_flush(self, session, flush):
        with self._order:
            number = self._sessions[session].next_flushes.get(flush.lane, 0)
            answer = super().commit_flush(session, flush)
            if self.answers_at_once(number > flush.number):
                return answer
            if self.isolated:
                raise Unanswered
            self._standby = self._copy()
            return answer

    def answers_at_once(self, is_known):
        """Return whether a flush returns before the standby has received it."""
        return False

    def fail_over(self):
        """The standby takes over, and gets a standby of its own."""
        with self._order, self._changed:
            self.rows, self._sessions = self._standby
            self.isolated = False
            self._standby = self._copy()

    def _replicated(self, change, *arguments):
        with self._order:
            if self.isolated:
                self.fail_over()
            answer = change(*arguments)
            self._standby = self._copy()
            return answer

    def register(self, *arguments):
        return self._replicated(super().register, *arguments)

    def add_partition(self, *arguments):
        return self._replicated(super().add_partition, *arguments)

    def assign(self, *arguments):
        return self._replicated(super().assign, *arguments)

    def fence(self, *arguments):
        return self._replicated(super().fence, *arguments)

    def put_snapshot(self, *arguments):
        return self._replicated(super().put_snapshot, *arguments)

    def collect_garbage(self, *arguments):
        return self._replicated(super().collect_garbage, *arguments)


class ReplicatedWay(MemoryLogIndex):
    """Calls again where a connection ended."""

    def _attempt_flush(self, session, flush):
        try:
            return super()._attempt_flush(session, flush)
        except Unanswered:
            self.lose_answers(1)
            return None


class FailoverCluster(FlushCluster):
    """The same, with an index that has a standby."""

    events = (*FlushCluster.events, "isolate", "isolate", "fail_over", "fail_over")

    def __init__(self, seed, path, index=None):
        super().__init__(seed, path, index or ReplicatedIndex())

    def way(self, node):
        return ReplicatedWay(self.index, node.delay)

    def isolate(self, _node):
        self.index.isolated = True

    def fail_over(self, _node):
        if self.index.isolated:
            self.index.fail_over()

    def _is_over(self):
        self.fail_over(None)
        return super()._is_over()
