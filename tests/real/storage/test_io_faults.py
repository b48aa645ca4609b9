"""Errors of the disk: a failed sync is final (D9), writes wait for a full disk (D10)."""

import asyncio
import errno

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFile, SimulatedFileSystem
from barnabas.storage.errors import StorageFull
from barnabas.storage.files.io import LocalFile, LocalFileSystem
from barnabas.storage.journal.journal import WhenDurable
from barnabas.storage.log.config import LogConfig
from barnabas.storage.log.transaction_marker import TransactionMarker
from barnabas.storage.repair.check import verify
from barnabas.storage.runtime.threads import new_event, start_thread
from barnabas.storage.store.log_store import LogStore
from barnabas.storage.store.recovery import lock_directory, open_store
from barnabas.storage.store.store_parts import StoreCallbacks, StoreSettings
from tests.crash.scripted_engine import ScriptedEngine
from tests.storage.engines import ThreadEngine
from tests.storage.stores import NOW_MS, SETTINGS, Host, batch, read_all
from tests.waiting import until


@pytest.fixture(autouse=True)
def no_pause(monkeypatch):
    monkeypatch.setattr("barnabas.storage.journal.committer.FULL_DISK_PAUSE_SECONDS", 0.001)


class Fault:
    """Makes the simulated disk refuse operations while ``active``; counts the refusals."""

    def __init__(self, disk, error_code, name, path="", times=1000):
        self.error_code = error_code
        self.name = name
        self.path = path
        self.left = times
        self.refused = 0
        self.on_refusal = lambda: None
        disk.before = self

    def __call__(self, operation):
        if operation.name == self.name and self.path in operation.path and self.left:
            self.left -= 1
            self.refused += 1
            self.on_refusal()
            raise OSError(self.error_code, errno.errorcode[self.error_code], operation.path)


# ------------------------------------------------------------------------------------- a full disk


@pytest.fixture
def host():
    host = Host(LogConfig(segment_bytes=2000))
    host.boot()
    host.append(batch(5))
    return host


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("pwritev", ".log"),
        ("create", ".log"),
        ("pwritev", ".index"),
        ("create", ".snapshot"),
        ("pwritev", "leader-epoch"),
    ],
)
def test_segment_writes_wait_for_room_while_appends_are_refused(host, name, path):
    fault = Fault(host.disk, errno.ENOSPC, name, path, times=3)
    seen = []

    def while_full():
        with pytest.raises(StorageFull):
            host.log.append(batch())
        with pytest.raises(StorageFull):
            host.log.append_marker(TransactionMarker(7, 0, coordinator_epoch=1, commit=True))
        seen.append(read_all(host.log)[0][0].next_offset)

    # The loop hears of the full disk before the next try.
    fault.on_refusal = lambda: fault.left < 2 and while_full()
    if path == "leader-epoch":
        host.log.leader_epoch += 1
    host.append(*(batch(20) for _ in range(8)))
    host.checkpoint(clean=False)
    host.store.checkpoint(clean=True)
    host.step()
    assert fault.refused == 3
    assert seen == [5, 5]
    assert not host.store.full
    assert host.failures == []
    host.store.close()
    before = host.log.next_offset
    host.kill()
    assert host.boot().next_offset == before
    assert verify(host.log) == []


def test_a_checkpoint_waits_for_room(host):
    fault = Fault(host.disk, errno.ENOSPC, "pwritev", "checkpoint", times=5)
    fault.on_refusal = lambda: host.store.full or fault.left == 4
    done = []
    host.store.checkpoint(lambda: done.append(True))
    host.step()
    assert done == [True]
    assert fault.refused == 5
    assert host.failures == []
    assert host.append(batch()) == [5]


def test_a_journal_without_a_spare_refuses_appends_and_takes_them_again(host):
    fault = Fault(host.disk, errno.ENOSPC, "create", "journal")
    host.append(*(batch(value=b"v" * 60_000) for _ in range(4)))
    host.append(batch(value=b"v" * 60_000))
    assert fault.refused > 0
    assert host.store.full
    with pytest.raises(StorageFull):
        host.log.append(batch())
    assert len(read_all(host.log)) == 6
    assert host.log.delete_records(2) is not None, "what makes room must pass"
    host.step()
    assert host.log.log_start_offset == 2
    fault.left = 0
    host.store.check_space()
    host.step()
    assert not host.store.full
    assert host.append(batch()) == [10]


def test_a_checkpoint_gives_a_journal_that_lacks_a_spare_its_files_back(host):
    # Until the second file is in use: then the third is wanted.
    Fault(host.disk, errno.ENOSPC, "create", "journal-0002")
    while not host.store.full:
        host.append(batch(value=b"v" * 60_000))
    host.checkpoint()
    assert not host.store.full
    host.append(batch())


