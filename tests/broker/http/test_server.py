"""The HTTP port of a running broker, asked over sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.http import connection as http_connection
from barnabas.broker.http.messages.answer import Answer, text
from barnabas.broker.http.server import ANSWERED_MAX, ASKING_MAX, PROBES_MAX, HttpServer
from barnabas.broker.http.site import Doors, Site
from barnabas.broker.network.socket_server import ListenError
from barnabas.broker.runtime.clock import SystemClock
from barnabas.broker.runtime.stage import Stage
from barnabas.broker.security.web.guard import HostCheck
from barnabas.broker.server import BrokerServer
from barnabas.testing import Broker
from tests.waiting import until

BOTH_LOOPS = True

HTTP = {"barnabas.http.listener": "127.0.0.1:0"}


async def ask(address, data, *, timeout_seconds=60):
    """Send ``data``, return everything that comes back until the other side closes."""
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(data)
        async with asyncio.timeout(timeout_seconds):
            return await reader.read()
    finally:
        writer.close()


async def get(address, path):
    """Return status, headers and body of an answer that is not in chunks."""
    answer = await ask(address, f"GET {path} HTTP/1.0\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    status, *lines = head.decode().splitlines()
    headers = dict(line.lower().split(": ", 1) for line in lines)
    return int(status.split()[1]), headers, body.decode()


async def status_of(address, path="/livez"):
    """Return the status of an answer, None if there was none."""
    try:
        return (await get(address, path))[0]
    except (ConnectionError, ValueError):
        return None


async def get_json(address, path):
    status, headers, body = await get(address, path)
    assert headers["content-type"] == "application/json"
    return status, json.loads(body)


class Pages:
    """``async with Pages(a=page) as address:`` an HTTP port with pages of a test."""

    def __init__(self, **pages):
        site = Site({f"/{name}": page for name, page in pages.items()}, HostCheck(()), Doors())
        self.server = HttpServer("127.0.0.1", 0, site.answer, SystemClock())

    async def __aenter__(self):
        await self.server.start(BrokerConfig())
        return self.server.address

    async def __aexit__(self, *_):
        await self.server.stop()


async def test_a_broker_that_is_well():
    async with Broker(config=HTTP) as broker:
        address = broker.server.http.address
        assert await get_json(address, "/livez") == (
            200,
            {"status": "ok", "checks": {"loop": "ok", "storage": "ok"}},
        )
        status, ready = await get_json(address, "/readyz")
        assert status == 200
        assert ready["checks"] == dict.fromkeys(["storage", "topics", "listeners", "disk"], "ok")
        for alias in ("/health", "/healthz"):
            assert await get_json(address, alias) == (status, ready)


CLOSING = b" HTTP/1.1\r\nConnection: close\r\n\r\n"


async def test_metrics_in_pieces():
    async with Broker(config=HTTP) as broker:
        answer = await ask(broker.server.http.address, b"GET /metrics" + CLOSING)
        head, _, body = answer.partition(b"\r\n\r\n")
        assert b"Transfer-Encoding: chunked" in head
        size, _, rest = body.partition(b"\r\n")
        assert rest.startswith(b"# HELP process_cpu_seconds_total ")
        assert rest[int(size, 16) :].startswith(b"\r\n")
        assert rest.endswith(b"\r\n0\r\n\r\n")


async def test_the_configuration_and_who_set_what():
    async with Broker(config={**HTTP, "num.partitions": "7"}) as broker:
        _, answer = await get_json(broker.server.http.address, "/config")
        entries = {entry["key"]: entry for entry in answer["config"]}
        assert entries["num.partitions"]["value"] == "7"
        assert entries["num.partitions"]["source"] == "STATIC_BROKER"
        assert entries["node.id"]["source"] == "DEFAULT"


async def test_a_broker_that_is_not_ready_says_why(tmp_path):
    async with Broker(config=HTTP) as broker:
        server = broker.server
        address = server.http.address
        for stage, check, reason in (
            (Stage.OPENING, "storage", "recovering"),
            (Stage.RECOVERED, "topics", "those of the configuration do not exist yet"),
            (Stage.PREPARED, "listeners", "not open yet"),
            (Stage.STOPPING, "listeners", "stopping: requests in flight"),
        ):
            server.stage = stage
            status, answer = await get_json(address, "/readyz")
            assert (status, answer["status"]) == (503, "unavailable")
            assert answer["checks"][check] == reason
            assert (await get_json(address, "/livez"))[0] == 200
        server.stage = Stage.LISTENING
        server.logs.full = True
        status, answer = await get_json(address, "/readyz")
        assert status == 503
        root = re.escape(server.logs.root)
        said = rf"full, appends are refused: {root}: \d+ bytes free, 67108864 reserved"
        assert re.fullmatch(said, answer["checks"]["disk"])
        server.logs.full = False
        assert (await get_json(address, "/readyz"))[0] == 200


async def test_a_broker_that_has_failed_is_not_alive():
    async with Broker(config=HTTP) as broker:
        server = broker.server
        address = server.http.address
        server.fatal(OSError(5, "Input/output error"))
        status, answer = await get_json(address, "/livez")
        assert status == 503
        assert answer["checks"]["storage"] == "failed: OSError(5, 'Input/output error')"
        assert await get_json(address, "/metrics") == (503, answer), "nor does it count"
        server.failure = None  # What is tested is the page; let the broker end as usual.


async def test_while_the_broker_stops_it_says_so():
    """The HTTP port is the last to close: until then a balancer reads why."""
    seen = []

    async def last_look(self):
        seen.append(await get_json(self.http.address, "/readyz"))

    class Watched(BrokerServer):
        async def _last_checkpoint(self):
            await last_look(self)
            await super()._last_checkpoint()

    async with Broker(config=HTTP) as broker:
        broker.server.__class__ = Watched
        address = broker.server.http.address
    assert [status for status, _ in seen] == [503]
    assert seen[0][1]["checks"]["listeners"] == "stopping: requests in flight"
    with pytest.raises(OSError, match=r"refused|call failed"):
        await get(address, "/readyz")


async def test_server_is_ready_after_a_crash():
    async with Broker(config=HTTP) as broker:
        await broker.crash()
        await broker.restart()
        assert (await get_json(broker.server.http.address, "/readyz"))[0] == 200


async def test_a_test_broker_has_none():
    async with Broker() as broker:
        assert broker.server.http is None


async def test_a_taken_port_is_an_error_only_for_who_asked_for_it(caplog, monkeypatch):
    async with Broker(config=HTTP) as other:
        taken = "{}:{}".format(*other.server.http.address)
        with pytest.raises(ListenError, match=f"cannot listen on http://{taken}: .*in use"):
            async with Broker(config={"barnabas.http.listener": taken}):
                pass
        server = BrokerServer(BrokerConfig(http_listener=taken))
        with caplog.at_level(logging.ERROR):
            await server._open_http()
    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage().startswith("no /metrics, /livez and /readyz: cannot listen on")
    assert server.http is None


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /nothing" + CLOSING, b"404"),
        (b"DELETE /livez" + CLOSING, b"405"),
        (b"POST /livez HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"501"),
        (b"GET /livez HTTP/1.1\r\n\r\nGET /livez HTTP/1.1\r\n\r\n", b"200"),
        (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", b"400"),
        (b"GET /livez HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n", b"431"),
    ],
    ids=["404", "405", "501", "two at once", "400", "431"],
)
async def test_bad_input_is_answered_and_closed(data, status):
    async with Pages(livez=lambda: text(200, "ok")) as address:
        assert (await ask(address, data)).split()[1] == status


async def test_a_head_request_has_no_body():
    async with Pages(livez=lambda: text(200, "ok")) as address:
        answer = await ask(address, b"HEAD /livez" + CLOSING)
        assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
        assert answer.endswith(b"\r\n\r\n")
        assert b"ok\n" not in answer


async def test_slow_request_gets_408(monkeypatch):
    monkeypatch.setattr(http_connection, "QUESTION_SECONDS", 0.05)
    async with Pages() as address:
        assert (await ask(address, b"GET /livez HT")).split()[1] == b"408"


async def test_slow_reader_is_disconnected(monkeypatch, caplog):
    monkeypatch.setattr(http_connection, "ANSWER_SECONDS", 0.2)
    taken = []

    def body():
        while True:
            taken.append(1)
            yield "x" * 65536

    pages = Pages(endless=lambda: Answer(200, "text/plain", body()))
    async with pages as address:
        _, writer = await asyncio.open_connection(*address, limit=1024)
        writer.write(b"GET /endless HTTP/1.0\r\n\r\n")
        await until(lambda: taken and not pages.server._connections)
        writer.close()
        assert len(taken) < 1000  # It waited for the reader instead of filling memory.


async def half_open(address, sent=b"GET /livez HTTP/1.1\r\nX: "):
    reader, writer = await asyncio.open_connection(*address)
    writer.write(sent)
    return reader, writer


async def drip(writer):
    """Send a byte of a header that never ends again and again, until that fails."""
    while not writer.is_closing():
        writer.write(b"x")
        await asyncio.sleep(0.02)


async def test_questions_that_never_end_keep_no_probe_out():
    """500 connections half-open or dripping: the oldest is closed, a probe is served at once."""
    server = Pages(livez=lambda: text(200, "ok"))
    async with server as address:
        held = []
        dripping = []
        try:
            for number in range(500):
                _, writer = await half_open(address, b"" if number % 3 else b"GET /li")
                held.append(writer)
                if number % 2:
                    dripping.append(asyncio.ensure_future(drip(writer)))
                if number % 50 == 49:
                    assert await status_of(address) == 200
                    assert len(server.server._connections) <= (
                        ASKING_MAX + ANSWERED_MAX + PROBES_MAX
                    )
            for _ in range(5):
                assert await status_of(address) == 200
        finally:
            for task in dripping:
                task.cancel()
            for writer in held:
                writer.close()


async def test_readers_that_never_read_keep_no_probe_out():
    def body():
        while True:
            yield "x" * 65536

    server = Pages(endless=lambda: Answer(200, "text/plain", body()), livez=lambda: text(200, "ok"))
    async with server as address:
        held = []
        try:
            for _ in range(3 * ANSWERED_MAX):
                reader, writer = await half_open(address, b"GET /endless HTTP/1.0\r\n\r\n")
                reader._transport.pause_reading()
                held.append(writer)
                assert len(server.server._answered) <= ANSWERED_MAX
            await until(lambda: len(server.server._answered) == ANSWERED_MAX)
            assert await status_of(address) == 200
        finally:
            for writer in held:
                writer.close()


async def test_the_end_of_the_port_is_the_end_of_every_connection():
    pages = Pages(livez=lambda: text(200, "ok"))
    async with pages as address:
        reader, writer = await half_open(address)
        await until(lambda: pages.server._connections)
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    assert not pages.server._connections
    writer.close()


async def test_disconnect_before_the_request_is_handled():
    pages = Pages(livez=lambda: text(200, "ok"))
    async with pages as address:
        reader, writer = await half_open(address)
        writer.write_eof()
        assert await reader.read() == b""
        await until(lambda: not pages.server._connections)
        writer.close()
        reader, writer = await half_open(address, b"GET /livez HTTP/1.0\r\n\r\n")
        writer.write_eof()
        assert (await reader.read()).endswith(b"ok\n")
        writer.close()


@pytest.mark.parametrize("kind", [ZeroDivisionError, OSError])
async def test_an_error_in_a_page_cuts_the_answer_and_is_logged(caplog, kind):
    def body():
        yield "first\n"
        raise kind

    async with Pages(broken=lambda: Answer(200, "text/plain", body())) as address:
        with caplog.at_level(logging.ERROR):
            try:
                answer = await ask(address, b"GET /broken" + CLOSING)
            except ConnectionError:
                answer = b""
        assert not answer.endswith(b"0\r\n\r\n")
    (record,) = caplog.records
    assert record.exc_info[0] is kind


async def read_answer(reader):
    """One answer with a Content-Length: its status and body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(re.search(r"Content-Length: (\d+)", head)[1])
    return int(head.split()[1]), head, await reader.readexactly(length)


