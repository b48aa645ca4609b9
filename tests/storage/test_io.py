"""Tests of both file systems: that of the operating system and the simulation."""

import ctypes
import errno
import os
import tempfile
from functools import partial
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.storage.files import io, linux
from barnabas.storage.files.file_system import AlreadyLocked, FileSystem, temporary_name
from barnabas.storage.files.io import IOV_MAX, LocalDevice, LocalFile, LocalFileSystem, window


@pytest.fixture(params=["local", "simulated"])
def files(request) -> FileSystem:
    return LocalFileSystem() if request.param == "local" else SimulatedFileSystem()


@pytest.fixture
def root(files, tmp_path) -> str:
    path = str(tmp_path)
    files.make_directory(path, exist_ok=True)
    return path


@pytest.fixture
def file(files, root):
    handle = files.open(files.join(root, "log"), create=True)
    yield handle
    handle.close()


def test_reads_back_what_was_written_at_any_position(file):
    file.pwritev([b"abc", bytearray(b"def"), memoryview(b"ghi")], 0)
    file.pwritev([b"XY"], 4)
    assert file.pread(100, 0) == b"abcdXYghi"
    assert file.pread(3, 4) == b"XYg"
    assert file.size() == 9


def test_reading_at_and_past_the_end_is_short_or_empty(file):
    file.pwritev([b"abc"], 0)
    assert file.pread(10, 1) == b"bc"
    assert file.pread(10, 3) == b""
    assert file.pread(10, 300) == b""
    assert file.pread_cached(10, 1) == b"bc"
    assert file.pread_cached(10, 300) == b""


def test_a_hole_reads_as_zeros(file):
    file.pwritev([b"end"], 5)
    assert file.pread(8, 0) == b"\0\0\0\0\0end"


@pytest.mark.parametrize("write", ["pwritev", "pwritev_durable"])
@pytest.mark.parametrize("count", [0, 1, IOV_MAX, IOV_MAX + 1, 2 * IOV_MAX + 5])
def test_writes_any_number_of_buffers(file, write, count):
    buffers = [index.to_bytes(3) for index in range(count)]
    getattr(file, write)(buffers, 7)
    assert file.pread(3 * count, 7) == b"".join(buffers)
    assert file.size() == (7 + 3 * count if count else 0)


@pytest.mark.parametrize("write", ["pwritev", "pwritev_durable"])
def test_empty_buffers_among_others_are_skipped(file, write):
    getattr(file, write)([b"", b"a", b"", b"b", b""], 0)
    assert file.pread(10, 0) == b"ab"


def test_truncate_cuts_and_extends(file):
    file.pwritev([b"abcdef"], 0)
    file.truncate(3)
    assert file.pread(10, 0) == b"abc"
    file.truncate(5)
    assert file.pread(10, 0) == b"abc\0\0"


def test_zero_fill_extends_only(file):
    file.pwritev([b"abc"], 0)
    file.zero_fill(5)
    assert file.pread(10, 0) == b"abc\0\0"
    file.zero_fill(2)
    assert file.size() == 5
    file.zero_fill(2 * io.ZERO_CHUNK_BYTES + 17)
    assert file.size() == 2 * io.ZERO_CHUNK_BYTES + 17


def test_hints_change_nothing(file):
    file.pwritev([b"abc"], 0)
    file.allocate(0, 1 << 16)
    file.start_writeback(0, 3)
    file.fdatasync()
    assert file.pread(10, 0) == b"abc"
    assert file.size() == 3


def test_open_needs_the_file_or_leave_to_create_it(files, root):
    with pytest.raises(FileNotFoundError):
        files.open(files.join(root, "missing"))
    with pytest.raises(FileNotFoundError):
        files.open(files.join(root, "no-directory", "missing"), create=True)
    with pytest.raises(IsADirectoryError):
        files.open(root)


def test_creating_an_existing_file_keeps_its_content(files, root, file):
    file.pwritev([b"abc"], 0)
    again = files.open(files.join(root, "log"), create=True)
    assert again.pread(10, 0) == b"abc"
    again.close()


