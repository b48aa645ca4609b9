"""One connection: order, muting, back-pressure, limits. On both loops."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import struct

import pytest

from barnabas.broker.network import pipeline, writer
from barnabas.broker.network.socket_server import BROKERS_REMEMBERED_S, SWEEP_INTERVAL_MS
from barnabas.broker.runtime.clock import ManualClock
from tests.broker.toy import (
    ADD_OFFSETS,
    ECHO,
    FETCH,
    PRODUCE,
    SLOW,
    TAGGED,
    RawClient,
    Toy,
    request,
    small_config,
)
from tests.waiting import until

BOTH_LOOPS = True


class Running:
    """A toy server in the test's loop; everything is closed at the end."""

    def __init__(self, config, clock=None):
        self.toy = Toy(config, clock)
        self.clients = []

    async def __aenter__(self):
        await self.toy.server.start()
        return self

    async def __aexit__(self, *_):
        for client in self.clients:
            await client.close()
        await self.toy.server.abort()
        assert self.toy.server.ring_pool.borrowed == 0
        # A thread may still decode the frame of a client that has left.
        await until(lambda: self.toy.server.frame_budget.used_bytes == 0)

    async def client(self):
        tls = self.toy.server.tls
        before = 0 if tls is None else tls.handshakes.completed
        client = await RawClient.to(self.toy.server.listeners[0].bound)
        self.clients.append(client)
        if tls is not None and isinstance(client, RawClient):
            # A client is done with its handshake before the server.
            await until(lambda: tls.handshakes.completed > before)
        return client


@pytest.fixture
async def running():
    async with Running(small_config()) as running:
        yield running


async def test_answers_a_request(running):
    client = await running.client()
    await client.send(request(ECHO, b"hello", correlation_id=77))
    assert await client.answer() == (77, b"hello")
    context = running.toy.contexts[0]
    assert context.client_id == "toy"
    assert context.api_key == ECHO
    assert context.endpoint == running.toy.server.listeners[0].bound
    assert not context.records_stay
    assert running.toy.server.ring_pool.borrowed == 0  # an idle connection holds none


async def test_no_delay_is_set_on_accepted_connections(running):
    await (client := await running.client()).send(request(ECHO, b"x"))
    await client.answer()
    (connection,) = running.toy.server.connections
    sock = connection._transport.get_extra_info("socket")
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_nothing_is_handled_for_a_peer_that_cannot_be_sent_to(running, monkeypatch):
    def broken(_descriptor, _chunks):
        raise ConnectionResetError

    monkeypatch.setattr(writer, "send", broken)
    monkeypatch.setattr(pipeline, "WRITE_BYTES", 1)  # each answer by itself
    await (client := await running.client()).send(request(ECHO, b"x") * 20)
    await until(lambda: running.toy.contexts and not running.toy.server.connections)
    assert len(running.toy.contexts) == 1
    await client.closed()


async def test_pipelined_requests_are_answered_in_order(running):
    client = await running.client()
    await client.send(*(request(ECHO, b"%d" % n, correlation_id=n) for n in range(3000)))
    for n in range(3000):
        assert await client.answer() == (n, b"%d" % n)


async def test_a_request_may_come_byte_by_byte(running):
    client = await running.client()
    for byte in request(ECHO, b"slow", correlation_id=5) + request(ECHO, b"2", correlation_id=6):
        await client.send(bytes([byte]))
        await asyncio.sleep(0.001)
    assert await client.answer() == (5, b"slow")
    assert await client.answer() == (6, b"2")


@pytest.mark.parametrize(("client_id", "expected"), [(None, None), (b"", ""), (b"\xc3\xa9", "é")])
async def test_client_ids(running, client_id, expected):
    client = await running.client()
    await client.send(request(ECHO, b"a", client=client_id), request(ECHO, b"b", client=b"other"))
    await client.answer()
    await client.answer()
    assert [context.client_id for context in running.toy.contexts] == [expected, "other"]


async def test_header_tags_are_skipped_and_answered_with_none(running):
    client = await running.client()
    unknown = b"\x02" + b"\x07\x03abc" + b"\x09\x00"
    for tags in (b"\x00", unknown):
        await client.send(request(TAGGED, b"body", version=2, tags=tags, correlation_id=3))
        assert await client.answer() == (3, b"\x00body")
    await client.send(request(TAGGED, b"body", version=1, correlation_id=4))
    assert await client.answer() == (4, b"body")


