"""A store on a simulated disk that tests boot, crash and boot again."""

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.records import Record, encode_batch, iterate_batches
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.memory_read import MemorySlice
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.readable_log import READ_UNCOMMITTED
from barnabas.storage.log.segment_read import read_waiting
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import PartitionSpec, StoreSettings
from tests.storage.engines import InlineEngine

ROOT = "/data"
NOW_MS = 1_000_000
SETTINGS = StoreSettings(journal_file_bytes=256 * 1024)


def batch(
    count=1, *, timestamp=NOW_MS, key=b"k", value=b"v" * 20, compression=0, step_ms=0, **producer
):
    """One client batch as received: ``count`` records, ``step_ms`` apart."""
    records = [Record(at, timestamp + at * step_ms, key, value) for at in range(count)]
    return memoryview(bytearray(encode_batch(records, compression=compression, **producer)))


def from_producer(producer_id, sequence, count=1, *, epoch=0, transactional=False, **more):
    """One batch of an idempotent or transactional producer."""
    return batch(
        count,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        transactional=transactional,
        **more,
    )


class Host:
    """A machine with one data directory and, after :meth:`boot`, a running store."""

    def __init__(self, config=None, *, disk=None, settings=SETTINGS, topics=("topic",)):
        self.disk = disk or SimulatedFileSystem()
        self.settings = settings
        self.now_ms = NOW_MS
        self.boots = 0
        self.specs = [
            PartitionSpec(number, topic, 0, bytes([number] * 16), config or LogConfig())
            for number, topic in enumerate(topics, 1)
        ]

    def boot(self, salvage=None, removable=None):
        """Recover and make the first checkpoint; answers the log of the first partition."""
        self.boots += 1
        self.engine = InlineEngine()
        self.store = LogStore(
            self.disk,
            ROOT,
            engine=self.engine,
            now_ms=lambda: self.now_ms,
            settings=self.settings,
        )
        self.failures = []
        self.store.callbacks.on_fatal = self.failures.append
        lock_directory(self.store)
        self.report = open_store(
            self.store,
            self.specs,
            leader_epoch=self.boots,
            removable=removable,
            deleted_ids=(),
            salvage=salvage,
        )
        self.checkpoint()
        return self.log

    @property
    def log(self) -> PartitionLog:
        return self.store.get(1)

    def step(self):
        self.engine.step()

    def checkpoint(self, *, clean=False):
        self.store.checkpoint(clean=clean)
        self.engine.step()

    def append(self, *batches):
        """Append to the first log and make it durable; answers the base offsets."""
        offsets = [self.log.append(each).base_offset for each in batches]
        self.step()
        return offsets

    def marker(self, producer_id, *, commit, epoch=0):
        self.log.append_marker(
            TransactionMarker(producer_id, epoch, coordinator_epoch=1, commit=commit)
        )
        self.step()

    def shut_down(self):
        self.checkpoint(clean=True)
        self.store.close()

    def kill(self):
        """End the process; everything written is in the page cache of the next one."""
        self.disk = self.disk.kill()

    def files(self, suffix, directory="topic-0"):
        """Paths of the files of a kind, oldest first."""
        path = f"{ROOT}/{directory}" if directory else ROOT
        return [f"{path}/{name}" for name in self.disk.list_directory(path) if suffix in name]

    def flip(self, path, position):
        """Damage one byte."""
        file = self.disk.open(path)
        byte = file.pread(1, position)
        file.pwritev([bytes([byte[0] ^ 0x55])], position)


def read_all(log, offset=None, isolation=READ_UNCOMMITTED, max_bytes=1 << 20):
    """Every visible batch from ``offset`` on, as (header, bytes)."""
    position = log.log_start_offset if offset is None else offset
    found = []
    last = -1
    while (plan := log.plan_read(position, max_bytes, isolation)) is not None:
        assert position > last, f"a read at {last} did not advance (L5)"
        last = position
        chunks = plan.chunks if isinstance(plan, MemorySlice) else [plan.load(read_waiting).data]
        for chunk in chunks:
            for at, header in iterate_batches(chunk):
                found.append((header, bytes(chunk[at : at + header.size])))
                position = header.next_offset
    return found
