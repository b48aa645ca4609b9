"""Servers that are no brokers."""

from __future__ import annotations

import socket
import threading

import pytest

from tests.broker.cli.inline import Shell


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            "the answer is not Kafka's (response of 1213486160 bytes, the limit is 104857600)",
        ),
        (b"", "connection closed during ApiVersions"),
        (None, "no answer in 0.5 seconds"),
    ],
    ids=["another-protocol", "hung-up", "silent"],
)
def test_server_without_kafka_protocol_is_reported(monkeypatch, answer, expected):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "{}:{}".format(*server.getsockname())
        if answer is not None:
            answer_once(server, answer)
        shell = Shell(monkeypatch, address)
        # A response may take longer on a busy machine than the wait for a missing one.
        ended = shell("topics", "list", "--timeout", "0.5" if answer is None else "60")
        assert ended.error.startswith(f"{address}: {expected}")


def answer_once(server, answer):
    def serve():
        connection, _ = server.accept()
        with connection:
            connection.recv(4096)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()
