"""Committing on the loop, and the threads that commit and write behind it."""

import errno
from functools import partial

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFile
from barnabas.storage.journal import committer as committer_module
from barnabas.storage.journal.committer import CommitterThreads, JournalCommitter
from barnabas.storage.journal.journal import CommitGroup
from barnabas.storage.journal.journal_format import BLOCK_BYTES
from barnabas.storage.runtime import clock
from barnabas.storage.runtime.threads import new_event
from tests.storage.journals import FILE_BYTES, TIMEOUT_S, Heard, Waited, group_of, replayed, started
from tests.worlds import world

__all__ = ["world"]


def nothing():
    """Represent the work of the loop."""


def run_before(monkeypatch, name, action):
    """Run ``action`` before each call of a method of simulated files."""
    genuine = getattr(SimulatedFile, name)

    def changed(file, *arguments):
        action()
        genuine(file, *arguments)

    monkeypatch.setattr(SimulatedFile, name, changed)


class SlowDisk:
    """Make each flush take ``flush_s`` seconds of simulated time."""

    def __init__(self, monkeypatch):
        self.flush_s = 0.0
        for name in ("pwritev_durable", "fdatasync"):
            run_before(monkeypatch, name, self._wait)

    def _wait(self):
        clock.sleep(self.flush_s)


def test_inline_commit_is_durable_without_calling_the_listener(disk):
    heard = Heard()
    committer = JournalCommitter(started(disk), heard)
    committer.commit([group_of(100)])
    heard.events.clear()
    group = group_of(100, base_offset=1)
    assert committer.commit_inline(group, nothing)
    assert group.sequence == 2
    assert heard.events == []
    assert replayed(disk.kill())[0][1][0] == 2
    assert committer.unwritten_bytes == 2 * group.body_bytes
    committer.write_segments()
    assert heard.events == [("written", 2)]


def test_loop_works_between_the_start_and_the_sync_of_a_flush(disk, monkeypatch):
    """The write of a page starts first; longer groups are durable before the loop continues."""
    calls = []
    committer = JournalCommitter(started(disk), Heard())
    committer.commit([group_of(100)])
    for name in ("begin_page", "pwritev_durable", "fdatasync"):
        run_before(monkeypatch, name, partial(calls.append, name))
    assert committer.commit_inline(group_of(100, base_offset=1), lambda: calls.append("loop"))
    assert calls == ["begin_page", "loop", "fdatasync"]
    calls.clear()
    assert committer.commit_inline(group_of(5000, base_offset=2), lambda: calls.append("loop"))
    assert calls == ["pwritev_durable", "loop"]
    calls.clear()
    assert committer.commit_inline(CommitGroup(), lambda: calls.append("loop"))
    assert calls == ["loop"], "nothing is written"
    assert [sequence for sequence, _ in replayed(disk.kill())[0]] == [1, 2, 3]


def test_a_full_disk_at_the_sync_is_final(disk, monkeypatch):
    """Responses that are ready cannot be taken back, so the store must stop (D9)."""
    committer = JournalCommitter(started(disk), Heard())
    committer.commit([group_of(100)])

    def full(_):
        raise OSError(errno.ENOSPC, "planted")

    monkeypatch.setattr(SimulatedFile, "fdatasync", full)
    with pytest.raises(OSError, match="planted"):
        committer.commit_inline(group_of(100, base_offset=1), nothing)


def test_large_write_to_segments_is_reported_in_parts(disk):
    """A waiter for memory resumes after the first part."""
    heard = Heard()
    groups = [group_of(300, base_offset=number) for number in range(10)]
    size, left = groups[0].body_bytes, []
    committer = JournalCommitter(started(disk), heard, reported_bytes_min=4 * size)
    for group in groups:
        group.operations.append(lambda: left.append(committer.unwritten_bytes))
    committer.commit([*groups, CommitGroup()])
    heard.events.clear()
    committer.write_segments()
    assert heard.events == [("written", 4), ("written", 4), ("written", 3)]
    assert left == [10 * size] * 4 + [6 * size] * 4 + [2 * size] * 2
    assert committer.unwritten_bytes == 0
    committer.write_segments()
    assert len(heard.events) == 3, "there was nothing to tell"