def test_the_reserve_is_for_markers(host):
    host.append(batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    host.disk.capacity_bytes = host.disk.used_bytes + SETTINGS.reserved_bytes // 2
    host.store.check_space()
    with pytest.raises(StorageFull):
        host.log.append(batch())
    host.marker(7, commit=True)
    assert host.log.last_stable_offset == host.log.high_watermark == 7
    host.disk.capacity_bytes = None
    host.store.check_space()
    assert host.append(batch()) == [7]


def test_a_capacity_that_runs_out_leaves_no_torn_state():
    settings = StoreSettings(journal_file_bytes=256 * 1024, reserved_bytes=300_000)
    disk = SimulatedFileSystem(capacity_bytes=1_500_000)
    host = Host(LogConfig(segment_bytes=50_000), disk=disk, settings=settings)
    host.boot()
    accepted = 0
    while not host.store.full:
        host.append(batch(value=b"v" * 5000))
        accepted += 1
        host.store.check_space()
    with pytest.raises(StorageFull):
        host.log.append(batch())
    assert accepted > 50
    assert len(read_all(host.log)) == accepted
    host.kill()
    assert host.boot().next_offset == accepted
    assert verify(host.log) == []


# ---------------------------------------------------------------------------------- a failed sync


def test_a_failed_sync_ends_the_commit_before_any_answer(host):
    answered = []
    Fault(host.disk, errno.EIO, "fdatasync", "journal")
    host.log.append(batch()).group.add_waiter(WhenDurable(lambda: answered.append(True)))
    with pytest.raises(OSError, match="EIO"):
        host.step()
    assert answered == []
    assert host.log.high_watermark == 5


def test_a_checkpoint_that_cannot_sync_is_fatal_once_and_writes_no_checkpoint(host):
    host.append(batch())
    path = "/data/barnabas-checkpoint-1"
    before = host.disk.read_file(path)
    assert not host.disk.exists("/data/barnabas-checkpoint-0")
    Fault(host.disk, errno.EIO, "fdatasync", "topic-0")
    done = []
    host.store.checkpoint(lambda: done.append(True))
    host.step()
    assert [error.errno for error in host.failures] == [errno.EIO]
    assert done == []
    assert host.disk.read_file(path) == before
    assert not host.disk.exists("/data/barnabas-checkpoint-0")


# ------------------------------------------------------------------------- threads, a real disk


class Running:
    """A store on a real directory with its threads and the running loop."""

    def __init__(self, path, *, backlog_max_bytes=1 << 20):
        loop = asyncio.get_running_loop()
        self.engine = ThreadEngine(
            loop.call_soon,
            loop.call_soon_threadsafe,
            lambda work: start_thread("works", work),
        )
        self.store = LogStore(
            LocalFileSystem(),
            str(path),
            engine=self.engine,
            now_ms=lambda: NOW_MS,
            settings=StoreSettings(
                journal_file_bytes=1 << 20, backlog_max_bytes=backlog_max_bytes, reserved_bytes=0
            ),
        )
        self.failures = []
        self.backlogged = []
        self.store.callbacks.on_fatal = self.failures.append
        self.store.callbacks.on_backlogged = self.backlogged.append
        lock_directory(self.store)
        self.specs = Host(LogConfig(segment_bytes=200_000)).specs
        open_store(self.store, self.specs, leader_epoch=1)
        self.log = self.store.get(1)

    async def checkpoint(self, *, clean=False):
        done = asyncio.Event()
        self.store.checkpoint(done.set, clean=clean)
        await asyncio.wait_for(done.wait(), 30)


async def test_threads_answer_in_order_and_close_drains(tmp_path):
    running = Running(tmp_path)
    await running.checkpoint()
    answered = []
    for number in range(400):
        appended = running.log.append(batch(value=b"%d" % number * 500))
        appended.group.add_waiter(
            WhenDurable(lambda offset=appended.base_offset: answered.append(offset))
        )
        if number % 7 == 0:
            await asyncio.sleep(0)
    await until(lambda: len(answered) == 400)
    assert answered == list(range(400))
    running.log.append(batch())
    running.store.close()
    again = Running(tmp_path)
    assert again.log.next_offset == 401, "close lost what was submitted"
    assert verify(again.log) == []
    assert len(read_all(again.log)) == 401
    await again.checkpoint(clean=True)
    again.store.close()
    assert running.failures == again.failures == []


async def test_backlog_is_reported_with_its_end(tmp_path):
    running = Running(tmp_path, backlog_max_bytes=100_000)
    await running.checkpoint()
    for _ in range(20):
        running.log.append(batch(value=b"v" * 30_000))
    await until(lambda: running.backlogged[-1:] == [False])
    assert running.backlogged == [True, False]
    running.store.close()


async def test_a_failed_sync_is_fatal_once_and_nothing_is_answered_after_it(tmp_path, monkeypatch):
    running = Running(tmp_path)
    await running.checkpoint()
    answered = []
    running.log.append(batch()).group.add_waiter(WhenDurable(lambda: answered.append(0)))
    await until(lambda: answered)

    def refuse(*_):
        raise OSError(errno.EIO, "EIO")

    with monkeypatch.context() as patch:
        patch.setattr(LocalFile, "pwritev_durable", refuse)
        for number in range(1, 4):
            group = running.log.append(batch()).group
            group.add_waiter(WhenDurable(lambda number=number: answered.append(number)))
            await asyncio.sleep(0.01)
        await until(lambda: running.failures)
    # The disk "works" again: too late, the journal's thread has ended (D9).
    running.log.append(batch()).group.add_waiter(WhenDurable(lambda: answered.append(9)))
    await asyncio.sleep(0.05)
    assert [error.errno for error in running.failures] == [errno.EIO]
    assert answered == [0]
    assert running.log.high_watermark == 1
    running.store.close()


async def test_a_full_disk_is_waited_for_on_the_thread(tmp_path, monkeypatch):
    running = Running(tmp_path)
    await running.checkpoint()
    room = new_event()
    write = LocalFile.pwritev

    def limited(file, buffers, position):
        if file.path.endswith(".log") and not room.is_set():
            raise OSError(errno.ENOSPC, "ENOSPC")
        write(file, buffers, position)

    monkeypatch.setattr(LocalFile, "pwritev", limited)
    answered = []
    running.log.append(batch(3)).group.add_waiter(WhenDurable(lambda: answered.append(True)))
    await until(lambda: answered and running.store.full)
    with pytest.raises(StorageFull):
        running.log.append(batch())
    assert len(read_all(running.log)) == 1, "what is durable is read from memory"
    room.set()
    await until(lambda: not running.store.full)
    assert running.log.append(batch()).base_offset == 3
    running.store.close()
    assert running.failures == []


def scripted_store():
    """A store with one partition whose threads move when told to, and what was fatal to it."""
    engine, failures = ScriptedEngine(), []
    store = LogStore(
        SimulatedFileSystem(),
        "/data",
        engine=engine,
        now_ms=lambda: NOW_MS,
        settings=SETTINGS,
        callbacks=StoreCallbacks(on_fatal=failures.append),
    )
    lock_directory(store)
    open_store(store, Host().specs, leader_epoch=1)
    store.checkpoint()
    engine.settle()
    return engine, store, failures


def test_deleting_a_topic_during_its_checkpoint_is_harmless():
    """The checkpoint's thread syncs files that the segment thread removes at the same time."""
    for moment in range(12):
        engine, store, failures = scripted_store()
        store.get(1).append(batch())
        store.checkpoint()
        engine.turn()
        engine.commit()
        engine.write()
        store.delete(1)
        engine.turn()
        engine.commit()
        countdown = [moment]

        def after_some_operations(_, engine=engine, countdown=countdown):
            countdown[0] -= 1
            if countdown[0] == 0:
                engine.write()

        store.file_system.before = after_some_operations
        engine.settle()
        assert failures == []
        store.close()


@pytest.mark.parametrize(("call", "shown"), [("pwritev", 1), ("fdatasync", 2)])
def test_nothing_follows_what_the_loop_could_not_commit(monkeypatch, call, shown):
    """A group behind it would take its place in the journal, and its answer (D9).

    While the disk is at work the high watermark moves; the owner, notified first, hides it.
    """
    engine, store, failures = scripted_store()
    log = store.get(1)
    log.append(batch())
    engine.settle()
    answered = []

    def fails(*_):
        raise OSError(errno.EIO, "planted")

    log.append(batch()).group.add_waiter(WhenDurable(lambda: answered.append(1)))
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedFile, call, fails)
        for _ in range(2):  # The second brings nothing more.
            engine.turn(disk_is_quick=True)
    assert [str(error) for error in failures] == ["[Errno 5] planted"]
    log.append(batch()).group.add_waiter(WhenDurable(lambda: answered.append(2)))
    store.journal.flush()
    store.checkpoint()
    engine.settle()
    assert answered == []
    assert len(failures) == 1
    assert log.high_watermark == shown


@pytest.mark.parametrize("disk_is_quick", [False, True])
def test_a_mistake_in_making_answers_is_fatal(disk_is_quick):
    """The groups in flight would be counted wrongly from then on."""
    engine, store, failures = scripted_store()
    store.get(1).append(batch())
    engine.settle()
    answered = []

    def fails():
        raise ZeroDivisionError

    store.callbacks.on_visible = fails
    store.get(1).append(batch()).group.add_waiter(WhenDurable(lambda: answered.append(True)))
    for _ in range(3):
        engine.turn(disk_is_quick=disk_is_quick)
        engine.commit()
    assert [type(error) for error in failures] == [ZeroDivisionError]
    assert answered == []
