"""A seeded random workload on a store, with the model beside it."""

from random import Random
from typing import ClassVar

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.records import Record, encode_batch
from barnabas.storage.compaction.retention import apply_retention
from barnabas.storage.journal.journal import CommitGroup, WhenDurable
from barnabas.storage.journal.journal_format import ENTRY, ENTRY_BYTES
from barnabas.storage.log.append_run import append_run
from barnabas.storage.log.config import LOG_APPEND_TIME, LogConfig
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import PartitionSpec, StoreSettings
from tests.crash.model import Event, Model
from tests.crash.scripted_engine import ScriptedEngine

ROOT = "/data"
SETTINGS = StoreSettings(journal_file_bytes=72 * 1024, synced_alone_max=0, checkpoint_turn_effort=1)
"""A checkpoint prepares one log in a turn of the loop, so that the workload comes in between."""
TOPICS = ("alpha", "beta", "gamma")

CONFIGS = {
    "alpha": LogConfig(segment_bytes=1500, index_interval_bytes=100, retention_ms=60_000),
    "beta": LogConfig(segment_bytes=100_000, index_interval_bytes=300, retention_bytes=90_000),
    "gamma": LogConfig(segment_bytes=4000, segment_ms=5000, timestamp_type=LOG_APPEND_TIME),
}


