"""Fetches of the keys for tokens: their source, their times, and failures."""

import asyncio
import logging
import socket
import threading
from functools import partial

import pytest

from barnabas.broker.config.oauth import ALGORITHMS
from barnabas.broker.runtime.clock import ManualClock
from barnabas.broker.security.sasl import key_server
from barnabas.broker.security.sasl.key_server import KeyServer, KeysUnavailable, fetch
from barnabas.broker.security.sasl.token_keys import parse_keys
from tests.issuer import key_set, public_entry, rsa_key, standard_set
from tests.key_server import KeyServerForTests

OTHER_SET = key_set(public_entry(rsa_key("other"), "other"))


def keys_at(url, clock=None, **changes):
    given = {"refresh_ms": 3_600_000, "backoff_ms": 100, "backoff_max_ms": 400, **changes}
    parse = partial(parse_keys, algorithms=ALGORITHMS)
    return KeyServer(url, parse, clock or ManualClock(), **given)


async def until(condition):
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  on a thread and another server
            await asyncio.sleep(0.005)


async def test_keys_of_a_server():
    with KeyServerForTests(standard_set()) as server:
        keys = keys_at(server.url)
        await keys.open()
        keys.close()
    assert len(keys.keys) == 3
    assert server.paths == ["/keys"]


@pytest.mark.parametrize("form", ["file://{}", "file:{}"])
async def test_keys_of_a_file(tmp_path, form):
    path = tmp_path / "some keys.json"
    path.write_bytes(standard_set())
    clock = ManualClock()
    keys = keys_at(form.format(str(path).replace(" ", "%20")), clock)
    await keys.open()
    assert len(keys.keys) == 3
    path.write_bytes(OTHER_SET)
    clock.advance(hours=1)
    await until(lambda: len(keys.keys) == 1)
    path.write_bytes(b"broken")
    clock.advance(hours=1)
    await until(lambda: not keys._is_fetching)
    assert len(keys.keys) == 1
    keys.close()


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "No such file"), (b"{}", 'has no "keys"'), (b"x", "not JSON")]
)
async def test_a_file_without_keys_stops_the_start(tmp_path, content, problem):
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(KeysUnavailable, match=problem):
        await keys_at(f"file://{path}").open()


async def test_old_keys_stay_while_key_server_is_unavailable(caplog):
    clock = ManualClock()
    with KeyServerForTests(standard_set()) as server:
        keys = keys_at(server.url, clock)
        await keys.open()
        server.status = 500
        clock.advance(hours=1)
        await until(lambda: len(server.paths) == 2 and not keys._is_fetching)
        assert len(keys.keys) == 3
        assert "keys_kept=3 reason=the server answers 500" in caplog.text
        # 100, 200, 400 and again 400 milliseconds.
        for wait_ms in (100, 200, 400, 400):
            seen = len(server.paths)
            clock.advance(milliseconds=wait_ms - 1)
            assert not keys._is_fetching
            clock.advance(milliseconds=1)
            await until(lambda seen=seen: len(server.paths) > seen and not keys._is_fetching)
        server.status, server.body = 200, OTHER_SET
        clock.advance(milliseconds=400)
        await until(lambda: len(keys.keys) == 1)
        clock.advance(minutes=59)
        assert not keys._is_fetching
        clock.advance(minutes=1)
        await until(lambda: len(server.paths) == 8)
        keys.close()


async def test_broker_without_key_server_starts_and_refuses_tokens(caplog):
    clock = ManualClock()
    with KeyServerForTests(standard_set()) as server:
        port = server.port
    keys = keys_at(f"http://127.0.0.1:{port}/keys", clock)
    await keys.open()
    assert len(keys.keys) == 0
    assert "no token can be verified until there are keys" in caplog.text
    assert [each.levelno for each in caplog.records][-1] == logging.ERROR
    with KeyServerForTests(standard_set(), port):
        clock.advance(milliseconds=100)
        await until(lambda: len(keys.keys) == 3)
    keys.close()


