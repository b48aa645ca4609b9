"""Batches sent from the page cache are those that would have been read (L)."""

import errno
import random
import socket

import pytest

from barnabas.broker.testing.disk.simulated import SimulatedFileSystem
from barnabas.protocol.records import iterate_batches
from barnabas.storage.errors import Corrupt
from barnabas.storage.files import io, linux
from barnabas.storage.files.io import FileSlice, LocalFileSystem
from barnabas.storage.files.linux import cached_pages
from barnabas.storage.log import segment_read
from barnabas.storage.log.segment_read import FileSpan, read_cached
from tests.seeds import SEED
from tests.storage.page_cache import all_is_cached
from tests.storage.stores import batch


@pytest.fixture(autouse=True)
def slices_of_any_size(monkeypatch):
    monkeypatch.setattr(segment_read, "SLICE_BYTES_MIN", 1)
    all_is_cached(monkeypatch)


def a_log_file(chance, path):
    """A file of batches, and where each begins: (position, base offset)."""
    data, starts, offset = bytearray(), [], 0
    for _ in range(60):
        # Now and then one that is larger than what is read in search of the next.
        count, size = chance.choice([(1, 10), (3, 100), (2, 700), (1, 9000)])
        one = bytearray(batch(count, value=b"v" * size))
        one[:8] = offset.to_bytes(8, "big")
        starts.append((len(data), offset))
        data += one
        offset += count
    path.write_bytes(data)
    return starts, len(data), offset


def a_span(chance, file, starts, size, end):
    """Any that a segment could make: its index knows some of the batches."""
    known = [starts[0], *sorted(chance.sample(starts[1:], 12))]
    start_offset = chance.randrange(end)
    end_offset = chance.randint(start_offset, end)
    max_bytes = chance.choice([0, 500, 5000, 20_000, 200_000])
    position = max(at for at, base in known if base <= start_offset)
    limit = max(at for at, base in known if base <= max(end_offset - 1, 0))
    boundary, boundary_offset = max(each for each in known if each[0] <= position + max_bytes)
    if limit < boundary:
        boundary, boundary_offset = limit, end_offset
    return FileSpan(
        "log", file, position, size, max(boundary, position), boundary_offset,
        start_offset, end_offset, max_bytes,
    )  # fmt: skip


@pytest.mark.parametrize("case", range(8))
def test_a_slice_holds_what_a_load_reads(tmp_path, case):
    chance = random.Random(f"{SEED}-{case}")
    print(f"SEED={SEED}")
    path = tmp_path / "log"
    starts, size, end = a_log_file(chance, path)
    file = LocalFileSystem().open(str(path))
    sliced = 0
    for _ in range(300):
        span = a_span(chance, file, starts, size, end)
        loaded = span.load(read_cached)
        found = span.slice()
        if found is None:
            continue
        data, upper_offset = found
        sliced += 1
        assert (data.read(), upper_offset) == (bytes(loaded.data), loaded.upper_offset)
        headers = [header for _, header in iterate_batches(data.read())]
        assert sum(header.size for header in headers) == len(data)
        assert headers[0].last_offset >= span.start_offset
    assert sliced > 20


def test_little_is_read_instead(tmp_path, monkeypatch):
    starts, size, end = a_log_file(random.Random(1), tmp_path / "log")
    file = LocalFileSystem().open(str(tmp_path / "log"))
    last = starts[-1]
    span = FileSpan("log", file, 0, size, last[0], last[1], 0, end, size)
    assert len(span.slice()[0]) == size
    monkeypatch.setattr(segment_read, "SLICE_BYTES_MIN", last[0] + 1)
    assert span.slice() is None
    assert len(span.load(read_cached).data) == size


def test_uncached_bytes_are_no_slice(tmp_path, monkeypatch):
    starts, size, end = a_log_file(random.Random(2), tmp_path / "log")
    file = LocalFileSystem().open(str(tmp_path / "log"))
    span = FileSpan("log", file, 0, size, *starts[-1], 0, end, size)
    found, _ = span.slice()
    assert found.is_cached()
    pages = -(-size // io.PAGE_BYTES)
    monkeypatch.setattr(io, "cached_pages", lambda *_: pages - 1)
    assert not found.is_cached()
    assert span.slice() is None
    found.will_be_needed()
    assert found.read() == (tmp_path / "log").read_bytes()


def test_the_kernel_counts_the_pages_of_a_range(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(bytes(10 * io.PAGE_BYTES))
    with path.open("rb+") as file:
        known = [
            cached_pages(file.fileno(), size, position)
            for size, position in [(10 * io.PAGE_BYTES, 0), (1, 5), (2, io.PAGE_BYTES - 1)]
        ]
    assert known in ([10, 1, 2], [-1, -1, -1]), "-1: a kernel before 6.5, or not allowed to say"


def test_a_kernel_that_does_not_say_what_it_has(tmp_path, monkeypatch):
    starts, size, end = a_log_file(random.Random(3), tmp_path / "log")
    file = LocalFileSystem().open(str(tmp_path / "log"))
    span = FileSpan("log", file, 0, size, *starts[-1], 0, end, size)
    monkeypatch.setattr(io, "cached_pages", cached_pages)
    monkeypatch.setattr(linux, "_CACHESTAT", 100_000)  # no such system call
    assert span.slice() is None
    monkeypatch.setattr(linux, "_system_call", lambda: None)
    assert span.slice() is None


def test_files_that_are_none_of_the_kernels_are_read():
    file = SimulatedFileSystem().open("log", create=True)
    file.pwritev([bytes(batch(2))], 0)
    assert file.slice(10, 0) is None


def test_damage_is_found_while_the_ends_are_looked_for(tmp_path):
    path = tmp_path / "log"
    starts, size, end = a_log_file(random.Random(4), path)
    data = bytearray(path.read_bytes())
    data[starts[-1][0] + 16] = 7
    path.write_bytes(data)
    span = FileSpan("log", LocalFileSystem().open(str(path)), 0, size, *starts[-2], 0, end, size)
    with pytest.raises(Corrupt, match="no record batch"):
        span.slice()
    with pytest.raises(Corrupt, match="no record batch"):
        span.load(read_cached)


def test_a_slice_is_sent_in_parts(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(data := random.Random(5).randbytes(3_000_000))
    rest = FileSlice(LocalFileSystem().open(str(path)), len(data) - 5, 5)
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    received = bytearray()
    while len(rest):
        try:
            rest = rest.after(rest.send(ours.fileno()))
        except BlockingIOError:
            received += theirs.recv(1 << 20)
    ours.close()
    while piece := theirs.recv(1 << 20):
        received += piece
    theirs.close()
    assert received == data[5:]


def test_a_file_that_has_become_shorter_is_an_error(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"x" * 100)
    file = LocalFileSystem().open(str(path))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        beyond = FileSlice(file, 50, 80)
        assert beyond.send(ours.fileno()) == 20
        for call in (beyond.read, lambda: beyond.after(20).send(ours.fileno())):
            with pytest.raises(OSError, match="shorter") as raised:
                call()
            assert raised.value.errno == errno.EIO