def test_rename_replaces_and_an_open_handle_follows(files, root, file):
    file.pwritev([b"abc"], 0)
    files.write_file_atomically(files.join(root, "other"), b"old")
    files.rename(files.join(root, "log"), files.join(root, "other"))
    assert not files.exists(files.join(root, "log"))
    file.pwritev([b"Z"], 3)
    assert files.read_file(files.join(root, "other")) == b"abcZ"
    with pytest.raises(FileNotFoundError):
        files.rename(files.join(root, "log"), files.join(root, "other"))


def test_an_unlinked_file_stays_readable_for_its_handles(files, root, file):
    file.pwritev([b"abc"], 0)
    files.unlink(files.join(root, "log"))
    assert file.pread(3, 0) == b"abc"
    assert not files.exists(files.join(root, "log"))
    with pytest.raises(FileNotFoundError):
        files.unlink(files.join(root, "log"))


def test_directories(files, root):
    deep = files.join(root, "a", "b")
    files.make_directory(deep)
    files.make_directory(deep, exist_ok=True)
    with pytest.raises(FileExistsError):
        files.make_directory(deep)
    assert files.is_directory(deep)
    assert files.list_directory(root) == ["a"]
    with pytest.raises(OSError, match=r"mpty|EMPTY") as caught:
        files.remove_directory(files.join(root, "a"))
    assert caught.value.errno == errno.ENOTEMPTY
    files.remove_directory(deep)
    assert not files.exists(deep)
    with pytest.raises(FileNotFoundError):
        files.list_directory(deep)
    with pytest.raises(FileNotFoundError):
        files.sync_directory(deep)


def test_directories_can_be_renamed_with_their_content(files, root):
    files.make_directory(files.join(root, "old"))
    files.write_file_atomically(files.join(root, "old", "file"), b"abc")
    files.rename(files.join(root, "old"), files.join(root, "new"))
    assert files.read_file(files.join(root, "new", "file")) == b"abc"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("directory", "directory/below", errno.EINVAL),
        ("directory/file", "directory", errno.ENOTEMPTY),
        ("directory", "file", errno.ENOTDIR),
        ("empty", "directory", errno.ENOTEMPTY),
        ("file", "directory", errno.EISDIR),
        ("file", "file/below", errno.ENOTDIR),
        ("file", "missing/file", errno.ENOENT),
        ("file", "file", None),
        ("directory", "directory", None),
        ("directory", "empty", None),
    ],
)
def test_renames_that_are_refused(files, root, old, new, code):
    files.make_directory(files.join(root, "directory"))
    files.make_directory(files.join(root, "empty"))
    files.write_file_atomically(files.join(root, "file"), b"abc")
    files.write_file_atomically(files.join(root, "directory", "file"), b"abc")
    before = tree(files, root)
    if code is None:
        files.rename(files.join(root, old), files.join(root, new))
        assert files.exists(files.join(root, new))
        return
    with pytest.raises(OSError) as caught:
        files.rename(files.join(root, old), files.join(root, new))
    assert caught.value.errno == code
    assert tree(files, root) == before


def test_names_are_no_longer_than_a_disk_takes_them(files, root, file):
    """255 bytes: Kafka's longest topic with its partition leaves five of them."""
    longest, longer = ("n" * bytes_ for bytes_ in (255, 256))
    files.make_directory(files.join(root, longest))
    files.write_file_atomically(files.join(root, longest, "file"), b"abc")
    path = files.join(root, longer)
    before = tree(files, root)
    assert not files.exists(path)
    assert not files.is_directory(path)
    for refused in (
        lambda: files.open(path, create=True),
        lambda: files.open(files.join(path, "file")),
        lambda: files.make_directory(path),
        lambda: files.rename(files.join(root, longest), path),
        lambda: files.unlink(path),
        lambda: files.list_directory(path),
    ):
        with pytest.raises(OSError) as caught:
            refused()
        assert caught.value.errno == errno.ENAMETOOLONG
    assert tree(files, root) == before


