"""The driver's HTTP port for Prometheus: what it serves, and what it does with bad clients."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.spark_connector.errors import WrongOption
from barnabas.spark_connector.monitoring import metrics_server
from barnabas.spark_connector.monitoring.metrics_server import CONTENT_TYPE, MetricsServer
from barnabas.spark_connector.monitoring.metrics_text import exposition
from barnabas.spark_connector.monitoring.query_metrics import QueryMetrics
from tests.waiting import wait_until

MANY = QueryMetrics(
    "id-1",
    'a "quoted"\nname\\',
    "ledger",
    batch=7,
    rows_decided=1_234_567,
    batches_decided=8,
    decide_ms=12.5,
    commit_ms=3.5,
    measured_batch=7,
    measured_batches=8,
    decide_total_ms=100.5,
    commit_total_ms=28.25,
    sink_ms=250,
    sink_total_ms=2500,
    reported_batches=8,
    transaction_age_ms=1500,
    lag=42,
)
FEW = QueryMetrics("id-2", "ended", "other", is_active=False)


@pytest.fixture
def server():
    with MetricsServer("127.0.0.1", 0, lambda: exposition([MANY, FEW])) as running:
        yield running


def ask(server, data, *, ends=False):
    """Send bytes; return all that comes back until the server closes the connection."""
    with socket.create_connection(server.address, timeout=60) as client:
        client.sendall(data)
        if ends:
            client.shutdown(socket.SHUT_WR)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := client.recv(65536):
                found += piece
        return found


def samples(text):
    return {
        (each.name, each.labels["query"]): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def test_metrics_are_read_by_the_parser_of_prometheus(server):
    with urllib.request.urlopen(server.url, timeout=60) as response:
        assert response.headers["Content-Type"] == CONTENT_TYPE
        text = response.read().decode()
    many, few = MANY.query, FEW.query
    prefix = "barnabas_spark_"
    assert samples(text) == {
        (f"{prefix}query_active", many): 1,
        (f"{prefix}rows_decided_total", many): 1_234_567,
        (f"{prefix}batches_decided_total", many): 8,
        (f"{prefix}sink_seconds_sum", many): 2.5,
        (f"{prefix}sink_seconds_count", many): 8,
        (f"{prefix}decide_seconds_sum", many): 0.1005,
        (f"{prefix}decide_seconds_count", many): 8,
        (f"{prefix}commit_seconds_sum", many): 0.02825,
        (f"{prefix}commit_seconds_count", many): 8,
        (f"{prefix}oldest_transaction_age_seconds", many): 1.5,
        (f"{prefix}lag_records", many): 42,
        # Of what is not known there is no sample.
        (f"{prefix}query_active", few): 0,
        (f"{prefix}rows_decided_total", few): 0,
        (f"{prefix}batches_decided_total", few): 0,
        (f"{prefix}sink_seconds_sum", few): 0,
        (f"{prefix}sink_seconds_count", few): 0,
        (f"{prefix}decide_seconds_sum", few): 0,
        (f"{prefix}decide_seconds_count", few): 0,
        (f"{prefix}commit_seconds_sum", few): 0,
        (f"{prefix}commit_seconds_count", few): 0,
    }
    kinds = {each.name: each.type for each in text_string_to_metric_families(text)}
    assert kinds[f"{prefix}rows_decided"] == "counter"
    assert kinds[f"{prefix}decide_seconds"] == "summary"
    assert exposition([]) == ""


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /metrics?x=1 HTTP/1.0\r\n\r\n", b"200"),
        (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"GET /metrics/../etc HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"405"),
        (b"\r\n\r\n", b"400"),
        (b"\x16\x03\x01\x00\xff\r\n\r\n", b"400"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"GET /metrics SMTP/1.1\r\n\r\n", b"400"),
        (b"GET /" + b"a" * 100_000, b"431"),
    ],
)
def test_each_request_gets_a_status_and_the_connection_is_closed(server, request_bytes, status):
    found = ask(server, request_bytes)
    # The rest of a long request is not read, which may reset the connection.
    if not (status == b"431" and not found):
        assert found.split(b" ")[1] == status
    assert ask(server, b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")


def test_head_has_the_length_and_no_body(server):
    head = ask(server, b"HEAD /metrics HTTP/1.1\r\n\r\n")
    length = len(exposition([MANY, FEW]).encode())
    assert f"Content-Length: {length}\r\n".encode() in head
    assert head.endswith(b"\r\n\r\n")


def test_an_unfinished_request_is_closed(server, monkeypatch):
    assert ask(server, b"GET /metrics", ends=True) == b""
    monkeypatch.setattr(metrics_server, "REQUEST_S", 0.1)
    assert ask(server, b"GET /metrics HTTP/1.1\r\n") == b""


def test_one_connection_too_many_is_closed_and_later_ones_are_served(server, monkeypatch):
    monkeypatch.setattr(metrics_server, "CONNECTIONS_MAX", 2)
    with contextlib.ExitStack() as held:
        for _ in range(2):
            held.enter_context(socket.create_connection(server.address, timeout=60))
        wait_until(lambda: len(server._open) == 2)
        assert ask(server, b"") == b""
    wait_until(lambda: ask(server, b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200"))


def test_a_connection_that_cannot_be_accepted_is_served_after_a_pause(monkeypatch, caplog):
    monkeypatch.setattr(metrics_server, "_PAUSE_S", 0.01)
    with MetricsServer("127.0.0.1", 0, str) as running:
        listening = running._socket

        class Exhausted:
            """The listening socket while the process has no more descriptors."""

            def accept(self):
                running._socket = listening
                raise OSError(errno.EMFILE, "Too many open files")

            def fileno(self):
                return listening.fileno()

        running._socket = Exhausted()
        assert ask(running, b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200 OK\r\n")
    (line,) = caplog.messages
    assert line.startswith(f"connection was not accepted url={running.url} reason=")


def test_a_failure_of_the_text_is_one_bad_response(caplog):
    def fail():
        raise ValueError("no text")

    with MetricsServer("127.0.0.1", 0, fail) as running:
        assert ask(running, b"GET /metrics HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 500 ")
        assert ask(running, b"GET /none HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")
    assert caplog.messages == [f"metrics could not be written url={running.url}"]


def test_a_port_in_use_is_refused_with_a_sentence(server):
    host, port = server.address
    with pytest.raises(WrongOption, match=rf"cannot be served at {host}:{port} .*another port"):
        MetricsServer(host, port, str)
    with pytest.raises(WrongOption, match=r"cannot be served at 192\.0\.2\.1:0 "):
        MetricsServer("192.0.2.1", 0, str)


def test_a_port_that_is_none_is_refused_with_a_sentence():
    for port in (70_000, -1, "9108"):
        with pytest.raises(WrongOption, match=rf"cannot be served at 127\.0\.0\.1:{port} "):
            MetricsServer("127.0.0.1", port, str)


def test_closing_ends_the_thread_and_frees_the_port():
    running = MetricsServer("127.0.0.1", 0, str)
    with socket.create_connection(running.address, timeout=60) as client:
        running.close()
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1) == b""
    running.close()
    assert "barnabas-metrics" not in {each.name for each in threading.enumerate()}
    with MetricsServer(*running.address, str) as again:
        assert again.address == running.address
