"""The simulated disk against what a disk may do when the power goes, and what it may not."""

import errno
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.testing.disk.simulated import Operation, SimulatedCrash, SimulatedFileSystem
from barnabas.storage.runtime.clock import processor_seconds
from barnabas.storage.runtime.threads import start_thread

DRAWS = 200


def contents(disk, path, draws=DRAWS, **options):
    """Every content ``path`` has after a power loss, over many draws; None if it is lost."""
    seen = set()
    for seed in range(draws):
        survivor = disk.crash(random.Random(seed), **options)
        seen.add(survivor.read_file(path) if survivor.exists(path) else None)
    return seen


@pytest.fixture
def disk():
    disk = SimulatedFileSystem()
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


@pytest.fixture
def file(disk):
    file = disk.open("/data/log", create=True)
    disk.sync_directory("/data")
    return file


# ---------------------------------------------------------------------------------------- contents


def test_synced_bytes_survive_every_power_loss(disk, file):
    file.pwritev([b"one"], 0)
    file.fdatasync()
    assert contents(disk, "/data/log") == {b"one"}


def test_a_durable_write_survives_every_power_loss(disk, file):
    file.pwritev_durable([b"one", b"two"], 0)
    assert contents(disk, "/data/log") == {b"onetwo"}


def test_unsynced_bytes_survive_or_vanish_or_become_zeros(disk, file):
    file.pwritev([b"one"], 0)
    assert contents(disk, "/data/log") == {b"", b"one", b"\0\0\0"}


def test_each_sector_survives_for_itself(disk, file):
    file.pwritev([b"a" * 512, b"b" * 512], 0)
    file.pwritev([b"c" * 100], 1024)
    halves = {
        (content[:512].strip(b"\0")[:1], content[512:1024].strip(b"\0")[:1])
        for content in contents(disk, "/data/log", sector_bytes=512)
        if len(content) == 1124
    }
    assert halves == {(b"a", b"b"), (b"", b"b"), (b"a", b""), (b"", b"")}


def test_a_sector_is_never_a_mixture(disk, file):
    file.pwritev([b"1" * 512], 0)
    file.pwritev([b"2" * 512], 0)
    assert contents(disk, "/data/log", sector_bytes=512) == {
        b"", b"1" * 512, b"2" * 512, bytes(512),
    }  # fmt: skip


def test_a_sector_carries_what_was_in_it_before(disk, file):
    """The page cache writes sectors back whole: a later byte never without the earlier one."""
    file.pwritev([b"1"], 0)
    file.pwritev([b"2"], 1)
    assert contents(disk, "/data/log") == {b"", b"\0", b"1", b"\0\0", b"1\0", b"12"}


def test_overwriting_durable_bytes_may_keep_them(disk, file):
    file.pwritev([b"old" * 400], 0)
    file.fdatasync()
    file.pwritev([b"new" * 400], 0)
    seen = contents(disk, "/data/log", sector_bytes=512)
    assert {b"old" * 400, b"new" * 400} < seen
    assert all(len(content) == 1200 for content in seen)
    assert any(b"old" in content and b"new" in content for content in seen), "no torn write drawn"


def test_a_durable_write_promises_nothing_about_earlier_ones(disk, file):
    file.pwritev([b"a" * 1024], 0)
    file.pwritev_durable([b"b" * 512], 512)
    seen = contents(disk, "/data/log", sector_bytes=512)
    assert all(content[512:] == b"b" * 512 for content in seen)
    assert {content[:1] for content in seen} == {b"a", b"\0"}


def test_a_durable_write_promises_nothing_about_zeros_reserved_before(disk, file):
    file.reserve(1024)
    file.pwritev_durable([b"x" * 512], 256)
    seen = contents(disk, "/data/log", sector_bytes=512)
    assert seen == {bytes(256) + b"x" * 512, bytes(256) + b"x" * 512 + bytes(256)}