class Workload:
    """One broker's life after another on one disk; ``model`` and ``specs`` outlive them.

    ``specs`` stands for the MetaStore: a topic's creation or deletion is durable there before the
    store hears of it.
    """

    topics: tuple[str, ...] = TOPICS
    configs = CONFIGS
    actions: ClassVar[dict[str, int]] = {}

    def __init__(self, disk: SimulatedFileSystem, random: Random) -> None:
        self.disk = disk
        self.random = random
        self.model = Model()
        self.specs: dict[int, PartitionSpec] = {}
        self.boots = 0
        self.now_ms = 1_000_000
        self.failures: list[BaseException] = []
        self._next_partition_id = 1
        self._next_producer_id = 1
        self._retired: dict[int, list[Event]] = {}
        for topic in self.topics:
            self._specify(topic)
        for partition_id in self.specs:
            self.model.create(partition_id)

    def _specify(self, topic: str) -> PartitionSpec:
        partition_id = self._next_partition_id
        self._next_partition_id += 1
        topic_id, config = self.random.randbytes(16), self.configs[topic]
        spec = PartitionSpec(partition_id, topic, 0, topic_id, config)
        self.specs[partition_id] = spec
        return spec

    # Lives

    def boot(self) -> None:
        """Start a broker on the disk and make its first checkpoint."""
        self.boots += 1
        self.engine = ScriptedEngine(on_group=self.model.end_group)
        self.store = boot_store(self.disk, self.specs, self.engine, lambda: self.now_ms, self.boots)
        self.store.callbacks.on_fatal = self.failures.append
        self.store.checkpoint()
        self.engine.settle()

    def shut_down(self) -> None:
        """End the broker in good order."""
        self.engine.settle()
        self.store.checkpoint(clean=True)
        self.engine.settle()
        self.store.close()

    def steps(self, count: int) -> None:
        for _ in range(count):
            self.step()

    def step(self) -> None:
        """Do one random thing: to a log, or on one of the threads."""
        self.now_ms += self.random.choice((0, 1, 5, 400))
        names, weights = zip(*self.actions.items(), strict=True)
        getattr(self, self.random.choices(names, weights)[0])()
        if self.failures:
            raise self.failures[0]

    # The threads

    def turn(self) -> None:
        for _ in range(self.random.choice((1, 2, 2))):  # One more may bring something, or nothing.
            self.engine.turn(disk_is_quick=self.now_ms % 4 == 0)

    def commit(self) -> None:
        most = self.random.choice((1, 1, 2, 100))
        self.engine.commit(most, is_heard_at_once=self.now_ms % 3 == 0)

    def write(self) -> None:
        self.engine.write()

    def aside(self) -> None:
        self.engine.aside()

    def checkpoint(self) -> None:
        self.store.checkpoint()

    # Appends

    def any_log(self) -> PartitionLog | None:
        ids = sorted(self.store.logs)
        return self.store.get(self.random.choice(ids)) if ids else None

    def records(self) -> list[Record]:
        random = self.random
        return [
            Record(
                number,
                self.now_ms - random.randrange(2000),
                b"k",
                random.randbytes(random.choice((1, 20, 20, 150))),
            )
            for number in range(random.choice((1, 1, 2, 5)))
        ]

    def plain(self) -> None:
        self._append(encode_batch(self.records()), {})

    def run(self) -> None:
        """Append small batches that arrived together, of one idempotent producer or of none."""
        log = self.any_log()
        if log is None:
            return
        identity, epoch, sequence = -1, -1, -1
        if self.random.random() < 0.5:
            identity, epoch, sequence = self._new_producer(transactional=False)
        batches, fields = [], []
        for _ in range(self.random.choice((1, 3, 5, 20))):
            records = self.records()
            producer = {
                "producer_id": identity,
                "producer_epoch": epoch,
                "base_sequence": sequence,
            }
            batches.append(encode_batch(records, **producer))
            fields.append(producer)
            if identity >= 0:
                sequence = (sequence + len(records)) % 2**31
        offsets, group = append_run(log, batches)
        ends = [*offsets[1:], log.next_offset]
        for sent, own, base, end in zip(batches, fields, offsets, ends, strict=False):
            event = Event(log.partition_id, base, end, sent=sent, append_time_ms=-1, **own)
            self._acknowledge(self.model.add(event), group)
        for sent, own in list(zip(batches, fields, strict=True))[len(offsets) :]:
            self._append(sent, own, log=log)

    def large(self) -> None:
        """Append a batch that the log keeps by reference instead of a copy."""
        record = Record(0, self.now_ms, b"k", self.random.randbytes(66_000))
        self._append(encode_batch([record]), {}, stable=True)

    def idempotent(self) -> None:
        self._produce(transactional=False)

    def transactional(self) -> None:
        self._produce(transactional=True)

    def _produce(self, *, transactional: bool) -> None:
        log = self.any_log()
        if log is None:
            return
        known = self.model.partitions[log.partition_id].producers
        # Producers are of one kind for life: odd ids are transactional.
        mine = sorted(identity for identity in known if bool(identity % 2) == transactional)
        if not mine or self.random.random() < 0.2:
            identity, epoch, sequence = self._new_producer(transactional=transactional)
        else:
            identity = self.random.choice(mine)
            epoch, sequence = known[identity].epoch, known[identity].next_sequence
            if known[identity].transaction_start is None and self.random.random() < 0.1:
                epoch, sequence = epoch + 1, 0
        fields = {
            "producer_id": identity,
            "producer_epoch": epoch,
            "base_sequence": sequence,
            "transactional": transactional,
        }
        self._append(encode_batch(self.records(), **fields), fields, log=log)

    def _new_producer(self, *, transactional: bool) -> tuple[int, int, int]:
        identity = 2 * self._next_producer_id + transactional
        self._next_producer_id += 1
        # Near the end of the numbers now and then: they wrap (S7).
        return identity, 0, self.random.choice((0, 0, 2**31 - 2))

    def _append(
        self,
        sent: bytes,
        fields: dict,
        *,
        log: PartitionLog | None = None,
        stable: bool = False,
    ) -> None:
        log = log or self.any_log()
        if log is None:
            return
        appended = log.append(memoryview(bytearray(sent)), stable=stable)
        event = Event(
            log.partition_id,
            appended.base_offset,
            log.next_offset,
            sent=sent,
            append_time_ms=appended.log_append_time_ms,
            **fields,
        )
        self._acknowledge(self.model.add(event), appended.group)

    def _acknowledge(self, number: int, durable: CommitGroup | None) -> None:
        """Acknowledge a batch as the broker would: after ``durable``, or at once."""
        if durable is None:
            self.model.promise(number)
        else:
            durable.add_waiter(WhenDurable(lambda: self.model.promise(number)))

    def duplicate(self) -> None:
        """Send one of a producer's last five batches again."""
        log = self.any_log()
        if log is None:
            return
        producers = self.model.partitions[log.partition_id].producers
        batches = [batch for producer in producers.values() for batch in producer.batches]
        if not batches:
            return
        again = self.random.choice(batches)
        end = log.next_offset
        appended = log.append(memoryview(bytearray(again.sent)))
        assert appended.base_offset == again.base_offset, "a duplicate got another offset (S4)"
        assert log.next_offset == end, "a duplicate was appended (S2)"
        number = next(at for at, event in enumerate(self.model.events, 1) if event is again)
        self._acknowledge(number, appended.group)

    def marker(self) -> None:
        """End a transaction that is open somewhere."""
        log = self.any_log()
        if log is None:
            return
        producers = self.model.partitions[log.partition_id].producers
        identities = sorted(
            identity
            for identity, producer in producers.items()
            if producer.transaction_start is not None
        )
        if not identities:
            return
        identity = self.random.choice(identities)
        commit = self.random.random() < 0.5
        epoch = producers[identity].epoch
        appended = log.append_marker(
            TransactionMarker(identity, epoch, coordinator_epoch=self.boots, commit=commit)
        )
        group = appended.group
        assert group is not None
        event = Event(
            log.partition_id,
            appended.base_offset,
            log.next_offset,
            "commit" if commit else "abort",
            producer_id=identity,
            producer_epoch=epoch,
        )
        self._acknowledge(self.model.add(event), group)

    # Log starts and partitions

    def delete_records(self) -> None:
        log = self.any_log()
        if log is not None and log.high_watermark:
            self._moved(log, log.delete_records(self.random.randrange(log.high_watermark + 1)))

    def retention(self) -> None:
        log = self.any_log()
        if log is not None:
            self._moved(log, apply_retention(log, self.store.journal, self.now_ms))

    def wait_long(self) -> None:
        self.now_ms += 30_000

    def _moved(self, log: PartitionLog, group: CommitGroup | None) -> None:
        if group is None:
            return
        target = ENTRY.unpack(group.table[-ENTRY_BYTES:])[3]
        self._acknowledge(self.model.add(Event(log.partition_id, target, target, "start")), group)

    def create(self) -> None:
        taken = {spec.topic for spec in self.specs.values()}
        free = [topic for topic in self.topics if topic not in taken]
        if not free:
            return
        spec = self._specify(self.random.choice(free))
        self.model.create(spec.partition_id)
        self.store.create(spec.partition_id, spec.topic, 0, spec.topic_id, spec.config)

    def delete(self) -> None:
        if not self.specs:
            return
        partition_id = self.random.choice(sorted(self.specs))
        del self.specs[partition_id]
        self.model.delete(partition_id)
        self.store.delete(partition_id)

    def recreate(self) -> None:
        self.delete()
        self.create()


ACTIONS = {
    "plain": 12,
    "run": 8,
    "idempotent": 16,
    "transactional": 16,
    "large": 4,
    "duplicate": 5,
    "marker": 9,
    "delete_records": 5,
    "retention": 3,
    "wait_long": 1,
    "create": 3,
    "delete": 1,
    "recreate": 1,
    "turn": 30,
    "commit": 18,
    "write": 10,
    "checkpoint": 6,
    "aside": 8,
}


Workload.actions = ACTIONS


def boot_store(
    disk: SimulatedFileSystem,
    specs: dict[int, PartitionSpec],
    engine: ScriptedEngine,
    now_ms,
    leader_epoch: int,
) -> LogStore:
    """Recover what is on ``disk``; the caller makes the first checkpoint."""
    store = LogStore(disk, ROOT, engine=engine, now_ms=now_ms, settings=SETTINGS)
    lock_directory(store)
    open_store(store, specs.values(), leader_epoch=leader_epoch)
    return store