async def test_pipelined_produces_are_acknowledged_in_request_order(running):
    toy, client = running.toy, await running.client()
    await client.send(
        request(PRODUCE, b"a", version=3, correlation_id=1),
        request(PRODUCE, b"b", version=3, correlation_id=2),
        request(ECHO, b"c", correlation_id=3),
        request(PRODUCE, b"at once", version=3, correlation_id=4),
    )
    await until(lambda: len(toy.handled) == 4)
    toy.produces[1].complete(b"B")
    assert await client.silent()
    toy.produces[0].complete(b"A")
    answers = [await client.answer() for _ in range(4)]
    assert answers == [(1, b"A"), (2, b"B"), (3, b"c"), (4, b"done")]


async def test_answers_of_one_iteration_leave_in_one_write(running):
    toy, client = running.toy, await running.client()
    await client.send(*(request(PRODUCE, b"%d" % n, version=3) for n in range(5)))
    await until(lambda: len(toy.produces) == 5)
    (connection,) = toy.server.connections
    writes = []
    write = connection._write
    type(connection)._write = lambda self: (writes.append(len(self._pipeline.out)), write())
    try:
        for produce in toy.produces:
            produce.complete(b"x")
        for _ in range(5):
            await client.answer()
    finally:
        type(connection)._write = write.__func__
    assert writes == [5]


async def test_a_flood_on_one_connection_does_not_hold_up_the_others(running):
    toy, client, other = running.toy, await running.client(), await running.client()
    client.writer.write(request(ECHO, b"flood") * 5000)
    other.writer.write(request(ECHO, b"other", correlation_id=2))
    assert await other.answer() == (2, b"other")
    assert toy.handled.index(b"other") < 2500
    for _ in range(5000):
        assert await client.answer() == (1, b"flood")


async def test_connections_from_this_machine_are_not_paced(running):
    client = await running.client()
    await client.send(request(ECHO, b"x"))
    await client.answer()
    (connection,) = running.toy.server.connections
    with socket.socket(fileno=os.dup(connection._descriptor)) as same:
        control = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    assert control.rstrip(b"\0") == b"reno"


async def test_acks_0_has_no_answer(running):
    client = await running.client()
    await client.send(
        request(PRODUCE, b"acks=0", version=3, correlation_id=1),
        request(ECHO, b"x", correlation_id=2),
    )
    assert await client.answer() == (2, b"x")


async def test_a_coroutine_mutes_its_connection_and_no_other(running):
    toy, client, other = running.toy, await running.client(), await running.client()
    await client.send(
        request(SLOW, b"1", correlation_id=1),
        request(SLOW, b"2", correlation_id=2),
        request(ECHO, b"3", correlation_id=3),
    )
    await until(lambda: toy.handled)
    await other.send(request(ECHO, b"other"))
    await other.answer()
    assert toy.handled == [b"1", b"other"]
    toy.gate.set()
    answers = [await client.answer() for _ in range(3)]
    assert answers == [(1, b"slow 1"), (2, b"slow 2"), (3, b"3")]


async def test_a_parked_fetch_waits(running):
    toy, client = running.toy, await running.client()
    await client.send(request(FETCH, b"f", correlation_id=1))
    await until(lambda: toy.fetches)
    assert await client.silent()
    toy.fetches[0].complete(b"data")
    assert await client.answer() == (1, b"data")
    await client.send(request(FETCH, b"ready", correlation_id=2))
    assert await client.answer() == (2, b"data")


@pytest.mark.parametrize("together", [True, False])
async def test_a_parked_fetch_is_completed_early_by_another_kind_of_request(running, together):
    toy, client = running.toy, await running.client()
    fetch, echo = request(FETCH, b"f", correlation_id=1), request(ECHO, b"e", correlation_id=2)
    if together:
        await client.send(fetch, echo)
    else:
        await client.send(fetch)
        await until(lambda: toy.fetches)
        await client.send(echo)
    assert await client.answer() == (1, b"early f")
    assert await client.answer() == (2, b"e")
    assert toy.fetches[0].is_early == 1