def test_reserved_zeros_use_no_memory(disk, file):
    file.reserve(1 << 50)
    file.fdatasync()
    survivor = disk.crash(random.Random(0)).open("/data/log")
    survivor.pwritev([b"middle"], 3)
    assert survivor.size() == 1 << 50
    assert survivor.pread(12, 0) == b"\0\0\0middle\0\0\0"


def test_a_later_unsynced_write_may_undo_nothing_durable_elsewhere(disk, file):
    file.pwritev_durable([b"a" * 1024], 0)
    file.pwritev([b"b" * 512], 1024)
    assert all(c[:1024] == b"a" * 1024 for c in contents(disk, "/data/log", sector_bytes=512))


def test_a_durable_write_covers_a_truncation_before_it(disk, file):
    file.pwritev([b"old tail"], 0)
    file.fdatasync()
    file.truncate(0)
    file.pwritev_durable([b"new"], 0)
    assert contents(disk, "/data/log") == {b"new"}


def test_a_truncation_may_be_forgotten(disk, file):
    file.pwritev([b"abcdef"], 0)
    file.fdatasync()
    file.truncate(3)
    seen = contents(disk, "/data/log")
    assert {b"abc", b"abcdef"} <= seen
    file.fdatasync()
    assert contents(disk, "/data/log") == {b"abc"}


def test_bytes_cut_off_and_added_again_may_be_old_or_zero(disk, file):
    file.pwritev([b"a" * 1024], 0)
    file.fdatasync()
    file.truncate(0)
    file.truncate(1024)
    seen = contents(disk, "/data/log", sector_bytes=512)
    assert {c[:1] + c[512:513] for c in seen if c} == {b"aa", b"a\0", b"\0a", b"\0\0"}


def test_order_across_files_is_not_kept(disk, file):
    other = disk.open("/data/other", create=True)
    disk.sync_directory("/data")
    file.pwritev([b"first"], 0)
    other.pwritev([b"second"], 0)
    pairs = set()
    for seed in range(DRAWS):
        survivor = disk.crash(random.Random(seed))
        pairs.add((survivor.read_file("/data/log"), survivor.read_file("/data/other")))
    assert (b"", b"second") in pairs
    assert (b"first", b"") in pairs


def test_the_same_seed_draws_the_same_disk(disk, file):
    file.pwritev([bytes(range(256)) * 40], 0)
    disk.open("/data/other", create=True)
    for seed in range(20):
        one, two = disk.crash(random.Random(seed)), disk.crash(random.Random(seed))
        assert one.list_directory("/data") == two.list_directory("/data")
        assert one.read_file("/data/log") == two.read_file("/data/log")


def test_a_power_loss_changes_nothing_for_the_running_process(disk, file):
    file.pwritev([b"abc"], 0)
    disk.crash(random.Random(1)).open("/data/log").pwritev([b"zzz"], 0)
    assert file.pread(3, 0) == b"abc"
    file.fdatasync()
    assert contents(disk, "/data/log") == {b"abc"}


def test_bytes_that_survived_a_crash_are_durable(disk, file):
    file.pwritev([b"abc" * 2000], 0)
    survivor = disk.crash(random.Random(5))
    content = survivor.read_file("/data/log")
    assert contents(survivor, "/data/log", draws=20) == {content}


# ----------------------------------------------------------------------------------------- names


def test_a_name_needs_its_directory_synced(disk):
    file = disk.open("/data/new", create=True)
    file.pwritev_durable([b"abc"], 0)
    assert contents(disk, "/data/new") == {None, b"abc"}
    disk.sync_directory("/data")
    assert contents(disk, "/data/new") == {b"abc"}


def test_a_directory_needs_its_parent_synced(disk):
    disk.make_directory("/data/topic-0")
    disk.open("/data/topic-0/log", create=True)
    disk.sync_directory("/data/topic-0")
    assert contents(disk, "/data/topic-0/log") == {None, b""}
    disk.sync_directory("/data")
    assert contents(disk, "/data/topic-0/log") == {b""}


