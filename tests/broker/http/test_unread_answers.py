"""Answers that clients do not read: sent in pieces, counted in one budget, closed in time."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.http import connection as module
from barnabas.broker.http.connection import PIECE_BYTES, HttpConnection
from barnabas.broker.http.messages.answer import Answer, Stream, text
from barnabas.broker.http.messages.answer_memory import AnswerMemory
from barnabas.broker.runtime.clock import SystemClock
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\n\r\n"


class Transport:
    """A kernel that takes nothing before ``take_all``; ``buffer`` is what asyncio would keep."""

    def __init__(self):
        self.taken = bytearray()
        self.buffer = bytearray()
        self.is_open = False
        self.is_over = False
        self.protocol = None

    def get_extra_info(self, _name):
        return ("127.0.0.1", 4711)

    def set_write_buffer_limits(self, high):
        assert high == 0

    def write(self, data):
        assert not self.is_over
        if self.is_open:
            self.taken += data
            return
        was_empty = not self.buffer
        self.buffer += data
        if was_empty:
            self.protocol.pause_writing()

    def take_all(self):
        """Take the bytes of the buffer, once."""
        self.taken += self.buffer
        self.buffer.clear()
        self.protocol.resume_writing()

    def close(self):
        self.is_over = True

    abort = close

    def is_closing(self):
        return self.is_over

    def pause_reading(self):
        pass


class Port:
    """Answers every request with the same; ``free`` counts connections that wait for the next."""

    def __init__(self, answer, memory):
        self.memory = memory
        self.clock = SystemClock()
        self.free = 0
        self._answer = answer

    def answer(self, _request, _host):
        return self._answer

    def answered(self, _connection):
        self.free += 1

    def wants_a_turn(self, connection):
        asyncio.get_running_loop().call_soon(connection.send_piece)

    def _ignored(self, *_given):
        pass

    opened = request_received = streams = closed = _ignored


def connected(answer, memory=None):
    port, transport = Port(answer, memory or AnswerMemory()), Transport()
    connection = transport.protocol = HttpConnection(port)
    connection.connection_made(transport)
    return port, transport, connection


async def turns():
    for _ in range(10):
        await asyncio.sleep(0)


async def test_long_answer_waits_in_pieces_and_counts_until_it_is_read():
    body = bytes(10 * PIECE_BYTES)
    port, transport, connection = connected(Answer(200, "a/b", (body,)))
    connection.data_received(GET)
    rounds = 0
    while not port.free:
        assert len(transport.buffer) <= PIECE_BYTES
        assert port.memory.held_bytes == len(body)
        transport.take_all()
        rounds += 1
        await turns()
    assert port.memory.held_bytes == 0
    assert rounds > 10
    assert bytes(transport.taken).partition(b"\r\n\r\n")[2] == body


async def test_short_answer_keeps_the_connection_busy_until_it_is_read():
    port, transport, connection = connected(text(200, "here"))
    connection.data_received(GET)
    assert port.free == 0
    transport.take_all()
    assert port.free == 1


async def test_unread_answer_is_closed_in_time_and_gives_everything_back(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    memory = AnswerMemory()
    holding = memory.holding("mallory")
    holding.hold(1000)
    answer = Answer(200, "a/b", iter([b"x" * 100] * 10), holding=holding)
    port, transport, connection = connected(answer, memory)
    connection.data_received(GET)
    await turns()
    assert memory.held_bytes == 1000
    await until(lambda: transport.is_over)
    assert memory.held_bytes == 0
    assert port.free == 0


@pytest.mark.parametrize("request_line", [GET, b"HEAD / HTTP/1.1\r\n\r\n"])
async def test_read_answer_gives_back_what_it_held(request_line):
    memory = AnswerMemory()
    holding = memory.holding("alice")
    holding.hold(1000)
    answer = Answer(200, "a/b", iter([b"x" * 100] * 10), holding=holding)
    port, transport, connection = connected(answer, memory)
    transport.is_open = True
    connection.data_received(request_line)
    for _ in range(3):
        await turns()
    assert (port.free, memory.held_bytes) == (1, 0)


async def test_answer_without_room_is_refused_in_a_sentence():
    memory = AnswerMemory(limit_bytes=PIECE_BYTES, work_bytes_max=1)
    port, transport, connection = connected(Answer(200, "a/b", (bytes(PIECE_BYTES + 1),)), memory)
    connection.data_received(GET)
    transport.take_all()
    assert transport.taken.startswith(b"HTTP/1.1 503 ")
    assert (port.free, memory.held_bytes) == (1, 0)


async def test_answer_of_another_user_closes_an_unread_one():
    memory = AnswerMemory(limit_bytes=4 * PIECE_BYTES, work_bytes_max=1)
    holding = memory.holding("mallory")
    holding.hold(3 * PIECE_BYTES)
    answer = Answer(200, "a/b", iter([b"x"] * 10), holding=holding)
    _, transport, connection = connected(answer, memory)
    connection.data_received(GET)
    await turns()
    memory.holding("alice").hold(2 * PIECE_BYTES)
    assert transport.is_over
    assert memory.held_bytes == 2 * PIECE_BYTES


async def test_stream_counts_what_its_client_has_not_read():
    viewers = []
    stream = Stream(viewers.append, lambda _viewer: None)
    port, transport, connection = connected(Answer(200, "a/b", stream))
    transport.is_open = True
    connection.data_received(GET)
    (viewer,) = viewers
    assert viewer.show("read")
    assert port.memory.held_bytes == 0
    transport.is_open = False
    assert viewer.show("x" * 1000)
    assert port.memory.held_bytes > 1000
    assert not viewer.show("more")
    transport.take_all()
    assert port.memory.held_bytes == 0


async def test_stream_shows_nothing_without_room():
    viewers = []
    stream = Stream(viewers.append, lambda _viewer: None)
    memory = AnswerMemory(limit_bytes=100, work_bytes_max=1)
    _, transport, connection = connected(Answer(200, "a/b", stream), memory)
    transport.is_open = True
    connection.data_received(GET)
    assert not viewers[0].show("x" * 1000)
    assert memory.held_bytes == 0
    assert viewers[0].show("x")