def test_a_file_is_not_a_directory(files, root, file):
    path = files.join(root, "log")
    assert files.exists(path)
    assert not files.is_directory(path)
    with pytest.raises(NotADirectoryError):
        files.list_directory(path)
    files.make_directory(files.join(root, "directory"))
    with pytest.raises(IsADirectoryError):
        files.unlink(files.join(root, "directory"))


def test_list_directory_is_sorted(files, root):
    for name in ("b", "c", "a"):
        files.open(files.join(root, name), create=True).close()
    assert files.list_directory(root) == ["a", "b", "c"]


@pytest.mark.parametrize("content", [b"", b"longer than before", b"short"])
def test_write_file_atomically_replaces_the_whole_content(files, root, content):
    path = files.join(root, "checkpoint")
    files.write_file_atomically(path, b"first content")
    files.write_file_atomically(path, content)
    assert files.read_file(path) == content
    assert files.list_directory(root) == ["checkpoint"]


def test_write_file_atomically_overwrites_a_leftover_of_a_crash(files, root):
    path = files.join(root, "checkpoint")
    files.open(temporary_name(path), create=True).pwritev([b"x" * 100], 0)
    files.write_file_atomically(path, b"new")
    assert files.read_file(path) == b"new"


def test_only_one_holder_of_a_lock(files, root):
    path = files.join(root, ".lock")
    lock = files.lock(path)
    with pytest.raises(AlreadyLocked, match=r"\.lock"):
        files.lock(path)
    lock.release()
    files.lock(path).release()


def test_free_bytes_is_plausible(files, root):
    assert files.free_bytes(root) > 1 << 20


def test_a_device_is_synced_with_everything_on_it(files, root, file):
    file.pwritev([b"x"], 0)
    device = files.open_device(root)
    if device is not None:  # Not every file system is known to be synced as a whole.
        device.sync()
        device.close()
    assert file.pread(1, 0) == b"x"


def test_a_device_that_fails_says_so(monkeypatch):
    def broken(_descriptor):
        ctypes.set_errno(errno.EIO)
        return -1

    monkeypatch.setattr(io, "syncfs", lambda: broken)
    with pytest.raises(OSError, match="Input/output error") as caught:
        LocalDevice(0, "/data").sync()
    assert (caught.value.errno, caught.value.filename) == (errno.EIO, "/data")


@pytest.mark.parametrize(
    ("release", "kind", "known"),
    [
        ("6.8.0-45-generic", 0xEF53, True),
        ("5.8-rc1", 0x58465342, True),
        ("5.7.19", 0xEF53, False),
        ("6.8.0", 0x6969, False),  # NFS
    ],
)
def test_only_what_is_known_to_say_errors_is_synced_as_a_whole(
    tmp_path, monkeypatch, release, kind, known
):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=release))
    monkeypatch.setattr(io, "linux_release", linux.linux_release.__wrapped__)
    monkeypatch.setattr(io, "file_system_type", lambda _descriptor: kind)
    device = LocalFileSystem().open_device(str(tmp_path))
    assert (device is not None) == known
    if device is not None:
        device.close()


def test_a_whole_file_is_read_however_long_it_is(files, root):
    path = files.join(root, "long")
    content = bytes(range(256)) * (3 << 12)
    files.write_file_atomically(path, content)
    assert files.read_file(path) == content


def test_window_skips_bytes_across_buffers():
    buffers = [b"abc", b"", b"defg"]
    for skip in range(8):
        assert b"".join(window(buffers, skip)) == b"abcdefg"[skip:]


# ----------------------------------------------------------------------- the operating system only


@pytest.fixture
def local_file(tmp_path):
    file = LocalFileSystem().open(str(tmp_path / "log"), create=True)
    yield file
    file.close()