async def test_a_parked_fetch_is_completed_early_as_soon_as_the_key_is_known(running):
    toy, client = running.toy, await running.client()
    await client.send(request(FETCH, b"f", correlation_id=1))
    await until(lambda: toy.fetches)
    echo = request(ECHO, b"e", correlation_id=2)
    await client.send(echo[:5])
    assert await client.silent()
    await client.send(echo[5:6])
    assert await client.answer() == (1, b"early f")
    await client.send(echo[6:])
    assert await client.answer() == (2, b"e")


async def test_a_parked_fetch_is_not_completed_early_by_a_fetch(running):
    toy, client = running.toy, await running.client()
    await client.send(request(FETCH, b"1", correlation_id=1), request(FETCH, b"2"))
    await until(lambda: toy.fetches)
    assert await client.silent()
    assert toy.handled == [b"1"]
    toy.fetches[0].complete(b"data")
    assert await client.answer() == (1, b"data")
    await until(lambda: len(toy.fetches) == 2)


async def test_deferred_responses_are_marked_when_the_client_disconnects(running):
    toy, client = running.toy, await running.client()
    await client.send(request(PRODUCE, b"p", version=3), request(FETCH, b"f"))
    await until(lambda: toy.fetches)
    await client.close()
    await until(lambda: toy.fetches[0].gone and toy.produces[0].gone)
    toy.produces[0].complete(b"too late")
    toy.fetches[0].complete(b"too late")


async def test_a_frame_larger_than_the_ring_stays_in_a_buffer_of_its_own(running):
    client = await running.client()
    large = bytes(range(256)) * 4096
    await client.send(
        request(ECHO, b"before", correlation_id=1),
        request(ECHO, large, correlation_id=2),
        request(ECHO, b"after", correlation_id=3),
    )
    assert await client.answer() == (1, b"before")
    assert await client.answer() == (2, large)
    assert await client.answer() == (3, b"after")


async def test_large_frames_wait_for_memory_and_are_all_served():
    # With a stopped clock no client is too slow, however busy the machine is.
    config = small_config(queued_max_request_bytes=6_000_000)
    async with Running(config, ManualClock()) as running:
        clients = [await running.client() for _ in range(8)]
        large = b"y" * 2_000_000
        used = []
        for client in clients:
            client.writer.write(request(ECHO, large))
        budget = running.toy.server.frame_budget
        for client in clients:
            assert await client.answer() == (1, large)
            used.append(budget.used_bytes)
        assert max(used) <= 8_100_000  # One frame at a time may exceed the limit.


async def test_a_frame_larger_than_all_memory_is_served_when_it_is_alone():
    async with Running(small_config(queued_max_request_bytes=500_000)) as running:
        client = await running.client()
        large = b"y" * 3_000_000
        for _ in range(2):
            await client.send(request(ECHO, large))
            assert await client.answer() == (1, large)


async def test_one_who_waits_for_memory_may_leave():
    config = small_config(queued_max_request_bytes=4_000_000)
    async with Running(config, ManualClock()) as running:
        first, second, third = [await running.client() for _ in range(3)]
        frame = request(ECHO, b"y" * 3_000_000)
        await first.send(frame[:1_600_000])
        budget = running.toy.server.frame_budget
        await until(lambda: budget.used_bytes == 1_600_000 - 4)
        second.writer.write(frame)
        await until(lambda: budget.waiting == 1)
        third.writer.write(frame)
        await until(lambda: budget.waiting == 2)
        second.writer.transport.abort()  # noticed when its turn comes: it is not read meanwhile
        await first.send(frame[1_600_000:])
        await first.answer()
        await third.answer()


async def test_a_peer_that_does_not_read_is_not_served_further(running):
    toy, client = running.toy, await running.client()
    client.writer.transport.get_extra_info("socket")
    client.reader._transport.pause_reading()
    frames = [request(ECHO, b"size 100000", correlation_id=n) for n in range(500)]
    client.writer.write(b"".join(frames))
    await asyncio.sleep(0.3)
    served = len(toy.handled)
    assert served < 200  # 1 MB in the transport, some MB in the kernel
    (connection,) = toy.server.connections
    assert connection._transport.get_write_buffer_size() < 3_000_000
    client.reader._transport.resume_reading()
    for n in range(500):
        assert (await client.answer())[0] == n


