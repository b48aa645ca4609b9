"""A store on a log index in memory whose loop, threads and index move when a test says so."""

from collections import deque
from uuid import UUID

from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.protocol.records import placed, read_header
from barnabas.storage.replicated.cluster_index import Assignment
from barnabas.storage.replicated.flush_committer import FlushCommitter
from barnabas.storage.replicated.log_index import Flush, Item, Lane, Outcome
from barnabas.storage.replicated.log_reading import read_log
from tests.crash.scripted_engine import ScriptedEngine

LEASE_MS = 10_000


def register(index, node_id, life=0, object_store=None):
    """Begin a session of a node, and the use of its object store."""
    token = UUID(int=node_id << 32 | life)
    session = index.register(token, node_id, "", LEASE_MS, object_store)
    assert index.begin_objects(session) == []
    return session


def assign(index, partition_id, session):
    """Make a session the leader of a partition; return the epoch, or None if it has ended."""
    index.add_partition(partition_id)
    epoch = index.partition(partition_id).leader_epoch
    return epoch + 1 if index.assign([Assignment(partition_id, session, epoch)]) else None


def snapshot_of(index, partition_id):
    """Return the stored snapshot of a partition, or None if there is none."""
    found = index.beginnings([partition_id], most=0, most_bytes=0)
    return found[0].head.snapshot if found else None


class FlushEngine(ScriptedEngine):
    """A ``FlushCommitter`` whose calls of the index may take long, and their answers get lost.

    It has a new session as soon as the old one is lost.
    """

    def __init__(self, index=None):
        super().__init__()
        self.index = index or MemoryIndex()
        self.session = None
        self._lives = 0
        self._pending = None
        """The flush under way: it is called again until an answer is heard."""

    def start(self, store, listener=None):
        """Start the commits of ``store`` here; ``listener`` gets the events in its place."""
        store.start_on(FlushCommitter(MemoryLogIndex(self.index), listener or store))
        self._begin_session()

    def _begin_session(self):
        self._lives += 1
        self.session = register(self.index, 1, self._lives)
        self.committer.begin_session(self.session)

    def end_session(self, store):
        """End the session without a flush."""
        self.committer.end_session(self.session)
        store.journal.add_operation(lambda: None)

    @property
    def busy(self):
        return super().busy or self._pending is not None

    def commit_unheard(self, most=1000):
        """Flush up to ``most`` groups, or those under way; the answer is lost on its way."""
        if self._pending is None:
            groups = self._submitted
            rest = [groups.pop() for _ in range(len(groups) - most)]
            current = deque(self.committer.of_this_run(groups))
            groups.clear()
            if current:
                self._pending = self.committer.take(current)
            groups.extend([*current, *reversed(rest)])
        if self._pending is None:
            return None
        if self._pending.flush is None:
            return self._pending.answer
        return self.index.commit_flush(self._pending.session, self._pending.flush)

    def commit(self, most=1000):
        """Commit the oldest flush, and report the result to the store."""
        answer = self.commit_unheard(most)
        if self._pending is None:
            return
        pending, self._pending = self._pending, None
        self.committer.finish(pending, answer)
        if answer.outcome is Outcome.FENCED:
            self._begin_session()


class Stranger:
    """Another broker's session, which may lead partitions and write to them."""

    def __init__(self, index):
        self.index = index
        self.session = register(index, 2)
        self._flushes = 0

    def append(self, partition_id, data):
        """Make a batch of one record durable."""
        state = self.index.partition(partition_id)
        end = state.log_end_offset
        data = placed(bytes(data), read_header(data), end, state.leader_epoch)
        item = Item(partition_id, state.leader_epoch, end, end + 1, 0, len(data))
        flush = Flush(Lane.INLINE, self._flushes, [item], (), data)
        assert self.index.commit_flush(self.session, flush).outcome is Outcome.COMMITTED
        self._flushes += 1


def durable_batches(index, partition_id):
    """The bytes of each batch that is durable."""
    return [bytes(each) for each in read_log(index, partition_id).batches]
