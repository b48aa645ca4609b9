"""An HTTP server for tests, on a thread until the end of a block."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from typing import Self


class HttpServerForTests:
    """What the servers of keys and of tokens have in common."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._server.daemon_threads = True
        # Asked often whether it is to end: tests are many.
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