async def test_reading_pauses_while_muted_and_resumes(running):
    toy, client = running.toy, await running.client()
    frames = [request(SLOW, b"x" * 1000, correlation_id=n) for n in range(2000)]
    client.writer.write(b"".join(frames))
    await until(lambda: toy.handled)
    (connection,) = toy.server.connections
    await until(lambda: connection._intake._paused)
    assert connection.received_bytes <= 256 * 1024
    toy.gate.set()
    for n in range(2000):
        assert (await client.answer())[0] == n


async def test_backlog_mutes_producers_until_it_ends(running):
    toy, client, other = running.toy, await running.client(), await running.client()
    toy.server.backlog.set(True)
    await client.send(*(request(PRODUCE, b"%d" % n, version=3) for n in range(3)))
    await until(lambda: toy.handled)
    await other.send(request(ECHO, b"other"))
    await other.answer()
    assert toy.handled == [b"0", b"other"]
    toy.server.backlog.set(False)
    await until(lambda: len(toy.produces) == 3)


async def test_pending_responses_of_a_connection_are_limited():
    async with Running(small_config(connection_pipeline_max_requests=10)) as running:
        toy, client = running.toy, await running.client()
        await client.send(*(request(PRODUCE, b"%d" % n, version=3) for n in range(25)))
        await until(lambda: len(toy.produces) == 10)
        await asyncio.sleep(0.02)
        assert len(toy.produces) == 10
        toy.produces[0].complete(b"done")
        await until(lambda: len(toy.produces) == 11)


async def test_ready_responses_after_a_pending_one_are_limited(running):
    toy, client = running.toy, await running.client()
    await client.send(request(PRODUCE, b"first", version=3, correlation_id=-1))
    frames = [request(ECHO, b"size 100000", correlation_id=n) for n in range(100)]
    client.writer.write(b"".join(frames))
    await until(lambda: toy.produces)
    await asyncio.sleep(0.1)
    assert len(toy.handled) <= 13
    toy.produces[0].complete(b"done")
    assert await client.answer() == (-1, b"done")
    for n in range(100):
        assert (await client.answer())[0] == n


# ----------------------------------------------------------------------------------- rule breakers


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (request(ECHO, b"bad"), "api=Echo version=0 reason=bad bytes"),
        (request(999), "api=999 version=0 reason=unknown api key 999"),
        (request(-5), "api=-5 version=0 reason=unknown api key -5"),
        (request(ECHO, version=4), "unsupported version, served are 0 to 3"),
        (request(ECHO, version=-1), "api=Echo version=-1 reason=unsupported"),
        (request(PRODUCE, version=2), "unsupported version, served are 3 to 3"),
        (request(TAGGED, version=2, tags=b""), "api=Tagged version=2 reason=the request header"),
        (struct.pack(">ihhih", 10, ECHO, 0, 1, 100), "request header is cut short"),
        (struct.pack(">ihhih", 10, ECHO, 0, 1, -2), "negative length of the client id"),
        (request(ECHO, client=b"\xff\xfe"), "request header: 'utf-8' codec"),
        (struct.pack(">i", 9) + b"x" * 9, "a frame of 9 bytes is outside"),
        (struct.pack(">i", -1), "a frame of -1 bytes is outside"),
        (struct.pack(">i", 0x7FFFFFFF), "a frame of 2147483647 bytes is outside"),
        (struct.pack(">i", 100 * 1024 * 1024 + 1), "a frame of 104857601 bytes is outside"),
        (b"GET / HTTP/1.1\r\n\r\n", "a frame of 1195725856 bytes is outside"),
    ],
)
async def test_invalid_frame_closes_the_connection_with_one_line(running, caplog, frame, reason):
    client = await running.client()
    await client.send(request(ECHO, b"fine", correlation_id=1), frame, request(ECHO, b"never"))
    assert await client.answer() == (1, b"fine")
    assert await client.closed() == b""
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.exc_info is None
    assert reason in record.message
    assert "peer=127.0.0.1:" in record.message
    assert b"never" not in running.toy.handled


@pytest.mark.parametrize("key", [ECHO, SLOW])
async def test_a_bug_is_logged_with_its_traceback_and_ends_that_connection_only(
    running, caplog, key
):
    running.toy.gate.set()
    client, other = await running.client(), await running.client()
    await client.send(request(key, b"bug"))
    assert await client.closed() == b""
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info[0] is ZeroDivisionError
    await other.send(request(ECHO, b"fine"))
    assert await other.answer() == (1, b"fine")