async def test_an_unknown_key_is_fetched_for_once_a_minute():
    clock = ManualClock()
    with KeyServerForTests(standard_set()) as server:
        keys = keys_at(server.url, clock)
        await keys.open()
        server.body = OTHER_SET
        for _ in range(100):
            keys.unknown_key()
        await until(lambda: len(keys.keys) == 1)
        keys.unknown_key()
        clock.advance(seconds=59)
        keys.unknown_key()
        assert len(server.paths) == 2
        clock.advance(seconds=1)
        keys.unknown_key()
        await until(lambda: len(server.paths) == 3 and not keys._is_fetching)
        # It counts from there until keys are fetched again.
        clock.advance(minutes=59)
        assert len(server.paths) == 3
        keys.close()


async def test_one_fetch_at_a_time():
    goes_on = threading.Event()
    with KeyServerForTests(standard_set()) as server:
        keys = keys_at(server.url)
        await keys.open()
        server.before = lambda: goes_on.wait(20)
        keys.unknown_key()
        await until(lambda: len(server.paths) == 2)
        keys._asked_for_unknown_ms = None
        keys.unknown_key()
        goes_on.set()
        await until(lambda: not keys._is_fetching)
        keys.close()
    assert len(server.paths) == 2


async def test_keys_fetched_after_close_are_ignored():
    goes_on = threading.Event()
    with KeyServerForTests(standard_set()) as server:
        keys = keys_at(server.url)
        await keys.open()
        before = keys.keys
        server.before = lambda: goes_on.wait(20)
        keys.unknown_key()
        await until(lambda: len(server.paths) == 2)
        keys.close()
        goes_on.set()
    await asyncio.sleep(0.05)
    assert keys.keys is before


# ------------------------------------------------------------------------------------- one fetch


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed_cve_2025_27817(tmp_path, status):
    (tmp_path / "keys.json").write_bytes(standard_set())
    with KeyServerForTests(standard_set()) as server, KeyServerForTests(b"") as first:
        first.status = status
        for location in (server.url, f"file://{tmp_path}/keys.json", "ftp://127.0.0.1/"):
            first.headers = {"Location": location}
            with pytest.raises(KeysUnavailable, match=f"the server answers {status}"):
                fetch(first.url)
    assert server.paths == []


def test_no_proxy_of_the_environment_is_asked(monkeypatch):
    with KeyServerForTests(standard_set()) as server, KeyServerForTests(b"") as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        assert fetch(server.url) == standard_set()
    assert proxy.paths == []


@pytest.mark.parametrize("status", [204, 401, 404, 500])
def test_other_answers_are_none(status):
    with KeyServerForTests(b"") as server:
        server.status = status
        with pytest.raises(KeysUnavailable, match=f"the server answers {status}"):
            fetch(server.url)


def test_an_answer_without_end(monkeypatch):
    monkeypatch.setattr(key_server, "KEYS_BYTES_MAX", 1000)
    with (
        KeyServerForTests(bytes(1001)) as server,
        pytest.raises(KeysUnavailable, match="more than 1000 bytes"),
    ):
        fetch(server.url)


@pytest.mark.parametrize("drip", [b"", b"HTTP/1.0 200 OK\r\n", b"HTTP/1.0 200 OK\r\n\r\n{"])
def test_a_server_that_is_silent(monkeypatch, drip):
    monkeypatch.setattr(key_server, "FETCH_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ended = threading.Event()

        def answer():
            connection, _ = silent.accept()
            with connection:
                connection.sendall(drip)
                ended.wait(20)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with pytest.raises(KeysUnavailable, match="timed out"):
                fetch(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        finally:
            ended.set()
            thread.join()


def test_a_server_that_drips(monkeypatch):
    monkeypatch.setattr(key_server, "FETCH_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as dripping:
        ended = threading.Event()

        def answer():
            connection, _ = dripping.accept()
            with connection:
                connection.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
                while not ended.wait(0.02):
                    connection.sendall(b" ")

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            with pytest.raises(KeysUnavailable, match=r"not there after 0\.2 s"):
                fetch(f"http://127.0.0.1:{dripping.getsockname()[1]}/")
        finally:
            ended.set()
            thread.join()


@pytest.mark.parametrize("answer", [b"nonsense\r\n\r\n", b"HTTP/1.0 x y\r\n\r\n"])
def test_a_server_of_something_else(answer):
    with socket.create_server(("127.0.0.1", 0)) as other:

        def serve():
            connection, _ = other.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(KeysUnavailable):
            fetch(f"http://127.0.0.1:{other.getsockname()[1]}/")
        thread.join()
