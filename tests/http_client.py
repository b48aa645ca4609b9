"""``urlopen`` for tests: over the World's network where they are in a World."""

from __future__ import annotations

import urllib.request
from http.client import HTTPConnection, HTTPResponse

from barnabas.testing import connect


class HttpConnection(HTTPConnection):
    """One connection, opened as the product's clients open theirs."""

    def connect(self) -> None:
        self.sock = connect((self.host, self.port), self.timeout)


class _Handler(urllib.request.HTTPHandler):
    """Handler of ``http://``."""

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(HttpConnection, req)


_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Handler)


def urlopen(request: str | urllib.request.Request, timeout: float = 60) -> HTTPResponse:
    """Return the response to a request; raises HTTPError, URLError."""
    return _OPENER.open(request, timeout=timeout)