def test_a_synced_device_keeps_every_file_and_name(disk, file):
    disk.make_directory("/data/topic-0")
    disk.open("/data/topic-0/a", create=True).pwritev([b"content"], 0)
    file.pwritev([b"more"], 0)
    before = disk.operations
    device = disk.open_device("/data")
    device.sync()
    assert disk.operations == before + 1
    for seed in range(20):
        survivor = disk.crash(random.Random(seed))
        assert survivor.read_file("/data/topic-0/a") == b"content"
        assert survivor.read_file("/data/log").startswith(b"more")


def test_a_device_promises_nothing_of_what_comes_later_nor_if_it_lies_or_is_none(disk):
    disk.open_device("/").sync()
    disk.open("/data/later", create=True)
    assert {disk.crash(random.Random(seed)).exists("/data/later") for seed in range(20)} == {
        True,
        False,
    }
    lying = SimulatedFileSystem(lying=True)
    lying.make_directory("/data")
    lying.open_device("/").sync()
    assert {lying.crash(random.Random(seed)).exists("/data") for seed in range(20)} == {True, False}
    assert SimulatedFileSystem(syncs_whole=False).open_device("/") is None


def test_a_rename_survives_whole_or_not_at_all(disk, file):
    file.pwritev_durable([b"abc"], 0)
    disk.rename("/data/log", "/data/renamed")
    seen = {tuple(disk.crash(random.Random(seed)).list_directory("/data")) for seed in range(DRAWS)}
    assert seen == {("log",), ("renamed",)}
    disk.sync_directory("/data")
    assert contents(disk, "/data/renamed") == {b"abc"}


def test_an_unlink_may_be_forgotten(disk, file):
    file.pwritev_durable([b"abc"], 0)
    disk.unlink("/data/log")
    assert contents(disk, "/data/log") == {None, b"abc"}
    disk.sync_directory("/data")
    assert contents(disk, "/data/log") == {None}


def test_names_survive_in_any_order(disk):
    for name in ("first", "second"):
        disk.open("/data/" + name, create=True)
    seen = {tuple(disk.crash(random.Random(seed)).list_directory("/data")) for seed in range(DRAWS)}
    assert seen == {(), ("first",), ("second",), ("first", "second")}


def test_a_rename_onto_a_name_leaves_the_old_or_the_new_content(disk):
    disk.write_file_atomically("/data/checkpoint", b"old")
    replacement = disk.open("/data/checkpoint.tmp", create=True)
    replacement.pwritev_durable([b"new"], 0)
    disk.rename("/data/checkpoint.tmp", "/data/checkpoint")
    assert contents(disk, "/data/checkpoint") == {b"old", b"new"}


def test_a_rename_before_the_content_was_synced_may_leave_an_empty_file(disk):
    disk.write_file_atomically("/data/checkpoint", b"old")
    replacement = disk.open("/data/checkpoint.tmp", create=True)
    replacement.pwritev([b"new"], 0)
    disk.rename("/data/checkpoint.tmp", "/data/checkpoint")
    assert {b"old", b"new", b""} <= contents(disk, "/data/checkpoint")


def test_an_atomic_replacement_is_whole_after_a_crash_at_every_operation():
    def run(disk):
        disk.make_directory("/data")
        disk.sync_directory("/")
        disk.write_file_atomically("/data/checkpoint", b"old")
        started = disk.operations
        disk.write_file_atomically("/data/checkpoint", b"new and longer")
        return started

    rehearsal = SimulatedFileSystem()
    started = run(rehearsal)
    seen = []
    for point in range(started, rehearsal.operations + 1):
        disk = SimulatedFileSystem()
        disk.crash_after(point)
        if point < rehearsal.operations:
            with pytest.raises(SimulatedCrash):
                run(disk)
        else:
            run(disk)
        seen.append(contents(disk, "/data/checkpoint", draws=50))
    assert seen[0] == {b"old"}
    assert seen[-1] == {b"new and longer"}
    assert set().union(*seen) == {b"old", b"new and longer"}