@pytest.mark.parametrize("write", ["pwritev", "pwritev_durable"])
def test_short_writes_are_continued(local_file: LocalFile, monkeypatch, write):
    genuine = os.pwritev

    def at_most_five_bytes(descriptor, buffers, position, flags=0):
        head = b"".join(bytes(buffer) for buffer in buffers)[:5]
        return genuine(descriptor, [head], position, flags)

    monkeypatch.setattr(os, "pwritev", at_most_five_bytes)
    data = [b"abcd", b"", b"efghijk", b"l" * 20]
    getattr(local_file, write)(data, 3)
    assert local_file.pread(100, 3) == b"".join(data)


@pytest.mark.parametrize(
    ("answers", "synced"),
    [("everything", False), ("short", True), ("unsupported", True)],
)
def test_a_durable_write_syncs_unless_one_call_did_it(local_file, monkeypatch, answers, synced):
    genuine, calls = os.pwritev, []

    def pwritev(descriptor, buffers, position, flags=0):
        if flags and answers == "unsupported":
            raise OSError(errno.EOPNOTSUPP, "not here")
        if flags and answers == "short":
            buffers = [bytes(buffers[0])[:1]]
        return genuine(descriptor, buffers, position, flags)

    monkeypatch.setattr(os, "pwritev", pwritev)
    monkeypatch.setattr(os, "fdatasync", calls.append)
    local_file.pwritev_durable([b"abc"], 0)
    assert bool(calls) == synced
    assert local_file.pread(3, 0) == b"abc"


@pytest.fixture
def calls(monkeypatch):
    """Return the calls for durability, in order, with their file or directory.

    A file is known by its number, by which it goes through a rename.
    """
    noted = []
    genuine = {name: getattr(os, name) for name in ("fsync", "fdatasync", "rename")}

    def sync(name, descriptor):
        noted.append((name, os.fstat(descriptor).st_ino))
        genuine[name](descriptor)

    def rename(old, new):
        noted.append(("rename", os.stat(old).st_ino))
        genuine["rename"](old, new)

    monkeypatch.setattr(os, "fsync", partial(sync, "fsync"))
    monkeypatch.setattr(os, "fdatasync", partial(sync, "fdatasync"))
    monkeypatch.setattr(os, "rename", rename)
    return noted


def test_a_directory_is_synced_by_its_own_descriptor(tmp_path, calls):
    """A power loss removes the names of new files in an unsynced directory (D1)."""
    LocalFileSystem().sync_directory(str(tmp_path))
    assert calls == [("fsync", tmp_path.stat().st_ino)]


def test_a_file_that_is_replaced_is_durable_before_its_name_and_its_name_afterwards(
    tmp_path, calls
):
    path = tmp_path / "checkpoint"
    LocalFileSystem().write_file_atomically(str(path), b"new")
    file, directory = path.stat().st_ino, tmp_path.stat().st_ino
    assert calls == [("fdatasync", file), ("rename", file), ("fsync", directory)]


def test_an_error_of_a_directorys_sync_is_not_hidden(tmp_path, monkeypatch):
    """The call raises the error (D9), and still closes the descriptor."""
    asked = []

    def broken(descriptor):
        asked.append(descriptor)
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="broken disk"):
        LocalFileSystem().sync_directory(str(tmp_path))
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(asked[0])


def test_started_page_is_written_and_stays_in_the_cache(local_file):
    local_file.pwritev([b"a" * 8192], 0)
    local_file.fdatasync()
    local_file.begin_page([b"b" * 4000, b"c" * 96], 4096)
    local_file.fdatasync()
    assert local_file.pread(8192, 0) == b"a" * 4096 + b"b" * 4000 + b"c" * 96
    assert local_file.pread_cached(8192, 0) is not None


def test_an_error_of_a_durable_write_is_not_hidden(local_file, monkeypatch):
    def broken(*arguments):
        raise OSError(errno.EIO, "disk gone")

    monkeypatch.setattr(os, "pwritev", broken)
    with pytest.raises(OSError, match="disk gone"):
        local_file.pwritev_durable([b"abc"], 0)


