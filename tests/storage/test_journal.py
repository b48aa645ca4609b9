"""The journal: groups in order, merged, counted, recycled; spare files before they are needed."""

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFile
from barnabas.protocol.records import read_header
from barnabas.storage.journal.committer import JournalCommitter
from barnabas.storage.journal.journal import STABLE_BATCH_BYTES, CommitGroup, Journal
from barnabas.storage.journal.journal_files import JournalFiles
from barnabas.storage.journal.journal_format import KIND_BATCHES, KIND_LOG_START, padded
from tests.storage.journals import FILE_BYTES, Heard, Waiting, group_of, replayed, started
from tests.storage.stores import batch


def test_groups_read_back_in_order_over_several_files(disk):
    committer = JournalCommitter(started(disk), Heard())
    for number in range(40):
        committer.commit([group_of(5000, base_offset=number)])
    found, following = replayed(disk)
    assert found == [(number + 1, [(KIND_BATCHES, number)]) for number in range(40)]
    assert following == 42, "one is left out: a torn group may carry the next number"


def test_waiting_groups_share_one_group_on_disk_as_far_as_a_file_holds_them(disk):
    heard = Heard()
    committer = JournalCommitter(started(disk), heard)
    groups = [group_of(9000, base_offset=number) for number in range(10)]
    committer.commit(groups)
    found, _ = replayed(disk)
    assert [offset for _, entries in found for _, offset in entries] == list(range(10))
    assert len(found) == 2
    assert heard.events == [("durable", 7), ("durable", 3)]
    assert [group.sequence for group in groups] == [1] * 7 + [2] * 3


def test_a_group_without_entries_writes_nothing_and_takes_its_turn(disk):
    ran = []
    committer = JournalCommitter(started(disk), Heard())
    operations = disk.operations
    group = CommitGroup()
    group.operations.append(lambda: ran.append(group.sequence))
    committer.commit([group])
    assert disk.operations == operations
    committer.write_segments()
    assert ran == [1]


def test_moves_of_the_log_start_have_no_body(disk):
    group = CommitGroup()
    group.add_entry(KIND_LOG_START, 3, 7, 100, 100, 0)
    JournalCommitter(started(disk), Heard()).commit([group])
    assert replayed(disk)[0] == [(1, [(KIND_LOG_START, 100)])]


def test_small_groups_find_their_blocks_written(disk, monkeypatch):
    writes = []
    write = SimulatedFile.pwritev_durable

    def noted(file, buffers, position):
        writes.append((position, sum(map(len, buffers))))
        write(file, buffers, position)

    monkeypatch.setattr(SimulatedFile, "pwritev_durable", noted)
    files = JournalFiles(disk, "/data", 1 << 20)
    files.start(1)
    committer = JournalCommitter(files, Heard())
    sizes = [100] * 65 + [100, 300_000, 100, 400_000, 100]
    for number, size in enumerate(sizes):
        committer.commit([group_of(size, base_offset=number)])
    block, zeros = 4096, 256 * 1024
    assert writes[:66] == [
        (0, block + zeros),
        *((number * block, block) for number in range(1, 65)),
        (65 * block, block + zeros),
    ]
    behind = [size for _, size in writes[66:]]
    large, largest = padded(300_000 + 200), padded(400_000 + 200)
    assert behind[:3] == [large, block + zeros, largest], "a large one is not followed by zeros"
    assert writes[-1][0] == 66 * block + large + block + largest
    assert sum(writes[-1]) == 1 << 20, "zeros end where the file ends"
    found, _ = replayed(disk, file_bytes=1 << 20)
    assert [offset for _, [(_, offset)] in found] == list(range(len(sizes)))


def test_files_are_recycled_once_a_checkpoint_covers_them(disk):
    files = started(disk)
    committer = JournalCommitter(files, Heard())
    for number in range(200):
        committer.commit([group_of(20_000, base_offset=number)])
        if number % 5 == 4:
            files.release(files.next_sequence)
    names = [name for name in disk.list_directory("/data") if "journal" in name]
    assert len(names) <= 5
    assert files.used_bytes <= 3 * FILE_BYTES
    found, _ = replayed(disk, files.next_sequence - 2)
    assert [entries for _, entries in found] == [[(KIND_BATCHES, 198)], [(KIND_BATCHES, 199)]]


def test_files_that_are_needed_are_not_recycled(disk):
    files = started(disk)
    committer = JournalCommitter(files, Heard())
    for number in range(60):
        committer.commit([group_of(20_000, base_offset=number)])
        files.release(3)
    found, _ = replayed(disk, 3)
    assert [sequence for sequence, _ in found] == list(range(3, 61))


