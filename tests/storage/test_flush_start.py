"""A store without a journal: its directory is a cache, its logs come from a log index."""

from dataclasses import replace

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import LogClosed, NotACache
from barnabas.storage.log.config import LogConfig
from barnabas.storage.repair.check import verify
from barnabas.storage.store.flush_start import CACHE_MARK, open_cache, wipe
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory
from barnabas.storage.store.store_parts import PartitionSpec
from tests.storage.flushes import FlushEngine, Stranger, assign, durable_batches, register
from tests.storage.stores import NOW_MS, ROOT, Host, batch, from_producer, read_all


class Life:
    """One process of a broker that leads some partitions."""

    def __init__(self, index, disk, *partition_ids, life=0, config=None):
        self.index = index
        self.disk = disk
        self.engine = FlushEngine(index)
        self.store = LogStore(disk, ROOT, engine=self.engine, now_ms=lambda: NOW_MS)
        self.store.callbacks.on_fatal = self._fatal
        lock_directory(self.store)
        self.session = register(index, 1, life)
        specs = []
        for number in partition_ids:
            epoch = assign(index, number, self.session)
            topic_id = bytes([number] * 16)
            config = config or LogConfig()
            specs.append(PartitionSpec(number, f"t{number}", 0, topic_id, config, epoch))
        open_cache(self.store, MemoryLogIndex(index), self.session, specs)

    def _fatal(self, error):
        raise error

    def append(self, partition_id, *sent):
        for each in sent:
            self.store.get(partition_id).append(each)
            self.engine.settle()

    def names(self):
        return self.disk.list_directory(ROOT)


@pytest.fixture
def index():
    return MemoryIndex()


def test_durable_batches_survive_the_loss_of_the_process(index):
    disk = SimulatedFileSystem()
    first = Life(index, disk, 1, 2)
    first.append(1, from_producer(7, 0, 3), from_producer(7, 3, transactional=True), batch(2))
    first.append(2, batch(5))
    before = {number: read_all(first.store.get(number)) for number in (1, 2)}
    first.store.get(1).append(batch(value=b"never flushed"))
    disk = disk.kill()
    second = Life(index, disk, 1, 2, life=1)
    for number, batches in before.items():
        assert read_all(second.store.get(number)) == batches
        assert second.store.get(number).leader_epoch == 1
    assert second.store.get(1).last_stable_offset == 3
    second.append(1, from_producer(7, 4, transactional=True))
    assert [len(durable_batches(index, number)) for number in (1, 2)] == [4, 1]
    assert [verify(log) for log in second.store.logs.values()] == [[], []]
    assert not second.store.get(1).unflushed, "its files are written anew"
    second.store.close()


def test_start_empties_the_cache_directory(index):
    disk = SimulatedFileSystem()
    Life(index, disk, 1, 2).append(1, batch())
    disk.make_directory(f"{ROOT}/gone-0.00ff-delete")
    disk.make_directory(f"{ROOT}/lost+found")
    assert {"t1-0", "gone-0.00ff-delete"} <= set(disk.list_directory(ROOT))
    again = Life(index, disk.kill(), life=1)
    assert again.names() == [CACHE_MARK, "barnabas-lock", "lost+found"]


def test_start_refuses_a_directory_that_is_not_a_cache(index):
    host = Host()
    host.boot()
    host.append(batch())
    host.shut_down()
    before = host.disk.list_directory(ROOT)
    with pytest.raises(NotACache, match="holds barnabas-"):
        Life(index, host.disk)
    assert host.disk.list_directory(ROOT) == before


@pytest.mark.parametrize("name", ["orders-0", "meta.properties"])
def test_a_directory_with_anything_in_it_becomes_no_cache(name):
    disk = SimulatedFileSystem()
    disk.make_directory(ROOT)
    disk.open(f"{ROOT}/{name}", create=True).close()
    with pytest.raises(NotACache, match=name):
        wipe(disk, ROOT)
    assert disk.list_directory(ROOT) == [name]


