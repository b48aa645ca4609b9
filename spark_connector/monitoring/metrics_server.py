"""The driver's HTTP port for Prometheus: GET /metrics and nothing else.

Not `http.server`: its time limit is for each read, so a client that sends a byte now and then
occupies a thread forever. Here a connection has one request and REQUEST_S seconds in total.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.errors import WrongOption

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
PATH: Final = "/metrics"
CONNECTIONS_MAX: Final = 16
"""Number of open connections; one more is closed at once."""
REQUEST_S: Final = 5.0
"""Time for a connection to send its request and read the response."""
REQUEST_MAX_BYTES: Final = 8192
_CLOSING_S: Final = 5.0
_PAUSE_S: Final = 5.0
"""Time without new connections after one could not be accepted."""
_log: Final = logging.getLogger("barnabas.spark.monitor")


class MetricsServer(Closing):
    """Serves a text at an address, in a thread of its own."""

    def __init__(self, host: str, port: int, text: Callable[[], str]) -> None:
        """Start to listen; port 0 is any free port. Raises WrongOption if the port is in use."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family)
        except (OSError, OverflowError, TypeError) as error:
            raise WrongOption(
                f"The metrics cannot be served at {host}:{port} ({error}); use another port."
            ) from error
        self._socket.setblocking(False)
        self._bound = self._socket.getsockname()
        self._text = text
        self._open: set[asyncio.Task[None]] = set()
        """One for each connection."""
        self._ending = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="barnabas-metrics", daemon=True)
        self._thread.start()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        host, port = self._bound[:2]
        return str(host), int(port)

    @property
    def url(self) -> str:
        """Address of the metrics."""
        host, port = self.address
        return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"

    def close(self) -> None:
        """Close the port and all connections."""
        with suppress(RuntimeError):  # Closed before.
            self._loop.call_soon_threadsafe(self._ending.set)
        self._thread.join(_CLOSING_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._loop.add_reader(self._socket, self._accept)
        await self._ending.wait()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        for each in self._open:
            each.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):
            return  # The client has disconnected.
        except OSError as error:  # The process has no more descriptors, for example.
            _log.warning("connection was not accepted url=%s reason=%s", self.url, error)
            self._loop.remove_reader(self._socket)
            self._loop.call_later(_PAUSE_S, self._loop.add_reader, self._socket, self._accept)
            return
        if len(self._open) >= CONNECTIONS_MAX:
            connection.close()
            return
        connection.setblocking(False)
        task = self._loop.create_task(self._respond(connection))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        # Not in the task: one that is cancelled before it starts runs no line of it.
        task.add_done_callback(lambda _task: connection.close())

    async def _respond(self, connection: socket.socket) -> None:
        # A client that is too slow or has disconnected gets no response.
        with suppress(TimeoutError, OSError):
            async with asyncio.timeout(REQUEST_S):
                head = b""
                while b"\r\n\r\n" not in head:
                    piece = await self._loop.sock_recv(connection, REQUEST_MAX_BYTES)
                    if not piece:
                        return
                    head += piece
                    if len(head) > REQUEST_MAX_BYTES:
                        break
                await self._loop.sock_sendall(connection, self._response(head))

    def _response(self, head: bytes) -> bytes:
        if len(head) > REQUEST_MAX_BYTES:
            return _response("431 Request Header Fields Too Large")
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or not words[2].startswith(b"HTTP/1."):
            return _response("400 Bad Request")
        method, target, _version = words
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", "Allow: GET, HEAD\r\n")
        if target.split(b"?", 1)[0] != PATH.encode():
            return _response("404 Not Found")
        try:
            body = self._text()
        except Exception:  # noqa: BLE001 - logged; the port must go on
            _log.warning("metrics could not be written url=%s", self.url, exc_info=True)
            return _response("500 Internal Server Error")
        return _response("200 OK", body=body, has_body=method == b"GET")


def _response(
    status: str, header: str = "", body: str | None = None, *, has_body: bool = True
) -> bytes:
    data = (f"{status}\n" if body is None else body).encode()
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: {CONTENT_TYPE}\r\n{header}"
        f"Content-Length: {len(data)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (data if has_body else b"")
