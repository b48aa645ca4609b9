"""A server of keys for tests: a port that answers GET with what it is told to."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.http_server import HttpServerForTests


class KeyServerForTests(HttpServerForTests):
    """`with KeyServerForTests(standard_set()) as server:` answers until the end of the block."""

    def __init__(self, body: bytes, port: int = 0) -> None:
        self.body = body
        self.status = 200
        self.headers: dict[str, str] = {}
        self.paths: list[str] = []
        self.before: Callable[[], None] = lambda: None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.paths.append(self.path)
                outer.before()
                self.send_response(outer.status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        super().__init__(ThreadingHTTPServer(("127.0.0.1", port), Handler))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/keys"