def test_an_error_of_the_sync_is_not_hidden(local_file, monkeypatch):
    def broken(descriptor):
        raise OSError(errno.EIO, "lost")

    monkeypatch.setattr(os, "fdatasync", broken)
    with pytest.raises(OSError, match="lost"):
        local_file.pwritev_durable([b"x"] * (IOV_MAX + 1), 0)
    with pytest.raises(OSError, match="lost"):
        local_file.fdatasync()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BlockingIOError(errno.EAGAIN, "not cached"), None),
        (OSError(errno.EOPNOTSUPP, "tmpfs"), b"abc"),
    ],
)
def test_pread_cached_without_the_pages_or_without_support(
    local_file, monkeypatch, error, expected
):
    def preadv(*arguments):
        raise error

    local_file.pwritev([b"abc"], 0)
    monkeypatch.setattr(os, "preadv", preadv)
    assert local_file.pread_cached(3, 0) == expected


def test_pread_cached_of_half_a_range_is_not_cached(local_file, monkeypatch):
    local_file.pwritev([b"abcdef"], 0)
    monkeypatch.setattr(os, "preadv", lambda *arguments: 2)
    assert local_file.pread_cached(6, 0) is None


def test_pread_cached_lets_other_errors_through(local_file, monkeypatch):
    def preadv(*arguments):
        raise OSError(errno.EIO, "bad sector")

    monkeypatch.setattr(os, "preadv", preadv)
    with pytest.raises(OSError, match="bad sector"):
        local_file.pread_cached(3, 0)


def test_short_reads_are_continued(local_file, monkeypatch):
    genuine = os.pread
    local_file.pwritev([b"abcdefgh"], 0)
    monkeypatch.setattr(os, "pread", lambda fd, size, position: genuine(fd, min(size, 3), position))
    assert local_file.pread(100, 1) == b"bcdefgh"


def test_hints_reach_the_kernel_with_their_arguments_in_order(local_file, monkeypatch):
    calls = []

    class Function:
        def __init__(self, name):
            self.name = name

        def __call__(self, *arguments):
            calls.append((self.name, *arguments))

    library = type(
        "Library", (), {name: Function(name) for name in ("fallocate", "sync_file_range")}
    )
    monkeypatch.setattr(io.ctypes, "CDLL", lambda *arguments, **options: library)
    linux.library_function.cache_clear()
    try:
        local_file.allocate(4096, 1 << 20)
        local_file.start_writeback(8192, 512)
    finally:
        linux.library_function.cache_clear()
    descriptor = local_file._descriptor
    assert calls == [
        ("fallocate", descriptor, 1, 4096, 1 << 20),  # FALLOC_FL_KEEP_SIZE
        ("sync_file_range", descriptor, 8192, 512, 2),  # SYNC_FILE_RANGE_WRITE
    ]


def test_allocate_keeps_the_size(local_file):
    local_file.allocate(0, 1 << 20)
    assert local_file.size() == 0
    local_file.fdatasync()


def test_missing_library_calls_are_no_error(local_file, monkeypatch):
    monkeypatch.setattr(io, "library_function", lambda name: None)
    local_file.allocate(0, 4096)
    local_file.start_writeback(0, 4096)
    assert local_file.size() == 0


def test_no_such_library_call_is_none():
    assert linux.library_function.__wrapped__("barnabas_no_such_call") is None


# ---------------------------------------------------------------------- both file systems, in step

NAMES = st.sampled_from(["a", "b", "d/a", "d/b", "d", "e/a", "e", "n" * 256])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("write"), NAMES, st.integers(0, 60), st.binary(max_size=40)),
        st.tuples(st.just("durable"), NAMES, st.integers(0, 60), st.binary(max_size=40)),
        st.tuples(st.just("truncate"), NAMES, st.integers(0, 60)),
        st.tuples(st.just("zero_fill"), NAMES, st.integers(0, 60)),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("unlink"), NAMES),
        st.tuples(st.just("mkdir"), NAMES, st.booleans()),
        st.tuples(st.just("rmdir"), NAMES),
        st.tuples(st.just("replace"), NAMES, st.binary(max_size=40)),
    ),
    max_size=25,
)


