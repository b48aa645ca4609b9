"""The files of the console's page, as they are in this package.

All are read once and kept; their addresses carry a digest of all of them, so that a browser keeps
them for good and a new version is at another address. The page itself is never kept.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Final

from barnabas.broker.http.answer import Answer
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.http.request import Request

PAGE: Final = "index.html"
HTML: Final = "text/html; charset=utf-8"
CONTENT_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "html": HTML,
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
"""What the page may load and do: nothing but its own files and this broker's API."""
_KEPT: Final = "public, max-age=31536000, immutable"


class Assets:
    """The page, and what it is made of."""

    def __init__(self) -> None:
        folder = resources.files(__package__) / "static"
        self._files = {each.name: each.read_bytes() for each in folder.iterdir()}
        digest = hashlib.sha256()
        for name in sorted(self._files):
            digest.update(name.encode() + b"\0" + self._files[name] + b"\0")
        self.version = digest.hexdigest()[:16]
        """What stands in the addresses of all files but the page."""
        self._page = self._files.pop(PAGE).replace(b"{version}", self.version.encode())

    def page(self) -> Answer:
        """Return the page."""
        headers = {
            "Content-Security-Policy": POLICY,
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        return Answer(200, HTML, (self._page,), headers)

    def answer(self, request: Request) -> Answer:
        """Return a file; raises KafkaError where there is none at this address."""
        _, version, name = request.parts if len(request.parts) == 3 else ("", "", "")
        content = self._files.get(name)
        if content is None or version != self.version:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "no such file")
        tag = f'"{self.version}"'
        headers = {"Cache-Control": _KEPT, "ETag": tag, "Content-Security-Policy": POLICY}
        content_type = CONTENT_TYPES[name.rpartition(".")[2]]
        if tag in request.headers.get("if-none-match", ""):
            return Answer(304, content_type, (), headers)
        return Answer(200, content_type, (content,), headers)
