"""Bytes sent through TLS: in order, complete, and with little memory at a time."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl

import pytest

from barnabas.broker.network import tls_sending
from barnabas.broker.network.tls_sending import BATCH_BYTES, REPLIES_MAX_BYTES, TlsSender
from barnabas.storage.files.io import FileSlice, LocalFileSystem
from tests.broker.tls.handshakes import Pair
from tests.broker.tls.listener import listener_tls, trusting_context
from tests.seeds import SEED
from tests.storage.page_cache import all_is_cached
from tests.waiting import until

BOTH_LOOPS = True

CONTENT = random.Random(7).randbytes(4_000_000)


@pytest.fixture
def file(tmp_path, monkeypatch):
    all_is_cached(monkeypatch)
    (tmp_path / "log").write_bytes(CONTENT)
    return LocalFileSystem().open(str(tmp_path / "log"))


class Line(asyncio.Protocol):
    """A connection with a sender at one end, and at the other a reader that the test controls."""

    def __init__(self) -> None:
        self.said = []
        self.error = None

    async def open(self, limit=1 << 20):
        near, self.far = socket.socketpair()
        for each in (near, self.far):
            each.setblocking(False)
            each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        loop = asyncio.get_running_loop()
        self.raw, _ = await loop.create_connection(lambda: self, sock=near)
        self.pair = Pair(listener_tls().context, trusting_context()).shake()
        self.sender = TlsSender(self, loop, self.raw, near.fileno())
        self.sender.start(self.pair.server, self.pair.server_out)
        self.sender.set_limit(limit)
        return self

    def read(self, most=1 << 20) -> bytes:
        """Return the bytes received by now, decrypted."""
        try:
            self.pair.client_in.write(self.far.recv(most))
        except BlockingIOError:
            return b""
        text = b""
        while True:
            try:
                text += self.pair.client.read(1 << 20)
            except ssl.SSLWantReadError:
                return text

    async def read_all(self, size: int, most=1 << 20) -> bytes:
        text = b""
        while len(text) < size:
            text += self.read(most)
            await asyncio.sleep(0)
        return text

    # the protocol of the socket's transport

    def pause_writing(self):
        self.sender.filled()

    def resume_writing(self):
        self.sender.drained()

    # the owner of the sender

    def sending_waits(self):
        self.said.append("waits")

    def sending_goes_on(self):
        self.said.append("goes on")

    def sending_failed(self, error):
        self.error = error


@pytest.fixture
async def line():
    line = await Line().open()
    yield line
    line.sender.end()
    line.raw.abort()
    line.far.close()


def some_chunks(chance, file):
    """Pieces as an answer has them, and what they hold."""
    chunks, content = [], b""
    for _ in range(chance.randint(1, 30)):
        size = chance.choice([0, 1, 3, 100, 5000, 20_000, 300_000])
        at = chance.randrange(len(CONTENT) - size)
        piece = CONTENT[at : at + size]
        kinds = [piece, bytearray(piece), memoryview(piece)]
        chunks.append(chance.choice([*kinds, FileSlice(file, size, at)] if size else kinds))
        content += piece
    return chunks, content


@pytest.mark.parametrize("case", range(15))
async def test_every_byte_is_sent_once_and_in_order(line, file, case):
    print(f"SEED={SEED}")
    chance = random.Random(SEED + case)
    content, received = b"", b""
    for _ in range(8):
        chunks, more = some_chunks(chance, file)
        line.sender.write(chunks)
        content += more
        for _ in range(chance.randrange(20)):
            received += line.read(chance.choice([1, 1000, 100_000]))
            await asyncio.sleep(0)
    received += await line.read_all(len(content) - len(received))
    assert received == content
    assert line.sender.is_empty
    await until(lambda: line.sender.unsent_bytes == 0)
    assert line.said[:2] in ([], ["waits", "goes on"])
    assert line.said.count("waits") == line.said.count("goes on")


async def test_small_pieces_share_records(line):
    line.sender.write([b"x" * 50] * 200 + [b"y" * 20_000])
    sealed = b""
    while len(sealed) < 30_000:
        sealed += line.far.recv(1 << 20)
    position = records = 0
    while position < len(sealed):
        position += 5 + int.from_bytes(sealed[position + 3 : position + 5], "big")
        records += 1
    assert records == 3


async def test_of_a_file_only_what_the_socket_takes_is_read(line, file, monkeypatch):
    taken = []
    whole = FileSlice.read

    def read(self):
        taken.append(len(self))
        return whole(self)

    monkeypatch.setattr(FileSlice, "read", read)
    line.sender.write([b"head", FileSlice(file, 3_000_000, 500)])
    assert line.said == ["waits"]
    await asyncio.sleep(0.05)
    assert sum(taken) < 600_000  # the socket's buffers and a batch
    assert max(taken) <= tls_sending.PIECE_BYTES
    assert line.raw.get_write_buffer_size() < 2 * BATCH_BYTES
    assert line.sender.unsent_bytes > 2_000_000
    assert await line.read_all(3_000_004) == b"head" + CONTENT[500:3_000_500]
    await until(lambda: line.said == ["waits", "goes on"])


async def test_answers_in_memory_wait_up_to_the_limit(line):
    while not line.said:
        assert line.sender.unsent_bytes <= 1 << 20
        line.sender.write([CONTENT[:100_000]])
    assert line.said == ["waits"]
    assert line.raw.get_write_buffer_size() < 2 * BATCH_BYTES
    await line.read_all(100_000)
    await until(lambda: line.read() == b"" and len(line.said) == 2)
    assert line.said == ["waits", "goes on"]


async def test_others_have_their_turn(line):
    """However fast the reader is, one call does not encrypt without end."""

    def takes_all(_descriptor, chunks):
        chunks.clear()

    original, tls_sending.send = tls_sending.send, takes_all
    try:
        line.sender.write([CONTENT] * 3)
        assert 10_000_000 < line.sender.unsent_bytes < 12_000_000
        await until(lambda: line.sender.is_empty)
    finally:
        tls_sending.send = original


async def test_pages_are_waited_for_elsewhere(line, file, monkeypatch):
    asked = []
    monkeypatch.setattr(FileSlice, "is_cached", lambda _self: len(asked) >= 3)
    monkeypatch.setattr(FileSlice, "will_be_needed", lambda _self: asked.append(1))
    line.sender.write([FileSlice(file, 2_000_000, 0)])
    assert not asked  # What has just been found in the cache is read at once.
    assert await line.read_all(2_000_000) == CONTENT[:2_000_000]
    assert len(asked) == 3


async def test_wait_for_pages_is_limited(line, file, monkeypatch):
    monkeypatch.setattr(tls_sending, "PAGES_WAITS_MAX", 3)
    monkeypatch.setattr(FileSlice, "is_cached", lambda _self: False)
    line.sender.write([FileSlice(file, 1_000_000, 0)])
    assert await line.read_all(1_000_000) == CONTENT[:1_000_000]


async def test_a_file_that_has_become_shorter(line, file):
    line.sender.write([b"head", FileSlice(file, 100, len(CONTENT) - 50)])
    assert "has become shorter" in str(line.error)
    assert line.sender.is_empty


async def test_closed_peer_ends_the_send_with_an_error(line):
    line.far.close()
    line.sender.write([CONTENT])
    assert isinstance(line.error, ConnectionError)
    assert line.sender.is_empty


async def test_the_end_in_the_middle(line, file):
    line.sender.write([FileSlice(file, 3_000_000, 0)])
    line.sender.end()
    await line.read_all(1)
    await asyncio.sleep(0.02)
    assert line.said == ["waits"]


@pytest.mark.parametrize("reads", [True, False])
async def test_replies_of_tls_are_bounded(line, reads):
    reply = bytes(REPLIES_MAX_BYTES // 10)
    if not reads:
        line.sender.write([CONTENT])
    for _ in range(10):
        assert line.sender.reply(reply)
        if reads:
            assert line.far.recv(1 << 20) == reply
    assert not line.sender.reply(reply)


async def test_waiter_is_notified_at_the_end(line):
    line.sender.write([CONTENT[:500_000]])
    assert line.said == []
    line.sender.wait()
    await line.read_all(500_000)
    await until(lambda: line.said == ["goes on"])