def perform(files, root, name, path, *arguments):
    """Do one step; answers what it saw, or the kind of error."""
    path = files.join(root, path)
    actions = {
        "create": lambda: files.open(path, create=True).close(),
        "rename": lambda: files.rename(path, files.join(root, *arguments)),
        "unlink": lambda: files.unlink(path),
        "mkdir": lambda: files.make_directory(path, exist_ok=arguments[0]),
        "rmdir": lambda: files.remove_directory(path),
        "replace": lambda: files.write_file_atomically(path, arguments[0]),
    }
    try:
        if name in actions:
            actions[name]()
            return "done"
        file = files.open(path)
        try:
            if name in ("write", "durable"):
                write = file.pwritev if name == "write" else file.pwritev_durable
                write([arguments[1][:7], arguments[1][7:]], arguments[0])
            else:
                getattr(file, name)(*arguments)
            return file.size(), file.pread(1000, 0), file.pread_cached(1000, 0)
        finally:
            file.close()
    except OSError as error:
        return errno.errorcode[error.errno]


def tree(files, path):
    """Everything below a directory."""
    found = {}
    for name in files.list_directory(path):
        child = files.join(path, name)
        found[name] = tree(files, child) if files.is_directory(child) else files.read_file(child)
    return found


@given(STEPS)
def test_the_simulation_answers_like_the_operating_system(steps):
    simulated, local = SimulatedFileSystem(capacity_bytes=1 << 30), LocalFileSystem()
    simulated.make_directory("/root")
    with tempfile.TemporaryDirectory() as root:
        for step in steps:
            assert perform(simulated, "/root", *step) == perform(local, root, *step), step
            assert tree(simulated, "/root") == tree(local, root), step
    held = tree(simulated, "/root")
    assert (1 << 30) - simulated.free_bytes("/") == held_bytes(held)


def held_bytes(held):
    return sum(held_bytes(v) if isinstance(v, dict) else len(v) for v in held.values())


def test_read_only_changes_nothing(tmp_path):
    path = str(tmp_path / "log")
    (tmp_path / "log").write_bytes(b"abc")
    files = LocalFileSystem(read_only=True)
    file = files.open(path)
    assert file.pread(10, 0) == b"abc"
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.pwritev([b"x"], 0)
    file.close()
    with pytest.raises(FileNotFoundError):
        files.open(str(tmp_path / "other"), create=True)
    with pytest.raises(FileNotFoundError):
        files.lock(str(tmp_path / "lock"))
    assert [each.name for each in tmp_path.iterdir()] == ["log"]


def test_read_only_meets_the_lock_of_others(tmp_path):
    path = str(tmp_path / "lock")
    held = LocalFileSystem().lock(path)
    with pytest.raises(AlreadyLocked):
        LocalFileSystem(read_only=True).lock(path)
    held.release()
    LocalFileSystem(read_only=True).lock(path).release()


@pytest.mark.parametrize("cached", [-1, 0, 3])
def test_passing_read_drops_pages_that_were_not_cached(tmp_path, monkeypatch, cached):
    """A read keeps pages that were cached, or that the kernel does not report."""
    path = tmp_path / "file"
    path.write_bytes(b"0123456789" * 10_000)
    advice = []
    monkeypatch.setattr(io, "cached_pages", lambda *_: cached)
    monkeypatch.setattr(io.os, "posix_fadvise", lambda _fd, *rest: advice.append(rest))
    file = LocalFileSystem().open(str(path))
    assert file.pread_passing(8192, 4096) == (b"0123456789" * 10_000)[4096 : 4096 + 8192]
    file.close()
    assert advice[0] == (0, 0, io.os.POSIX_FADV_RANDOM), "no reading ahead of it"
    dropped = [(4096, 8192, io.os.POSIX_FADV_DONTNEED)]
    assert advice[1:] == (dropped if cached == 0 else [])
