"""A checkpoint of many logs: prepared in several turns of the loop, other work between them."""

from dataclasses import replace

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.log.config import LogConfig
from barnabas.storage.repair.check import verify
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import PartitionSpec, StoreSettings
from tests.crash.scripted_engine import ScriptedEngine
from tests.storage.stores import NOW_MS, ROOT, batch, from_producer, read_all

SETTINGS = StoreSettings(journal_file_bytes=64 << 10, synced_alone_max=0, checkpoint_turn_effort=10)
LOGS = 35


class Store:
    """A store of many logs; nothing moves unless the test says so."""

    def __init__(self, disk=None, *, settings=SETTINGS, logs=LOGS, config=None, boots=0):
        self.disk = disk or SimulatedFileSystem()
        self.engine = ScriptedEngine()
        self.logs = LogStore(
            self.disk, ROOT, engine=self.engine, now_ms=lambda: NOW_MS, settings=settings
        )
        self.failures = []
        self.logs.callbacks.on_fatal = self.failures.append
        lock_directory(self.logs)
        self.specs = [
            PartitionSpec(number, "topic", number, bytes([7] * 16), config or LogConfig())
            for number in range(1, logs + 1)
        ]
        open_store(self.logs, self.specs, leader_epoch=boots)
        self.logs.checkpoint()
        self.engine.settle()

    def append(self, partition_id, sent=None):
        """Append one batch, and make it durable while a checkpoint is under way."""
        log = self.logs.get(partition_id)
        log.append(batch() if sent is None else sent)
        self.logs.journal.flush()
        self.engine.commit()
        self.engine.write()
        self.engine.hear(1000)

    def append_to_all(self):
        for log in self.logs.logs.values():
            log.append(batch())
        self.engine.settle()

    def prepared(self):
        """Partition ids of the logs whose files no checkpoint has to sync any more."""
        return {each for each, log in self.logs.logs.items() if not log.dirty_segments}

    def turns(self, *, clean=False):
        """Run a checkpoint; return how many logs each turn of the loop prepared, if any."""
        counts, before = [], len(self.prepared())
        self.logs.checkpoint(clean=clean)
        while True:
            after = len(self.prepared())
            counts.append(after - before)
            before = after
            if not self.engine.waiting[0]:
                return [count for count in counts if count]
            self.engine.end_turn()

    def after_crash(self, **changes):
        """The store that the next process finds, with the same topics."""
        return Store(self.disk.kill(), logs=len(self.specs), boots=1, **changes)


def test_turn_of_a_checkpoint_prepares_no_more_logs_than_its_effort():
    store = Store()
    store.append_to_all()
    assert not store.prepared()
    assert store.turns() == [10, 10, 10, 5]
    store.engine.settle()
    assert not store.logs.is_checkpointing


def test_turn_of_a_clean_checkpoint_is_bounded_too():
    store = Store()
    store.append_to_all()
    assert store.turns(clean=True) == [10, 10, 10, 5]
    store.engine.settle()
    store.logs.close()
    assert len(store.after_crash().prepared()) == LOGS


def test_long_log_takes_more_of_a_turn():
    """The effort of five segments is five, so that two logs exceed ten."""
    store = Store(config=LogConfig(segment_bytes=150))
    for log in store.logs.logs.values():
        for _ in range(5):
            log.append(batch(value=b"v" * 60))
    store.engine.settle()
    assert set(store.turns()) == {2, 1}


def test_snapshot_of_many_producers_takes_a_turn_of_its_own():
    store = Store()
    for log in store.logs.logs.values():
        for producer in range(12):
            log.append(from_producer(producer, 0))
        log.snapshots.batches_since = 1000
    store.engine.settle()
    assert store.turns() == [1] * LOGS


def test_journal_keeps_what_was_appended_between_the_turns_d11():
    """Log 1 is prepared first. Its later batches fill files before the last log is prepared."""
    store = Store()
    store.append_to_all()
    store.logs.checkpoint()
    while store.engine.waiting[0]:
        store.append(1, batch(value=b"v" * 30_000))
        store.engine.end_turn()
    kept = store.logs.get(1).next_offset
    used_bytes = store.logs.journal_bytes
    assert used_bytes > 64 << 10, "the batches fill no file"
    store.engine.settle()
    assert not store.logs.is_checkpointing
    assert store.logs.journal_bytes == used_bytes, "a file was given back that replay needs"
    for _ in range(8):
        store.append(2, batch(value=b"v" * 30_000))
    again = store.after_crash()
    assert again.logs.get(1).next_offset == kept
    assert len(read_all(again.logs.get(1))) == kept
    assert not [problem for log in again.logs.logs.values() for problem in verify(log)]


def test_checkpoint_leaves_out_a_log_that_is_deleted_between_its_turns():
    store = Store()
    store.append_to_all()
    store.logs.checkpoint()
    first, last = store.specs[0], store.specs[-1]
    for spec in (first, last):
        store.logs.delete(spec.partition_id)
    store.logs.create(99, first.topic, first.partition, bytes([8] * 16), first.config)
    store.append(99)
    store.engine.settle()
    assert not store.logs.is_checkpointing
    store.append(99)
    specs = [*store.specs[1:-1], replace(first, partition_id=99, topic_id=bytes([8] * 16))]
    logs = LogStore(
        store.disk.kill(), ROOT, engine=ScriptedEngine(), now_ms=lambda: NOW_MS, settings=SETTINGS
    )
    lock_directory(logs)
    report = open_store(logs, specs, leader_epoch=1, deleted_ids={1, LOGS}, removable=())
    assert logs.get(99).next_offset == 2
    assert not report.clean
    assert all(logs.get(spec.partition_id).next_offset for spec in specs)


def test_closing_between_the_turns_ends_the_checkpoint():
    store = Store()
    store.append_to_all()
    done = []
    store.logs.checkpoint(lambda: done.append(True))
    store.logs.close()
    store.engine.settle()
    assert not store.engine.busy
    assert not done
    again = store.after_crash()
    assert all(log.next_offset == 1 for log in again.logs.logs.values())


def test_failure_between_the_turns_ends_the_checkpoint():
    store = Store()
    store.append_to_all()
    store.logs.checkpoint()
    prepared = store.prepared()
    store.logs.failed(OSError("the disk is gone"))
    store.engine.settle()
    assert store.prepared() == prepared
    assert len(store.failures) == 1


def test_second_checkpoint_waits_for_the_first_to_be_prepared():
    store = Store()
    store.append_to_all()
    done = []
    store.logs.checkpoint(lambda: done.append("first"))
    store.append(1)
    store.logs.checkpoint(lambda: done.append("second"))
    assert store.logs.generation == 2
    store.engine.settle()
    assert done == ["first", "second"]
    assert 1 not in store.prepared(), "it was appended to after its turn"
    store.logs.checkpoint()
    store.engine.settle()
    assert len(store.prepared()) == LOGS