async def test_an_answer_that_cannot_be_encoded_is_a_bug_of_that_connection(running, caplog):
    toy, client, other = running.toy, await running.client(), await running.client()
    await client.send(request(PRODUCE, b"p", version=3))
    await until(lambda: toy.produces)
    toy.produces[0].complete("not bytes")  # does not reach who completes it
    assert await client.closed() == b""
    (record,) = caplog.records
    assert record.exc_info[0] is TypeError
    await other.send(request(ECHO, b"fine"))
    await other.answer()


async def test_warnings_are_rate_limited(caplog):
    clock = ManualClock()
    async with Running(small_config(), clock) as running:
        for _ in range(25):
            client = await running.client()
            await client.send(request(999))
            await client.closed()
        assert len(caplog.records) == 10
        clock.advance(seconds=1)
        client = await running.client()
        await client.send(request(999))
        await client.closed()
        messages = [record.message for record in caplog.records[10:]]
        assert messages[0] == "15 more warnings about clients left out"
        assert len(messages) == 2


# --------------------------------------------------------------------------------- time and number


async def test_an_incomplete_request_runs_out_of_time(caplog):
    clock = ManualClock()
    async with Running(small_config(), clock) as running:
        client, idle = await running.client(), await running.client()
        await client.send(request(ECHO, b"x")[:7])
        await until(lambda: running.toy.server.connections)
        await until(lambda: any(c.received_bytes for c in running.toy.server.connections))
        clock.advance(seconds=25)
        assert await client.silent()
        clock.advance(seconds=20)
        assert await client.closed() == b""
        assert "incomplete request, 7 bytes" in caplog.text
        await idle.send(request(ECHO, b"alive"))
        await idle.answer()


async def test_a_slow_sender_of_much_has_more_time():
    clock = ManualClock()
    async with Running(small_config(), clock) as running:
        client = await running.client()
        frame = request(ECHO, b"x" * 2_000_000)
        half = len(frame) // 2
        await client.send(frame[:half])
        await until(lambda: any(c.received_bytes == half for c in running.toy.server.connections))
        clock.advance(seconds=45)
        await client.send(frame[half:])
        await client.answer()


async def test_a_sender_that_stops_half_way_does_not_keep_memory_from_others(caplog):
    clock = ManualClock()
    async with Running(small_config(queued_max_request_bytes=8_000_000), clock) as running:
        stopped, other = await running.client(), await running.client()
        frame = request(ECHO, b"x" * 6_000_000)
        half = len(frame) // 2
        await stopped.send(frame[:half])
        await until(lambda: any(c.received_bytes == half for c in running.toy.server.connections))
        clock.advance(seconds=45)
        assert await stopped.silent()  # A slow client is not late while no other waits.
        other.writer.write(frame)
        await until(lambda: running.toy.server.frame_budget.waiting)
        clock.advance(seconds=0.3)
        assert await stopped.closed() == b""
        assert "bytes, too slow while others wait for memory" in caplog.text
        await other.answer()


async def test_small_frames_pass_large_ones_that_wait():
    config = small_config(queued_max_request_bytes=4_000_000)
    async with Running(config, ManualClock()) as running:
        holding, waiting, small = [await running.client() for _ in range(3)]
        frame = request(ECHO, b"y" * 3_000_000)
        server = running.toy.server
        await holding.send(frame[:1_600_000])
        await until(lambda: any(c.received_bytes == 1_600_000 for c in server.connections))
        waiting.writer.write(frame)
        await until(lambda: server.frame_budget.waiting == 1)
        for size in (10, 10_000, 200_000):
            await small.send(request(ECHO, b"s" * size))
            assert await small.answer() == (1, b"s" * size)


async def test_incomplete_small_frames_together_are_bounded(caplog):
    config = small_config(queued_max_request_bytes=6_000_000)
    async with Running(config, ManualClock()) as running:
        part = request(ECHO, b"y" * 250_000)[:-1]
        clients = [await running.client() for _ in range(80)]
        for client in clients:
            await client.send(part)
        budget = running.toy.server.frame_budget
        await until(lambda: budget.evicted)
        server = running.toy.server
        await until(
            lambda: (
                all(c.received_bytes >= len(part) for c in server.connections)
                and server.connections_accepted == 80
            )
        )
        assert budget.used_bytes <= 6_000_000
        assert "longest silent where memory has reached its limit" in caplog.text
        good = await running.client()
        await good.send(part + b"y")
        await good.answer()