def test_inline_commit_declines_a_change_of_the_file(disk):
    committer = JournalCommitter(started(disk), Heard())
    first = committer.commit_inline(group_of(100), nothing)
    assert not first, "the first file of this run is not chosen yet"
    committer.commit([group_of(100)])
    groups = [group_of(3000) for _ in range(FILE_BYTES // BLOCK_BYTES)]
    taken = [committer.commit_inline(group, nothing) for group in groups]
    assert taken == [True] * (FILE_BYTES // BLOCK_BYTES - 1) + [False], "the file is full"


def test_a_full_disk_is_left_to_who_may_wait(disk, monkeypatch):
    committer = JournalCommitter(started(disk), Heard())
    committer.commit([group_of(100)])

    def refuses(*_):
        raise OSError(errno.ENOSPC, "planted")

    group = group_of(100, base_offset=1)
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedFile, "pwritev", refuses)
        assert not committer.commit_inline(group, nothing)
    committer.commit([group])
    assert [sequence for sequence, _ in replayed(disk)[0]] == [1, 2]


def test_without_a_spare_file_the_thread_gets_every_group(disk, monkeypatch):
    """The thread gets an empty group, too, to check whether the disk has space again (D10)."""
    heard = Heard()
    committer = JournalCommitter(started(disk), heard)

    def refuses(*_):
        raise OSError(errno.ENOSPC, "planted")

    committer.commit([group_of(100)])
    with monkeypatch.context() as patch:
        patch.setattr(SimulatedFile, "reserve", refuses)
        committer.commit([group_of(FILE_BYTES // 2), group_of(FILE_BYTES // 2)])
    assert ("full", True) in heard.events, "the spare file is in use now"
    assert not committer.commit_inline(CommitGroup(), nothing)
    assert not committer.commit_inline(group_of(100), nothing)
    committer.commit([CommitGroup()])
    assert ("full", False) in heard.events
    assert committer.commit_inline(group_of(100, base_offset=1), nothing)


@pytest.mark.parametrize("call", ["pwritev", "fdatasync"])
def test_an_error_of_the_disk_is_not_hidden(disk, monkeypatch, call):
    committer = JournalCommitter(started(disk), Heard())
    committer.commit([group_of(100)])

    def fails(*_):
        raise OSError(errno.EIO, "planted")

    monkeypatch.setattr(SimulatedFile, call, fails)
    with pytest.raises(OSError, match="planted"):
        committer.commit_inline(group_of(100, base_offset=1), nothing)


def test_a_disk_has_to_be_quick_for_a_while(disk, monkeypatch):
    slow_disk = SlowDisk(monkeypatch)
    committer = JournalCommitter(started(disk), Heard())

    def flushes_until_quick():
        for count in range(100):
            if committer.flushes_are_quick:
                return count
            committer.commit([group_of(100)])
        return None

    assert flushes_until_quick() in range(8, 20), "nothing is known of it at first"
    slow_disk.flush_s = 0.005
    assert committer.commit_inline(group_of(100), nothing)
    assert not committer.flushes_are_quick, "one that is slow is enough"
    slow_disk.flush_s = 0.0
    assert flushes_until_quick() in range(3, 8)
    slow_disk.flush_s = 0.0021
    committer.commit([group_of(100)])
    assert flushes_until_quick() is None


def let_be_quick(committer):
    """Make the committer expect quick flushes."""
    committer._expected_flush_ns = 0
    assert committer.flushes_are_quick


@pytest.fixture
def heard():
    return Waited()


@pytest.fixture
def threads(disk, heard):
    committer = JournalCommitter(started(disk), heard)
    threads = CommitterThreads(committer, heard)
    yield threads, committer, heard
    threads.stop()


def commit_on_the_loop(threads, group):
    """Commit ``group`` as the loop does, once the journal thread has ended its turn."""
    with threads._committing:
        pass
    return threads.commit_inline(group, nothing)


def test_the_threads_take_turns_with_the_loop(disk, threads):
    threads, committer, heard = threads
    let_be_quick(committer)
    assert not commit_on_the_loop(threads, group_of(100))
    threads.submit(group_of(100))
    heard.wait_for("durable", 1)
    heard.wait_for("written", 1)
    assert commit_on_the_loop(threads, group_of(100, base_offset=1))
    heard.wait_for("written", 2)
    threads.submit(group_of(100, base_offset=2))
    heard.wait_for("durable", 2)
    found, _ = replayed(disk)
    assert [sequence for sequence, _ in found] == [1, 2, 3]


def test_the_loop_commits_nothing_where_it_may_not(disk, heard):
    committer = JournalCommitter(started(disk), heard)
    threads = CommitterThreads(committer, heard, commits_here=False)
    let_be_quick(committer)
    threads.submit(group_of(100))
    heard.wait_for("written", 1)
    assert not commit_on_the_loop(threads, group_of(100))
    threads.stop()


def test_the_loop_leaves_a_slow_disk_and_a_busy_committer_to_the_thread(threads):
    threads, committer, heard = threads
    threads.submit(group_of(100))
    heard.wait_for("written", 1)
    assert not committer.flushes_are_quick
    assert not commit_on_the_loop(threads, group_of(100))
    let_be_quick(committer)
    with threads._committing:
        assert not threads.commit_inline(group_of(100), nothing)
    assert commit_on_the_loop(threads, group_of(100))


def test_the_end_writes_what_was_committed_here(disk, heard):
    committer = JournalCommitter(started(disk), heard)
    threads = CommitterThreads(committer, heard)
    let_be_quick(committer)
    threads.submit(group_of(100))
    heard.wait_for("written", 1)
    ran = []
    group = CommitGroup()
    group.operations.append(lambda: ran.append(True))
    assert commit_on_the_loop(threads, group)
    threads.stop()
    assert ran == [True]


def test_awaited_group_is_written_to_segments_at_once(threads, monkeypatch):
    threads, committer, heard = threads
    monkeypatch.setattr(committer_module, "_HAND_OVER_SECONDS", 2 * TIMEOUT_S)
    let_be_quick(committer)
    group = group_of(100)
    group.awaited = True
    threads.submit(group)
    heard.wait_for("written", 1)
    after = CommitGroup()
    after.operations.append(lambda: None)
    after.awaited = True
    assert commit_on_the_loop(threads, after)
    heard.wait_for("written", 2)


def test_a_group_that_waits_for_room_does_not_hold_up_what_makes_room(threads, monkeypatch):
    threads, _, heard = threads
    room = new_event()
    reserve = SimulatedFile.reserve

    def reserve_if_there_is_room(file, size):
        if not room.is_set():
            raise OSError(errno.ENOSPC, "planted")
        reserve(file, size)

    threads.submit(group_of(100))
    heard.wait_for("written", 1)
    monkeypatch.setattr(SimulatedFile, "reserve", reserve_if_there_is_room)
    for number in (2, 3):  # The second of them takes the spare file into use.
        threads.submit(group_of(FILE_BYTES // 2))
        heard.wait_for("durable", number)
    first, second = group_of(100), group_of(FILE_BYTES - 300)
    first.operations.append(room.set)
    with threads._committing:  # So that the two are taken together, behind another one.
        threads.submit(group_of(100))
        threads.submit(first)
        threads.submit(second)
    try:
        heard.wait_for("durable", 6)
        assert room.is_set()
    finally:
        room.set()  # Or the threads never end.