def test_a_start_that_was_cut_short_is_made_again():
    disk = SimulatedFileSystem()
    disk.make_directory(ROOT)
    disk.open(f"{ROOT}/{CACHE_MARK}.tmp", create=True).close()
    wipe(disk, ROOT)
    wipe(disk, ROOT)
    assert CACHE_MARK in disk.list_directory(ROOT)


# ------------------------------------------------------------------------------------ checkpoints


def rolling(index):
    """A life with six segments of one batch each in its one log."""
    life = Life(index, SimulatedFileSystem(), 1, config=LogConfig(segment_bytes=150))
    life.append(1, *(batch(value=b"v" * 60) for _ in range(6)))
    assert len(life.store.get(1).segments) == 6
    return life


def test_a_checkpoint_syncs_and_writes_nothing_and_waits_for_what_was_placed(index, monkeypatch):
    life = rolling(index)
    for name in ("sync_directory", "write_file_atomically", "open_device"):
        monkeypatch.setattr(life.disk, name, pytest.fail)
    life.store.get(1).append(batch())
    done = []
    life.store.checkpoint(lambda: done.append(len(durable_batches(index, 1))))
    life.store.checkpoint(lambda: done.append("another"))
    assert life.store.is_checkpointing
    assert not done
    life.engine.settle()
    assert done == [7, "another"]
    assert not life.store.is_checkpointing
    assert not life.store.get(1).unflushed


def test_a_checkpoint_removes_the_files_that_no_log_needs(index):
    life = rolling(index)
    assert not life.store.wants_checkpoint
    life.store.get(1).delete_records(4)
    life.engine.settle()
    assert index.partition(1).log_start_offset == 4
    assert life.store.wants_checkpoint
    life.store.checkpoint()
    life.engine.settle()
    assert not life.store.wants_checkpoint
    left = {name[:20] for name in life.disk.list_directory(f"{ROOT}/t1-0") if ".log" in name}
    assert left == {f"{offset:020}" for offset in (4, 5)}
    assert len(read_all(life.store.get(1))) == 2


def test_a_checkpoint_ends_even_if_what_it_waits_for_is_refused(index):
    life = rolling(index)
    assign(index, 1, Stranger(index).session)
    life.store.get(1).append(batch())
    done = []
    life.store.checkpoint(lambda: done.append(True))
    life.engine.settle()
    assert done == [True]
    assert not life.store.logs


@pytest.mark.parametrize("turns", range(5))
@pytest.mark.parametrize("refused", [1, 3])
def test_flush_that_is_refused_between_the_turns_of_a_checkpoint(index, refused, turns):
    life = Life(index, SimulatedFileSystem(), 1, 2, 3, config=LogConfig(segment_bytes=150))
    life.store.settings = replace(life.store.settings, checkpoint_turn_effort=1)
    for number in (1, 2, 3):
        life.append(number, *(batch(value=b"v" * 60) for _ in range(6)))
    life.store.get(2).delete_records(4)
    life.engine.settle()
    done = []
    life.store.checkpoint(lambda: done.append(True))
    for _ in range(turns):
        life.engine.end_turn()
    assign(index, refused, Stranger(index).session)
    life.store.get(refused).append(batch())
    life.engine.settle()
    assert done == [True]
    assert refused not in life.store.logs
    left = {name[:20] for name in life.disk.list_directory(f"{ROOT}/t2-0") if ".log" in name}
    assert left == {f"{offset:020}" for offset in (4, 5)}
    for number in {1, 2, 3} - {refused}:
        life.append(number, batch())
        assert len(durable_batches(index, number)) >= 3


def test_the_last_checkpoint_closes_the_logs(index):
    life = rolling(index)
    done = []
    life.store.checkpoint(lambda: done.append(True), clean=True)
    log = life.store.get(1)
    with pytest.raises(LogClosed):
        log.append(batch())
    life.engine.settle()
    assert done == [True]
    life.store.close()