async def test_read_ahead_of_parked_fetches_is_limited():
    config = small_config(queued_max_request_bytes=4_000_000)
    async with Running(config, ManualClock()) as running:
        toy = running.toy
        clients = [await running.client() for _ in range(100)]
        behind = request(FETCH, b"f" * 1000, correlation_id=2) * 200
        for client in clients:
            await client.send(request(FETCH, b"f", correlation_id=1))
        await until(lambda: len(toy.fetches) == 100)
        for client in clients:
            client.writer.write(behind)
        server = toy.server
        await until(lambda: all(c.received_bytes > 1500 for c in server.connections))
        assert server.frame_budget.ahead_bytes <= 500_000 + 100 * 5_000
        for fetch in toy.fetches:
            fetch.complete(b"data")
        for client in clients:
            assert await client.answer() == (1, b"data")


async def test_a_client_that_left_while_it_was_not_read_is_noticed():
    clock = ManualClock()
    async with Running(small_config(), clock) as running:
        client = await running.client()
        await client.send(request(FETCH, b"f"))
        await until(lambda: running.toy.fetches)
        client.writer.write(request(FETCH, b"f" * 100_000) * 3)
        (connection,) = running.toy.server.connections
        await until(lambda: connection._intake._paused)
        clock.advance(seconds=10)
        assert await client.silent()
        client.writer.transport.abort()
        await asyncio.sleep(0.01)
        clock.advance(seconds=10)
        await until(lambda: not running.toy.server.connections)
        assert running.toy.fetches[0].gone


async def test_a_close_that_the_peer_does_not_read_has_an_end():
    clock = ManualClock()
    async with Running(small_config(), clock) as running:
        client = await running.client()
        client.reader._transport.pause_reading()
        client.writer.write(request(ECHO, b"size 8000000") + request(999))
        connections = running.toy.server.connections
        await until(lambda: connections)
        (connection,) = connections
        await until(connection._transport.get_write_buffer_size)
        connection.close("reason=it is enough")
        clock.advance(seconds=25)
        await asyncio.sleep(0.02)
        assert connections
        clock.advance(seconds=10)
        await until(lambda: not connections)


async def test_idle_connections_are_closed_silently(caplog):
    clock = ManualClock()
    async with Running(small_config(connections_max_idle_ms=60_000), clock) as running:
        client, busy = await running.client(), await running.client()
        for _ in range(3):
            await busy.send(request(ECHO, b"x"))
            await busy.answer()
            clock.advance(seconds=31)
        assert await client.closed() == b""
        await busy.send(request(ECHO, b"x"))
        await busy.answer()
        assert not caplog.records


async def test_a_waiting_fetch_is_not_idle():
    clock = ManualClock()
    async with Running(small_config(connections_max_idle_ms=60_000), clock) as running:
        client = await running.client()
        await client.send(request(FETCH, b"f"))
        await until(lambda: running.toy.fetches)
        clock.advance(minutes=10)
        running.toy.fetches[0].complete(b"data")
        assert await client.answer() == (1, b"data")


async def test_minus_one_disables_the_idle_timeout():
    clock = ManualClock()
    async with Running(small_config(connections_max_idle_ms=-1), clock) as running:
        client = await running.client()
        for _ in range(2):
            await client.send(request(ECHO, b"x"))
            await client.answer()
            clock.advance(hours=10)


async def test_librdkafka_that_waits_for_a_coordinator_is_disconnected():
    """The client searches another coordinator when a connection ends; others do not wait."""
    clock = ManualClock()
    async with Running(small_config(connections_max_idle_ms=-1), clock) as running:
        waiting, other = await running.client(), await running.client()
        for each in running.toy.server.connections:
            each.seen.software = "librdkafka"
        unnamed = await running.client()

        async def ask(last=ADD_OFFSETS):
            for client, api in ((waiting, last), (other, ECHO), (unnamed, last)):
                await client.send(request(api, b"x"))
                await client.answer()

        async def be_silent(times):
            for _ in range(times):
                clock.advance(milliseconds=SWEEP_INTERVAL_MS)
                await asyncio.sleep(0)

        await ask()
        await be_silent(5)
        running.toy.server.brokers_changed()
        await ask()
        await be_silent(1)
        await ask(ECHO)
        clock.advance(seconds=BROKERS_REMEMBERED_S)
        await ask()
        await be_silent(5)
        running.toy.server.brokers_changed()
        await ask()
        await be_silent(2)
        assert await waiting.closed() == b""
        assert len(running.toy.server.connections) == 2
        await other.send(request(ECHO, b"x"))
        await other.answer()