# ---------------------------------------------------------------------------- kill and crash points


def test_a_killed_process_loses_nothing(disk, file):
    file.pwritev([b"abc"], 0)
    disk.lock("/data/.lock")
    disk.rename("/data/log", "/data/renamed")
    survivor = disk.kill()
    assert survivor.read_file("/data/renamed") == b"abc"
    survivor.lock("/data/.lock")


def test_after_a_kill_unsynced_data_is_still_unsynced(disk, file):
    file.pwritev([b"abc"], 0)
    assert contents(disk.kill(), "/data/log") == {b"", b"abc", b"\0\0\0"}


def test_a_killed_process_reaches_the_disk_no_more(disk, file):
    survivor = disk.kill()
    for call in (
        lambda: file.pwritev([b"late"], 0),
        lambda: file.pread(1, 0),
        file.fdatasync,
        lambda: disk.open("/data/log"),
        lambda: disk.unlink("/data/log"),
    ):
        with pytest.raises(SimulatedCrash):
            call()
    assert survivor.read_file("/data/log") == b""


def test_after_the_crash_point_every_call_crashes(disk, file):
    disk.crash_after(disk.operations + 2)
    file.pwritev([b"a"], 0)
    file.pwritev([b"b"], 1)
    for call in (
        lambda: file.pwritev([b"c"], 2),
        file.fdatasync,
        lambda: file.truncate(0),
        lambda: file.zero_fill(10),
        lambda: file.pread(1, 0),
        lambda: disk.sync_directory("/data"),
        lambda: disk.open("/data/new", create=True),
        lambda: disk.make_directory("/data/more"),
        lambda: disk.remove_directory("/data/more"),
        lambda: disk.rename("/data/log", "/data/x"),
        lambda: disk.list_directory("/data"),
        lambda: disk.exists("/data"),
        lambda: disk.is_directory("/data"),
    ):
        with pytest.raises(SimulatedCrash):
            call()
    assert b"ab" in contents(disk, "/data/log")


def test_a_crash_between_the_write_and_the_sync_of_a_durable_write(disk, file):
    disk.crash_after(disk.operations + 1)
    with pytest.raises(SimulatedCrash):
        file.pwritev_durable([b"abc"], 0)
    assert contents(disk, "/data/log") == {b"", b"abc", b"\0\0\0"}


def test_a_crash_cannot_be_swallowed_as_an_error(disk):
    assert not issubclass(SimulatedCrash, Exception)


def test_a_lying_disk_loses_what_it_said_was_synced():
    disk = SimulatedFileSystem(lying=True)
    disk.make_directory("/data")
    disk.sync_directory("/")
    file = disk.open("/data/log", create=True)
    disk.sync_directory("/data")
    file.pwritev([b"abc"], 0)
    file.fdatasync()
    file.pwritev_durable([b"def"], 3)
    assert {None, b"", b"abcdef"} <= contents(disk, "/data/log")


def test_plain_memory_cannot_lose_power():
    disk = SimulatedFileSystem(track_unsynced=False)
    disk.open("/log", create=True).pwritev([b"abc"], 0)
    with pytest.raises(ValueError, match="track_unsynced"):
        disk.crash(random.Random(0))
    assert disk.kill().read_file("/log") == b"abc"


# ------------------------------------------------------------------------------------------ faults


def test_the_disk_fills_up_and_takes_what_fits():
    disk = SimulatedFileSystem(capacity_bytes=10)
    file = disk.open("/log", create=True)
    file.pwritev([b"12345678"], 0)
    assert disk.free_bytes("/") == 2
    with pytest.raises(OSError, match="ENOSPC") as caught:
        file.pwritev([b"abc", b"def"], 8)
    assert caught.value.errno == errno.ENOSPC
    assert file.pread(100, 0) == b"12345678ab"
    file.pwritev([b"overwriting needs no room"[:10]], 0)
    with pytest.raises(OSError, match="ENOSPC"):
        file.pwritev([b"x"], 100)
    assert file.size() == 10
    assert disk.free_bytes("/") == 0


