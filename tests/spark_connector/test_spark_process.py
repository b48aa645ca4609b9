"""What PySpark's own servers may print."""

from __future__ import annotations

import socket
import socketserver
import threading

import pytest

from barnabas.spark_connector.quiet import let_the_other_side_leave


class Failing(socketserver.BaseRequestHandler):
    """Fails as it is told to."""

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
        let_the_other_side_leave(server)
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        with socket.create_connection(server.server_address):
            serving.join(10)
    assert (type(failure).__name__ in capsys.readouterr().err) == is_shown
    assert not serving.is_alive()
