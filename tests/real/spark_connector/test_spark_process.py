"""Output and sockets of PySpark's own servers."""

from __future__ import annotations

import socket
import socketserver
import tempfile
import threading
from pathlib import Path

import pytest

from barnabas.spark_connector.session.quiet import ignore_disconnects
from barnabas.spark_connector.session.spark_process import unix_sockets


class Failing(socketserver.BaseRequestHandler):
    """A handler that raises the given failure."""

    failure: Exception

    def handle(self) -> None:
        raise self.failure


@pytest.mark.parametrize(
    ("failure", "is_shown"),
    [(EOFError(), False), (ConnectionResetError(), False), (ValueError("wrong token"), True)],
)
def test_only_an_end_in_mid_message_prints_nothing(failure, is_shown, capsys):
    handler = type("Handler", (Failing,), {"failure": failure})
    with socketserver.TCPServer(("127.0.0.1", 0), handler) as server:
        ignore_disconnects(server)
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        with socket.create_connection(server.server_address):
            serving.join(10)
    assert (type(failure).__name__ in capsys.readouterr().err) == is_shown
    assert not serving.is_alive()


def test_sockets_have_a_directory_of_their_own_while_spark_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")
    with unix_sockets() as settings:
        directory = Path(settings["spark.python.unix.domain.socket.dir"])
        assert settings["spark.python.unix.domain.socket.enabled"] == "true"
        assert directory.stat().st_mode & 0o777 == 0o700
        (directory / ".left-behind.sock").touch()
    assert not directory.exists()


def test_a_directory_too_long_for_addresses_of_sockets_is_not_used(tmp_path, monkeypatch):
    long = tmp_path / ("long" * 12)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))
    with unix_sockets() as settings:
        assert settings == {}
    assert not list(long.iterdir())
