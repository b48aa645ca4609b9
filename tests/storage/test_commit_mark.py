"""The mark beside the journal: two slots of each kind, and their state after a crash."""

import errno

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.errors import Corrupt
from barnabas.storage.files.commit_mark import FILE_BYTES, CommitMark

PATH = "/data/barnabas-commit-mark"
MARKS_AT = 32768
NAMED = {0: 5000, 1: 7000}


@pytest.fixture
def disk():
    disk = SimulatedFileSystem()
    disk.make_directory("/data")
    return disk


def begun(disk, files=None):
    mark = CommitMark(disk, "/data")
    mark.begin(files or NAMED)
    return mark


def again(disk):
    return CommitMark(disk, "/data")


def overwrite(disk, position, data):
    disk.open(PATH).pwritev([data], position)


def test_without_a_file_nothing_is_known_and_nothing_is_made(disk):
    mark = again(disk)
    assert (mark.problem, mark.sequence, mark.files) == ("it is missing", 0, {})
    assert not disk.exists(PATH)


def test_named_files_and_marks_are_read_back(disk):
    mark = begun(disk)
    for sequence in range(3, 9):
        mark.advance(sequence)
        assert again(disk).sequence == sequence
    mark.name_files({**NAMED, 2: 9000})
    found = again(disk)
    assert (found.problem, found.sequence, found.files) == (None, 8, {**NAMED, 2: 9000})


def test_a_new_run_keeps_the_mark_and_names_its_own_files(disk):
    begun(disk).advance(7)
    mark = again(disk)
    mark.begin({4: 1000})
    assert (again(disk).sequence, again(disk).files) == (7, {4: 1000})


def test_a_damaged_slot_leaves_what_was_said_before(disk):
    mark = begun(disk)
    mark.name_files({**NAMED, 2: 9000})
    mark.advance(7)
    mark.advance(8)
    for position in (0, MARKS_AT):
        overwrite(disk, position + 3, b"\xff")
    found = again(disk)
    assert (found.problem, found.sequence, found.files) == (None, 7, NAMED)


@pytest.mark.parametrize(
    ("position", "size", "said"),
    [(0, 32768, "neither list of files"), (MARKS_AT, FILE_BYTES - MARKS_AT, "neither mark")],
)
def test_two_damaged_slots_are_a_problem(disk, position, size, said):
    mark = begun(disk)
    mark.advance(7)
    mark.advance(8)
    overwrite(disk, position, b"\x11" * size)
    assert said in again(disk).problem


def test_a_short_file_is_a_problem_and_is_made_again_where_nothing_depends_on_it(disk):
    begun(disk).advance(7)
    disk.open(PATH).truncate(100)
    mark = again(disk)
    assert mark.problem == f"it has 100 bytes, not {FILE_BYTES}"
    mark.begin(NAMED)
    found = again(disk)
    assert (found.problem, found.sequence, found.files) == (None, 0, NAMED)


def test_files_that_are_missing_or_short_are_named(disk):
    mark = begun(disk)
    paths = {0: "/data/a", 1: "/data/b"}
    mark.refuse_other_files({0: 5000, 1: 7001, 2: 0}, paths)
    with pytest.raises(Corrupt, match="/data/b is corrupt at byte 0: the file is missing"):
        mark.refuse_other_files({0: 5000}, paths)
    with pytest.raises(Corrupt, match="/data/a is corrupt at byte 4999: the file ends here"):
        mark.refuse_other_files({0: 4999, 1: 7000}, paths)


def test_more_files_than_can_be_named_leave_the_newest_ones(disk):
    begun(disk, dict.fromkeys(range(3000), 100))
    found = again(disk)
    assert found.problem is None
    assert max(found.files) == 2999
    assert 1000 < len(found.files) < 3000


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_mark_that_finds_no_room_stays_behind_and_any_other_error_is_final(disk, code):
    mark = begun(disk)
    mark.advance(7)
    disk.fail(disk.operations + 1, code)
    if code == errno.EIO:
        with pytest.raises(OSError, match="EIO"):
            mark.advance(8)
    else:
        mark.advance(8)
    assert again(disk).sequence == 7
