"""A long log is written while it is read: whole, or not at all, after any failure."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator

import pytest

from barnabas.broker.testing.disk.simulated import Operation, SimulatedFileSystem
from barnabas.broker.testing.store.index import MemoryIndex
from barnabas.broker.testing.store.log_index import MemoryLogIndex
from barnabas.storage.errors import Corrupt, LedSince, NoRoom
from barnabas.storage.files.file_system import FileSystem
from barnabas.storage.files.io import LocalFileSystem
from barnabas.storage.journal.committer import until_there_is_room
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.log_directory import DELETED_SUFFIX, LOADING_SUFFIX, LogDirectory
from barnabas.storage.log.partition_log import PartitionLog
from barnabas.storage.repair.check import verify
from barnabas.storage.replicated.loading import DurableLog
from barnabas.storage.replicated.log_reading import beginning_of, log_in_pieces
from barnabas.storage.store import loading_apart
from barnabas.storage.store.flush_start import wipe
from barnabas.storage.store.loading_apart import filled_apart, remove_apart
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.store_parts import PartitionSpec
from tests.storage.flushes import FlushEngine
from tests.storage.leading import Broker, producers_of
from tests.storage.stores import NOW_MS, ROOT, batch, from_producer, read_all

CONFIG = LogConfig(segment_bytes=400)
BATCHES = 12


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading_apart, "PIECE_BYTES", 2 * len(batch()))
    monkeypatch.setattr("barnabas.storage.journal.committer.FULL_DISK_PAUSE_SECONDS", 0.001)


@pytest.fixture
def leader() -> Broker:
    """Return a leader that has written the loaded log, with a snapshot in the middle of it."""
    leader = Broker(MemoryIndex(), CONFIG, 0)
    for number in range(BATCHES):
        leader.append(from_producer(7, number), batch())
        if number == BATCHES // 2:
            leader.keep_snapshot()
    return leader


class EngineAtOnce(FlushEngine):
    """Has what threads tell the loop happen there and then."""

    def call(self, callback: Callable[[], None]) -> None:
        callback()


def store_of(leader: Broker, engine: FlushEngine | None = None) -> LogStore:
    disk = SimulatedFileSystem()
    disk.make_directory(ROOT)
    engine = engine or FlushEngine(leader.index)
    return LogStore(disk, ROOT, engine=engine, now_ms=lambda: NOW_MS)


def durable_of(leader: Broker) -> DurableLog:
    found = beginning_of(MemoryLogIndex(leader.index), 1)
    assert found is not None
    return log_in_pieces(found.head, found.extents)


def load(
    leader: Broker, store: LogStore, durable: DurableLog | None = None, topic: str = "t1"
) -> PartitionLog:
    spec = PartitionSpec(1, topic, 0, bytes(16), CONFIG, leader.log.leader_epoch)
    return filled_apart(store, spec, durable or durable_of(leader), lambda: False)


def require_whole(leader: Broker, log: PartitionLog) -> None:
    assert verify(log) == []
    assert not log.unflushed
    assert [bytes(each) for _, each in read_all(log)] == (
        [bytes(each) for _, each in read_all(leader.log)]
    )
    bounds = ("log_start_offset", "high_watermark", "last_stable_offset", "next_offset")
    assert [getattr(log, each) for each in bounds] == (
        [getattr(leader.log, each) for each in bounds]
    )
    assert producers_of(log) == producers_of(leader.log)
    assert log.leader_epochs == leader.log.leader_epochs


def names(store: LogStore) -> list[str]:
    found: list[str] = store.file_system.list_directory(ROOT)
    return found


def test_loaded_log_equals_the_written_one(leader):
    store = store_of(leader)
    log = load(leader, store)
    require_whole(leader, log)
    (name,) = names(store)
    assert name.endswith(LOADING_SUFFIX)
    log.directory.take_place()
    assert names(store) == ["t1-0"]
    require_whole(leader, log)
    log.directory.remove()
    assert names(store) == []


def test_readers_find_files_that_have_moved_under_them(leader):
    store = store_of(leader)
    log = load(leader, store)
    directory = log.directory
    (apart,) = names(store)
    where = directory.file_path

    def moved_meanwhile(file_name: str) -> str:
        path: str = where(file_name)
        if directory.is_apart:
            directory.take_place()
        return path

    directory.file_path = moved_meanwhile
    assert directory.read_file("00000000000000000000.log")
    assert names(store) == ["t1-0"] != [apart]
    with pytest.raises(FileNotFoundError):
        directory.read_file("00000000000000000000.none")


def test_readers_are_sent_nowhere_before_the_files_are_there(leader):
    store = store_of(leader)
    log = load(leader, store)
    file_name = "00000000000000000000.log"
    found = []

    def look(operation: Operation) -> None:
        if operation.name == "rename":
            found.append(store.file_system.exists(log.directory.file_path(file_name)))

    store.file_system.before = look
    log.directory.take_place()
    assert found == [True]
    assert store.file_system.exists(log.directory.file_path(file_name))


def test_a_full_disk_is_waited_for_when_it_takes_its_place(leader):
    store = store_of(leader)
    log = load(leader, store)
    store.file_system.fail(store.file_system.operations + 1, errno.ENOSPC)
    until_there_is_room(log.directory.take_place, store)
    assert names(store) == ["t1-0"]
    require_whole(leader, log)


LONGEST = "t" * 249
"""A topic name of the maximum length."""


@pytest.mark.parametrize("length", [len(LONGEST), 214, 213, 212])
def test_a_topic_of_any_length_is_loaded_moved_and_removed_on_a_real_disk(
    leader, tmp_path, monkeypatch, length
):
    topic = LONGEST[:length]
    disk = LocalFileSystem()
    root = str(tmp_path)
    wipe(disk, root)
    store = LogStore(disk, root, engine=FlushEngine(leader.index), now_ms=lambda: NOW_MS)
    marks = disk.list_directory(root)

    def places() -> list[str]:
        return [each for each in disk.list_directory(root) if each not in marks]

    log = load(leader, store, topic=topic)
    (apart,) = places()
    assert apart.endswith(LOADING_SUFFIX)
    require_whole(leader, log)
    log.directory.take_place()
    assert places() == [f"{topic}-0"]
    require_whole(leader, log)
    monkeypatch.setattr("barnabas.storage.log.log_directory.remove_tree", lambda *_: None)
    log.directory.remove()
    (doomed,) = places()
    assert doomed.endswith(f"-0.{bytes(16).hex()}{DELETED_SUFFIX}")
    load(leader, store, topic=topic)
    assert len(places()) == 2
    wipe(disk, root)
    assert places() == [], "the next start finds what the former life left"


def test_partitions_of_one_long_topic_have_names_of_their_own_while_they_go(tmp_path, monkeypatch):
    monkeypatch.setattr("barnabas.storage.log.log_directory.remove_tree", lambda *_: None)
    disk: FileSystem = LocalFileSystem()
    for index in (0, 10, 99_999):
        directory = LogDirectory(disk, str(tmp_path), f"{LONGEST}-{index}", bytes(16))
        directory.write_file("leader-epoch-checkpoint", b"")
        directory.remove()
    assert len(disk.list_directory(str(tmp_path))) == 3


def test_load_on_a_full_disk_leaves_no_files_and_succeeds_later(leader):
    whole = store_of(leader)
    size = load(leader, whole).size_bytes
    operations = range(store_of(leader).file_system.operations, whole.file_system.operations)
    assert len(operations) > BATCHES
    for number in operations:
        store = store_of(leader, EngineAtOnce(leader.index))
        store.file_system.fail(number + 1, errno.ENOSPC)
        with pytest.raises(NoRoom) as full:
            load(leader, store)
        assert names(store) == []
        assert not store.full, "appends go on"
        assert 0 < full.value.needed_bytes <= size
        require_whole(leader, load(leader, store))


def test_where_removing_needs_room_that_is_waited_for(leader):
    """On some file systems; the broker would end, or leave what it has written."""
    store = store_of(leader)
    first_write, first_removal = 4, 5
    store.file_system.fail(first_write, errno.ENOSPC)
    store.file_system.fail(first_removal, errno.EDQUOT)
    with pytest.raises(NoRoom):
        load(leader, store)
    assert store.file_system.operations > first_removal
    assert names(store) == []


@pytest.mark.parametrize("is_apart", [False, True])
def test_a_full_disk_is_waited_for_wherever_a_partition_is_removed(leader, is_apart):
    """A failed load leaves no file, also after a rename, and replaces no other directory."""
    after = 0
    while True:
        store = store_of(leader)
        log = load(leader, store)
        if not is_apart:
            log.directory.take_place()
        before = store.file_system.operations
        after += 1
        store.file_system.fail(before + after, errno.ENOSPC)
        until_there_is_room(log.directory.remove, store)
        assert names(store) == [], f"after {after} operations"
        if store.file_system.operations < before + after:
            break
        successor = load(leader, store)
        successor.directory.take_place()
        log.directory.remove()
        assert names(store) == ["t1-0"]
        require_whole(leader, successor)
    assert after > BATCHES


def test_load_stops_once_the_log_is_not_wanted(leader):
    store = store_of(leader)
    spec = PartitionSpec(1, "t1", 0, bytes(16), CONFIG, leader.log.leader_epoch)
    asked: list[list[str]] = []

    def is_over() -> bool:
        asked.append(names(store))
        return len(asked) > 3

    with pytest.raises(LedSince, match="is not wanted any more"):
        filled_apart(store, spec, durable_of(leader), is_over)
    assert asked[-1], "something was written"
    assert names(store) == []


def test_load_of_a_damaged_log_leaves_no_files(leader):
    def broken() -> Iterator[memoryview]:
        yield from list(durable_of(leader).batches)[:BATCHES]
        raise Corrupt("partition 1 in the store", 0, "the checksum does not match")

    store = store_of(leader)
    with pytest.raises(Corrupt):
        load(leader, store, durable_of(leader)._replace(batches=broken()))
    assert names(store) == []


def test_abandoned_load_leaves_no_files(leader):
    store = store_of(leader)
    log = load(leader, store)
    remove_apart(log)
    assert names(store) == []
    log.directory.take_place()
    assert names(store) == []