def test_disk_without_room_for_reserved_zeros_takes_what_fits():
    disk = SimulatedFileSystem(capacity_bytes=10)
    file = disk.open("/log", create=True)
    file.pwritev([b"1234"], 0)
    with pytest.raises(OSError, match="ENOSPC"):
        file.reserve(12)
    assert file.pread(100, 0) == b"1234" + bytes(6)
    assert disk.free_bytes("/") == 0


def test_removing_replacing_and_cutting_files_gives_room_back():
    disk = SimulatedFileSystem(capacity_bytes=10)
    disk.open("/a", create=True).pwritev([b"1234"], 0)
    disk.open("/b", create=True).pwritev([b"123456"], 0)
    disk.unlink("/a")
    assert disk.free_bytes("/") == 4
    disk.open("/b").truncate(2)
    assert disk.free_bytes("/") == 8
    disk.open("/c", create=True).pwritev([b"123"], 0)
    disk.rename("/c", "/b")
    assert disk.free_bytes("/") == 7
    assert disk.crash(random.Random(0)).free_bytes("/") >= 1
    assert disk.kill().free_bytes("/") == 7


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_one_operation_fails_without_effect(disk, file, code):
    disk.fail(disk.operations + 2, code)
    file.pwritev([b"a"], 0)
    with pytest.raises(OSError, match="/data/log") as caught:
        file.pwritev([b"b"], 1)
    assert caught.value.errno == code
    file.pwritev([b"c"], 1)
    assert file.pread(10, 0) == b"ac"


def test_a_failed_sync_made_nothing_durable(disk, file):
    file.pwritev([b"abc"], 0)
    disk.fail(disk.operations + 1)
    with pytest.raises(OSError, match="EIO"):
        file.fdatasync()
    assert b"" in contents(disk, "/data/log")


def test_hooks_see_each_operation_and_may_refuse_it(disk, file):
    before, after = [], []
    disk.before, disk.after = before.append, after.append
    first = disk.operations + 1
    file.pwritev_durable([b"abc"], 5)
    file.pread(2, 0)
    assert before == [
        Operation(first, "pwritev", "/data/log", 5, 3),
        Operation(first + 1, "fdatasync", "/data/log", 5, 3),
        Operation(first + 1, "pread", "/data/log", 0, 2),
    ]
    assert after == before[:2]

    def refuse(operation):
        raise OSError(errno.EIO, "bad sector")

    disk.before = refuse
    with pytest.raises(OSError, match="bad sector"):
        file.pread(2, 0)


def test_a_cold_disk_has_nothing_cached(disk, file):
    file.pwritev([b"abc"], 0)
    assert file.pread_cached(3, 0) == b"abc"
    disk.cold = True
    assert file.pread_cached(3, 0) is None
    assert file.pread(3, 0) == b"abc"


def test_odd_paths_and_clashes(disk, file):
    assert disk.join("/data/", "log") == "/data/log"
    assert disk.join("/", "data") == "/data"
    assert disk.read_file("/data//./log") == b""
    assert not disk.exists("/data/log/deeper")
    with pytest.raises(NotADirectoryError):
        disk.make_directory("/data/log/deeper")
    disk.make_directory("/other")
    disk.rename("/data/log", "/other/log")
    assert disk.list_directory("/data") == []
    assert disk.read_file("/other/log") == b""


def test_a_move_between_directories_may_survive_by_half(disk, file):
    disk.make_directory("/other")
    disk.sync_directory("/")
    disk.rename("/data/log", "/other/log")
    seen = set()
    for seed in range(DRAWS):
        survivor = disk.crash(random.Random(seed))
        seen.add((survivor.exists("/data/log"), survivor.exists("/other/log")))
    assert seen == {(True, False), (False, True), (True, True), (False, False)}


