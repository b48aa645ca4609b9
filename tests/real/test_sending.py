"""Answers past the transport: what a socket takes, and what is in files behind it."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

from barnabas.broker.network import sending
from barnabas.broker.network.sending import Remainder, has_slices, in_memory, send, send_unpaced
from barnabas.storage.files.io import FileSlice, LocalFileSystem
from tests.broker.descriptors import left_open_since, open_descriptors
from tests.seeds import SEED
from tests.storage.page_cache import all_is_cached
from tests.waiting import until

CONTENT = random.Random(7).randbytes(4_000_000)


@pytest.fixture
def file(tmp_path, monkeypatch):
    all_is_cached(monkeypatch)
    (tmp_path / "log").write_bytes(CONTENT)
    return LocalFileSystem().open(str(tmp_path / "log"))


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def some_chunks(chance, file):
    """Pieces as an answer has them, and what they hold."""
    chunks, content = [], b""
    for _ in range(chance.randint(1, 30)):
        size = chance.choice([0, 1, 3, 100, 20_000, 300_000])
        at = chance.randrange(len(CONTENT) - size)
        piece = CONTENT[at : at + size]
        kinds = [piece, bytearray(piece), memoryview(piece)]
        chunks.append(chance.choice([*kinds, FileSlice(file, size, at)] if size else kinds))
        content += piece
    return chunks, content


def read_some(theirs, size):
    try:
        return theirs.recv(size)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("case", range(20))
def test_every_byte_is_sent_once_and_in_order(file, pair, case):
    print(f"SEED={SEED}")
    chance = random.Random(f"{SEED}-{case}")
    ours, theirs = pair
    chunks, content = some_chunks(chance, file)
    received = b""
    while chunks:
        before = sum(map(len, chunks))
        send(ours.fileno(), chunks)
        assert b"".join(in_memory(chunks)) == content[len(content) - sum(map(len, chunks)) :]
        received += read_some(theirs, chance.choice([1000, 100_000, 1 << 20]))
        assert sum(map(len, chunks)) <= before
    while piece := read_some(theirs, 1 << 20):
        received += piece
    assert received == content


def test_more_pieces_than_one_call_takes(pair):
    ours, theirs = pair
    chunks = [b"%d," % number for number in range(5000)]
    content = b"".join(chunks)
    send(ours.fileno(), chunks)
    assert chunks == []
    assert read_some(theirs, 1 << 20) == content


def test_a_broken_socket_is_an_error_and_loses_no_place(file, pair):
    ours, theirs = pair
    theirs.close()
    chunks = [b"abc", FileSlice(file, 1000, 0)]
    with pytest.raises(ConnectionError):
        send(ours.fileno(), chunks)
    assert b"".join(in_memory(chunks)) == b"abc" + CONTENT[:1000]
    chunks = [FileSlice(file, 1000, 0)]
    with pytest.raises(ConnectionError):
        send(ours.fileno(), chunks)
    assert len(chunks[0]) == 1000


class Watched:
    """A Remainder, and what it told."""

    def __init__(self, ours, chunks):
        self.left = None
        self.error = None
        send(ours.fileno(), chunks)
        assert has_slices(chunks), "the socket took everything"
        self.remainder = Remainder(ours.fileno(), chunks, self._done, self._failed)

    def _done(self, left):
        self.left = left

    def _failed(self, error):
        self.error = error

    @property
    def over(self):
        return self.left is not None or self.error is not None


async def drain(watched, theirs):
    """Read until the Remainder has ended, and what has come in till then."""
    received = b""
    async with asyncio.timeout(20):
        while not watched.over:
            await asyncio.sleep(0)
            received += read_some(theirs, 1 << 16)
    while piece := read_some(theirs, 1 << 20):
        received += piece
    return received


async def test_a_slow_reader_gets_everything(file, pair):
    ours, theirs = pair
    before = open_descriptors()
    watched = Watched(ours, [b"head", FileSlice(file, 3_000_000, 0), b"x", FileSlice(file, 9, 3)])
    unsent = watched.remainder.size_bytes
    assert 0 < unsent < 3_000_014
    watched.remainder.add([FileSlice(file, 1_000_000, 5), b"tail"])
    assert watched.remainder.size_bytes == unsent + 1_000_004
    received = await drain(watched, theirs)
    received += b"".join(watched.left)
    assert received == b"head" + CONTENT[:3_000_000] + b"x" + CONTENT[3:12] + (
        CONTENT[5:1_000_005] + b"tail"
    )
    assert not left_open_since(before)


async def test_bytes_after_the_last_slice_are_left_to_the_transport(file, pair):
    ours, theirs = pair
    watched = Watched(ours, [FileSlice(file, 1_000_000, 0), CONTENT])
    received = await drain(watched, theirs)
    assert watched.left
    assert not has_slices(watched.left)
    assert received + b"".join(watched.left) == CONTENT[:1_000_000] + CONTENT


async def test_disconnecting_reader_ends_the_send(file, pair):
    ours, theirs = pair
    before = open_descriptors()
    watched = Watched(ours, [FileSlice(file, 3_000_000, 0)])
    theirs.close()
    await until(lambda: watched.over)
    assert isinstance(watched.error, ConnectionError)
    assert not left_open_since(before)


@pytest.mark.parametrize("waits_for_pages", [False, True])
async def test_cancelled_it_sends_no_more(file, pair, monkeypatch, waits_for_pages):
    ours, theirs = pair
    before = open_descriptors()
    if waits_for_pages:
        monkeypatch.setattr(FileSlice, "is_cached", lambda _: False)
    watched = Watched(ours, [FileSlice(file, 3_000_000, 0)])
    while read_some(theirs, 1 << 20):
        pass
    if waits_for_pages:
        await until(lambda: watched.remainder._timer is not None)
    watched.remainder.cancel()
    await asyncio.sleep(0.03)
    assert read_some(theirs, 1) == b""
    assert not watched.over
    assert not left_open_since(before)


async def test_pages_that_left_the_cache_are_waited_for_beside_the_loop(file, pair, monkeypatch):
    ours, theirs = pair
    asked, answers = [], [False, False, True]
    monkeypatch.setattr(sending, "PAGES_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(FileSlice, "is_cached", lambda _: answers.pop(0) if answers else True)
    monkeypatch.setattr(FileSlice, "will_be_needed", lambda one: asked.append(len(one)))
    watched = Watched(ours, [FileSlice(file, 3_000_000, 0)])
    unsent = watched.remainder.size_bytes
    received = await drain(watched, theirs)
    assert asked == [unsent, unsent], "nothing was sent meanwhile"
    assert received == CONTENT[:3_000_000]


async def test_pages_missing_after_the_wait_are_sent_from_the_disk(file, pair, monkeypatch):
    ours, theirs = pair
    monkeypatch.setattr(sending, "PAGES_WAIT_SECONDS", 0.0001)
    monkeypatch.setattr(FileSlice, "is_cached", lambda _: False)
    watched = Watched(ours, [FileSlice(file, 1_000_000, 0)])
    assert await drain(watched, theirs) == CONTENT[:1_000_000]


async def test_a_file_that_cannot_be_read_ends_it(file, pair, monkeypatch):
    ours, theirs = pair
    monkeypatch.setattr(sending, "PAGES_WAIT_SECONDS", 0.0001)
    watched = Watched(ours, [FileSlice(file, 3_000_000, 3_000_000)])
    await drain(watched, theirs)
    assert "shorter" in str(watched.error)


def congestion_control(connection):
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.rstrip(b"\0").decode()


@pytest.mark.parametrize("refused", [False, True])
def test_a_connection_within_the_machine_is_not_paced(monkeypatch, refused):
    with socket.create_server(("127.0.0.1", 0)) as server:
        paced = congestion_control(server)
        with socket.create_connection(server.getsockname()) as ours:
            if refused:
                monkeypatch.setattr(socket, "TCP_CONGESTION", 9999)
            send_unpaced(ours.fileno())
            monkeypatch.undo()
            assert congestion_control(ours) == (paced if refused else "reno")
            theirs, _ = server.accept()
            with theirs:
                ours.sendall(b"still open")
                assert theirs.recv(100) == b"still open"