@pytest.mark.parametrize("key", ["max_connections", "max_connections_per_ip"])
async def test_connections_are_limited(caplog, key):
    async with Running(small_config(**{key: 3})) as running:
        clients = [await running.client() for _ in range(3)]
        for client in clients:
            await client.send(request(ECHO, b"x"))
            await client.answer()
        refused = await running.client()
        assert await refused.closed() == b""
        assert key.replace("_", ".") + " of 3 reached" in caplog.text
        await clients[0].close()
        await until(lambda: len(running.toy.server.connections) == 2)
        client = await running.client()
        await client.send(request(ECHO, b"x"))
        await client.answer()


async def test_a_newcomer_gets_the_place_of_the_oldest_that_said_nothing(caplog):
    async with Running(small_config(max_connections=4)) as running:
        first = await running.client()
        await first.send(request(ECHO, b"x"))
        await first.answer()
        silent = [await running.client() for _ in range(3)]
        await silent[2].send(request(ECHO, b"half")[:9])
        await until(lambda: len(running.toy.server.connections) == 4)
        for number in range(3):
            client = await running.client()
            await client.send(request(ECHO, b"x"))
            await client.answer()
            assert await silent[number].closed() == b""
        assert "max.connections of 4 reached, no request yet" in caplog.text
        refused = await running.client()
        assert await refused.closed() == b""
        await first.send(request(ECHO, b"x"))
        await first.answer()


# ----------------------------------------------------------------------------------------- the end


async def test_stop_lets_answers_in_flight_leave(running):
    toy, client, fetcher, idle = running.toy, *[await running.client() for _ in range(3)]
    await client.send(
        request(PRODUCE, b"p", version=3, correlation_id=1), request(SLOW, b"s", correlation_id=2)
    )
    await fetcher.send(request(FETCH, b"f", correlation_id=3))
    await until(lambda: len(toy.handled) == 3)
    stopping = asyncio.ensure_future(toy.server.stop(5000))
    assert await fetcher.answer() == (3, b"early f")
    assert await fetcher.closed() == b""
    assert await idle.closed() == b""
    await client.send(request(ECHO, b"not any more"))
    toy.produces[0].complete(b"durable")
    toy.gate.set()
    assert await client.answer() == (1, b"durable")
    assert await client.answer() == (2, b"slow s")
    assert await client.closed() == b""
    await stopping
    assert b"not any more" not in toy.handled
    with pytest.raises(OSError):
        await RawClient.to(toy.server.listeners[0].bound)


async def test_stop_has_a_limit(running, caplog):
    toy, client = running.toy, await running.client()
    await client.send(request(PRODUCE, b"p", version=3))
    await until(lambda: toy.handled)
    await toy.server.stop(50)
    assert await client.closed() == b""
    assert "connections cut off at shutdown: count=1" in caplog.text


async def test_abort_ends_running_requests(running):
    toy, client = running.toy, await running.client()
    await client.send(request(SLOW, b"s"))
    await until(lambda: toy.handled)
    await toy.server.abort()
    assert await client.closed() == b""
    assert not toy.server.at_work


async def test_an_abort_forgets_who_waits_for_memory():
    config = small_config(queued_max_request_bytes=2_000_000)
    async with Running(config, ManualClock()) as running:
        server = running.toy.server
        for _ in range(3):
            client = await running.client()
            client.writer.write(request(ECHO, b"y" * 1_000_000)[:500_000])
        await until(lambda: server.frame_budget.waiting == 2)
        await server.abort()
        assert not server.frame_budget.waiting


async def test_buffers_of_sockets_are_as_configured():
    sizes = {"socket_send_buffer_bytes": 50_000, "socket_receive_buffer_bytes": 60_000}
    async with Running(small_config(**sizes)) as running:
        await (await running.client()).send(request(ECHO))
        await until(lambda: running.toy.server.connections)
        (connection,) = running.toy.server.connections
        sock = connection._transport.get_extra_info("socket")
        # Linux doubles the requested size.
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 100_000
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 120_000