def test_two_names_of_one_file_show_the_same_content(disk, file):
    disk.make_directory("/other")
    disk.sync_directory("/")
    file.pwritev([bytes(range(256)) * 20], 0)
    disk.rename("/data/log", "/other/log")
    both = 0
    for seed in range(DRAWS):
        survivor = disk.crash(random.Random(seed))
        if survivor.exists("/data/log") and survivor.exists("/other/log"):
            both += 1
            assert survivor.read_file("/data/log") == survivor.read_file("/other/log")
            survivor.open("/data/log").truncate(0)
            assert survivor.read_file("/other/log") == b""
    assert both


def test_a_reader_and_a_writer_in_two_threads(disk, file):
    failures = []

    def write():
        try:
            for index in range(2000):
                file.pwritev([index.to_bytes(4) * 64], index * 256)
        except BufferError as error:  # a resize while a reader holds the memory
            failures.append(error)

    writer = start_thread("writer", write)
    while writer.is_alive():
        data = file.pread(1 << 20, 0)
        assert len(data) % 256 == 0
    writer.join()
    assert not failures


def test_plain_memory_is_fast():
    disk = SimulatedFileSystem(track_unsynced=False)
    file = disk.open("/log", create=True)
    block = [bytes(16384)]
    # By the thread's own time: other processes may have the processor meanwhile.
    started = processor_seconds()
    for index in range(1000):
        file.pwritev_durable(block, index * 16384)
    assert processor_seconds() - started < 1.0


# ------------------------------------------------------------------------------------ random runs

writes = st.tuples(st.just("write"), st.integers(0, 3000), st.integers(0, 2000))
changes = st.lists(
    st.one_of(
        writes,
        st.tuples(st.just("durable"), st.integers(0, 3000), st.integers(0, 2000)),
        st.tuples(st.just("truncate"), st.integers(0, 4000), st.just(0)),
        st.tuples(st.just("fill"), st.integers(0, 6000), st.just(0)),
        st.tuples(st.just("sync"), st.just(0), st.just(0)),
    ),
    max_size=12,
)


@given(changes, st.integers(0, 2**32))
@settings(max_examples=300, deadline=None)
def test_durable_bytes_survive_and_nothing_else_is_invented(steps, seed):
    """Each surviving byte is one the position once had since it was last durable, or zero.

    A position's possible bytes are the bits of a number.
    """
    disk = SimulatedFileSystem()
    file = disk.open("/log", create=True)
    disk.sync_directory("/")
    possible = [1] * 8000
    content = b""
    for number, (name, position, size) in enumerate(steps, 1):
        if name == "sync":
            file.fdatasync()
            possible = [1 << byte for byte in file.pread(8000, 0).ljust(8000, b"\0")]
        elif name == "truncate":
            file.truncate(position)
            possible[position:] = [bits | 1 for bits in possible[position:]]
            content = content[:position].ljust(position, b"\0")
        elif name == "fill":
            possible[file.size() :] = [bits | 1 for bits in possible[file.size() :]]
            file.zero_fill(position)
            content = content.ljust(position, b"\0")
        else:
            data = bytes([number]) * size
            (file.pwritev if name == "write" else file.pwritev_durable)([data], position)
            before = [0] * size if name == "durable" else possible[position : position + size]
            possible[position : position + size] = [bits | 1 << number for bits in before]
            if size:
                content = (
                    content[:position].ljust(position, b"\0") + data + content[position + size :]
                )
        assert file.pread(8000, 0) == content
    survivor = disk.crash(random.Random(seed)).read_file("/log")
    assert all(possible[index] >> byte & 1 for index, byte in enumerate(survivor))
    assert all(bits & 1 for bits in possible[len(survivor) :]), "a byte that was durable is gone"