def test_the_spare_has_its_room_before_it_is_needed(disk):
    files = started(disk)
    committer = JournalCommitter(files, Heard())
    committer.commit([group_of(100)])
    (current, spare) = [name for name in disk.list_directory("/data") if "journal" in name]
    sizes = {disk.open(f"/data/{name}").size() for name in (current, spare)}
    assert sizes == {FILE_BYTES}
    used = disk.used_bytes
    for number in range(1, 10):
        committer.commit([group_of(100, base_offset=number)])
    assert disk.used_bytes == used


def test_a_file_that_was_not_finished_is_finished_before_it_is_used(disk):
    """The process died, or the disk was full, between the making of a file and its room."""
    disk.open("/data/barnabas-journal-0000", create=True).truncate(100)
    files = started(disk)
    assert disk.open("/data/barnabas-journal-0000").size() == FILE_BYTES
    JournalCommitter(files, Heard()).commit([group_of(100)])
    assert len(replayed(disk)[0]) == 1


def test_a_group_is_padded_to_whole_blocks():
    assert [padded(size) for size in (1, 4095, 4096, 4097)] == [4096, 4096, 4096, 8192]


# --------------------------------------------------------------------------------- the loop's side


class Loop:
    """Collects what the journal schedules and submits."""

    def __init__(self, *, backlog_max_bytes=1 << 30):
        self.scheduled = []
        self.submitted = []
        self.alone = []
        self.backlogged = []
        self.journal = Journal(
            submit=self._submit,
            schedule=self._schedule,
            backlog_max_bytes=backlog_max_bytes,
            on_backlogged=self.backlogged.append,
        )

    def _submit(self, group, *, alone):
        self.submitted.append(group)
        self.alone.append(alone)

    def _schedule(self, callback):
        self.scheduled.append(callback)

    def turn(self):
        scheduled, self.scheduled = self.scheduled, []
        for callback in scheduled:
            callback()

    def settle(self):
        """Turns that bring nothing, until nothing is left to do in them."""
        while self.scheduled:
            self.turn()

    def append(self, size):
        group = self.journal.group_for(size)
        group.add_body(memoryview(bytes(size)), stable=False)
        group.add_entry(KIND_BATCHES, 0, 1, 0, 1, size)
        return group


def test_one_turn_of_the_loop_makes_one_group():
    loop = Loop()
    assert loop.append(10) is loop.append(20)
    assert len(loop.scheduled) == 1
    loop.settle()
    assert [group.body_bytes for group in loop.submitted] == [30]
    loop.append(5)
    loop.settle()
    assert [group.body_bytes for group in loop.submitted] == [30, 5]


def test_a_group_stays_open_while_each_turn_brings_more():
    loop = Loop()
    for _ in range(3):
        loop.append(1)
        loop.turn()
        assert not loop.submitted
    loop.turn()
    assert [group.entry_count for group in loop.submitted] == [3]
    assert loop.alone == [True]


def test_group_closes_after_the_maximum_number_of_turns():
    loop = Loop()
    for groups in (1, 2):  # The next group waits for as many turns.
        turns = 0
        while len(loop.submitted) < groups:
            loop.append(1)
            loop.turn()
            turns += 1
        assert turns == 5
        loop.journal.groups_became_durable(1)
    assert loop.alone == [True, True]


def test_nothing_is_waited_for_behind_another_group():
    loop = Loop()
    loop.append(1)
    loop.settle()
    loop.append(1)
    loop.turn()
    assert [group.entry_count for group in loop.submitted] == [1, 1]
    assert loop.alone == [True, False]


def test_a_large_group_goes_at_once_and_to_the_thread():
    for size in (512 * 1024, 512 * 1024 + 1):
        loop = Loop()
        loop.append(size)
        loop.turn()
        goes_at_once = size > 512 * 1024
        assert len(loop.submitted) == goes_at_once
        loop.settle()
        assert loop.alone == [not goes_at_once]


def test_a_group_of_operations_has_nothing_to_wait_for():
    loop = Loop()
    loop.journal.add_operation(lambda: None)
    loop.turn()
    assert [len(group.operations) for group in loop.submitted] == [1]


def test_a_flush_is_for_the_thread_and_ends_the_wait_for_more():
    loop = Loop()
    loop.append(1)
    loop.turn()
    loop.append(1)
    loop.journal.flush()
    assert [group.entry_count for group in loop.submitted] == [2]
    assert loop.alone == [False]
    loop.settle()
    assert len(loop.submitted) == 1


def test_a_group_that_is_full_goes_at_once():
    loop = Loop()
    for _ in range(5):
        loop.append(1 << 20)
    assert [group.entry_count for group in loop.submitted] == [4]
    assert loop.alone == [False]