async def test_one_connection_asks_again_and_again():
    async with Pages(livez=lambda: text(200, "ok")) as address:
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(5):
            writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            status, head, body = await read_answer(reader)
            assert (status, body) == (200, b"ok\n")
            assert "Connection: keep-alive" in head
        writer.close()


async def test_idle_connection_is_closed_without_a_response(monkeypatch):
    monkeypatch.setattr(http_connection, "IDLE_SECONDS", 0.05)
    async with Pages(livez=lambda: text(200, "ok")) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /livez HTTP/1.1\r\n\r\n")
        await read_answer(reader)
        assert await reader.read() == b""
        writer.close()


async def test_tabs_that_are_left_open_keep_no_probe_out():
    server = Pages(livez=lambda: text(200, "ok"), other=lambda: text(200, "ok"))
    async with server as address:
        held = []
        for _ in range(3 * ASKING_MAX):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"GET /other HTTP/1.1\r\n\r\n")
            await read_answer(reader)
            held.append(writer)
            assert await status_of(address) == 200
        assert len(server.server._connections) <= ASKING_MAX + 1
        for writer in held:
            writer.close()


async def test_a_client_that_waits_for_permission_to_send_a_body():
    async with Pages(livez=lambda: text(200, "ok")) as address:
        reader, writer = await asyncio.open_connection(*address)
        head = b"POST /livez HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        writer.write(head)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"ab")
        assert (await read_answer(reader))[0] == 405
        writer.close()


async def test_a_console_is_opened_once_however_many_ask_first():
    opened = []
    may_open = asyncio.Event()

    async def open_console():
        opened.append(1)
        await may_open.wait()
        return lambda request, access: text(200, request.path)

    site = Site({}, HostCheck(()), Doors(), open_console)
    server = HttpServer("127.0.0.1", 0, site.answer, SystemClock())
    await server.start(BrokerConfig())
    asking = [asyncio.ensure_future(get(server.address, "/api/x")) for _ in range(5)]
    gone = await asyncio.open_connection(*server.address)
    gone[1].write(b"GET /api/x HTTP/1.0\r\n\r\n")
    await until(lambda: opened)
    assert await status_of(server.address, "/x") == 404, "others need not wait for it"
    gone[1].close()
    may_open.set()
    assert [(await each)[2] for each in asking] == ["/api/x\n"] * 5
    assert (await get(server.address, "/api"))[0] == 200
    assert opened == [1]
    await server.stop()
