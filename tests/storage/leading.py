"""A broker that leads one partition of a log index in memory, step by step in one thread."""

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.replicated.log_snapshot import take_snapshot
from barnabas.storage.replicated.stored_compaction import StoredCompaction
from barnabas.storage.store.flush_start import open_cache
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory
from barnabas.storage.store.store_parts import PartitionSpec
from tests.storage.cleaning import compact
from tests.storage.flushes import FlushEngine, assign, register
from tests.storage.stores import NOW_MS, ROOT
from tests.storage.test_cleaner_random import Reader

PORTION_BYTES = 700
MANY = 10_000


class Broker:
    """One process of a broker that leads partition 1."""

    def __init__(self, index, config, life, now_ms=NOW_MS):
        self.index = index
        self.now_ms = now_ms
        self.engine = FlushEngine(index)
        self.store = LogStore(
            SimulatedFileSystem(), ROOT, engine=self.engine, now_ms=lambda: self.now_ms
        )
        self.store.callbacks.on_fatal = self._fatal
        lock_directory(self.store)
        self.way = MemoryLogIndex(index)
        self.session = register(index, 1, life)
        epoch = assign(index, 1, self.session)
        spec = PartitionSpec(1, "t1", 0, bytes(16), config, epoch)
        self.open(spec)
        self.engine.settle()

    def open(self, spec):
        open_cache(self.store, self.way, self.session, [spec])

    def _fatal(self, error):
        raise error

    @property
    def log(self):
        return self.store.get(1)

    def append(self, *batches):
        """Append in one flush; answers the base offsets."""
        offsets = [self.log.append(each).base_offset for each in batches]
        self.engine.settle()
        return offsets

    def marker(self, producer_id, *, commit):
        self.log.append_marker(
            TransactionMarker(producer_id, 0, coordinator_epoch=1, commit=commit)
        )
        self.engine.settle()

    def compact(self, **more):
        count = compact(self.log, self.now_ms, **more)
        self.checkpoint()
        return count

    def checkpoint(self):
        self.store.checkpoint()
        self.engine.settle()

    def roll(self):
        """Begin a new segment, unless the active one is empty."""
        if self.log.active.size_bytes:
            self.log.roll(self.store.journal.group_for(0))
            self.engine.settle()

    def delete_records(self, offset):
        self.log.delete_records(offset)
        self.engine.settle()

    def keep_snapshot(self):
        snapshot = take_snapshot(self.log)
        assert self.way.put_snapshot(self.session, 1, self.log.leader_epoch, snapshot)
        return snapshot.next_offset

    def walk(
        self,
        steps=None,
        meanwhile=lambda: None,
        *,
        kind=StoredCompaction,
        portion_bytes=PORTION_BYTES,
    ):
        """Walk over the log; return whether the walk ended within ``steps`` steps aside."""
        snapshot_offset = self.keep_snapshot()
        walk = kind(self.log, self.way, self.session, Now, portion_bytes=portion_bytes).run(
            snapshot_offset
        )
        taken = 0
        try:
            while steps is None or taken < steps:
                walk.send(None)
                meanwhile()
                taken += 1
        except StopIteration as stop:
            return stop.value
        walk.close()
        return False


class Now:
    """An ``Aside`` that has done its work when it gives the loop a turn."""

    def __init__(self, work):
        self._work = work

    def __await__(self):
        result = self._work()
        yield
        return result


def producers_of(log):
    """Return the state of producers, without the times of their appends."""
    return {
        entry.producer_id: (
            entry.epoch,
            tuple(entry.batches),
            entry.coordinator_epoch,
            entry.transaction_first_offset,
        )
        for entry in log.producers.entries()
    }


def committed(log, start):
    """Return the reader of a whole log with `read_committed`."""
    reader = Reader()
    reader.position = start
    while reader.read(log, 3000):
        pass
    return reader


def stored_bytes(index):
    return sum(each.length for each in index.extent_sizes(1, 0, most=MANY))


def run(coroutine):
    """Run a walk to its end."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value