def test_waiters_are_called_in_order_and_late_ones_at_once():
    loop = Loop()
    heard = []
    first = loop.append(1)
    first.add_waiter(Waiting(heard, 1))
    loop.settle()
    second = loop.append(1)
    second.add_waiter(Waiting(heard, 2))
    assert loop.journal.newest_group() is second
    loop.turn()
    loop.journal.groups_became_durable(2)
    first.add_waiter(Waiting(heard, 3))
    assert heard == [1, 2, 3]
    assert loop.journal.newest_group() is None
    assert loop.journal.backlog_bytes > 0
    loop.journal.groups_were_written(2)
    assert loop.journal.backlog_bytes == 0


@pytest.mark.parametrize("call", ["add_waiter", "add_answer"])
def test_empty_group_is_submitted_only_if_awaited(call):
    """A duplicate waits for its original, which is in flight, in the group that is open."""
    loop = Loop()
    loop.append(1)
    loop.settle()
    loop.journal.group_for(100)
    group = loop.journal.newest_group()
    getattr(group, call)(Waiting([], "durable"))
    loop.settle()
    assert loop.submitted[1:] == [group]
    loop.journal.group_for(100)
    loop.settle()
    assert len(loop.submitted) == 2, "nobody waits for this one"


def test_answers_are_made_when_groups_are_shown_and_at_once_when_they_are_late():
    loop = Loop()
    heard = []
    group = loop.append(1)
    group.add_answer(Waiting(heard, "answer"))
    group.add_waiter(Waiting(heard, "durable"))
    loop.settle()
    loop.append(1).add_answer(Waiting(heard, "of another group"))
    loop.turn()
    loop.journal.advance_high_watermarks(1)
    loop.journal.prepare_answers(1)
    assert heard == ["answer"]
    loop.journal.groups_became_durable(1)
    assert heard == ["answer", "durable"]
    group.add_answer(Waiting(heard, "late"))
    assert heard == ["answer", "durable", "late"]


def test_backlog_is_reported_once_each_way():
    loop = Loop(backlog_max_bytes=100)
    for _ in range(3):
        loop.append(60)
        loop.settle()
    assert loop.backlogged == [True]
    loop.journal.groups_became_durable(3)
    assert loop.backlogged == [True], "memory is held until the segments have it"
    loop.journal.groups_were_written(2)
    assert loop.backlogged == [True, False]
    assert loop.journal.backlog_bytes == 60


@pytest.mark.parametrize("size", [100, 5000, 70_000])
def test_a_copied_batch_is_not_the_callers_memory_and_a_stable_one_is(size):
    view = batch(value=b"v" * size)
    for stable in (False, True):
        chunk, start = CommitGroup().add_body(view, stable=stable)
        before = read_header(chunk, start)
        view[0] ^= 1
        assert (read_header(chunk, start) == before) is not (stable and size > 65536)


def test_dropped_groups_end_the_backlog_and_start_a_new_run():
    loop = Loop(backlog_max_bytes=100)
    written = loop.append(60)
    loop.settle()
    loop.journal.groups_became_durable(1)
    heard = []
    first = loop.append(60)
    loop.settle()
    second = loop.append(10)
    loop.settle()
    still_open = loop.append(20)
    still_open.add_waiter(Waiting(heard, "open"))
    first.add_answer(Waiting(heard, "first"))
    assert loop.backlogged == [True]
    assert loop.journal.drop() == [first, second, still_open]
    assert loop.backlogged == [True, False]
    assert loop.journal.backlog_bytes == written.body_bytes
    for group in (first, second, still_open):
        group.refuse("why")
    assert heard == [("refused", "first", "why"), ("refused", "open", "why")]
    following = loop.append(5)
    loop.settle()
    last = loop.append(5)
    loop.settle()
    runs = [group.run for group in (written, first, second, still_open, following, last)]
    assert runs == [0, 0, 0, 0, 1, 1]
    assert loop.submitted == [written, first, second, following, last]
    loop.journal.groups_became_durable(2)
    loop.journal.groups_were_written(3)
    assert loop.journal.backlog_bytes == 0
    assert loop.journal.newest_group() is None


def test_large_read_only_batch_is_copied_into_the_group():
    """The offset is written into the chunk; a failure after ``add_body`` would spoil the group."""
    batch = memoryview(bytes(STABLE_BATCH_BYTES))
    group = CommitGroup()
    chunk, start = group.add_body(batch, stable=True)
    chunk[start] = 1
    assert group.chunks == [chunk]
    assert batch[0] == 0
