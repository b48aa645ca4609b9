"""The files of the console's page, as they are in this package.

All are read and compressed once, on a thread, and kept. Their addresses carry a digest of all of
them, so that a browser keeps them for good and a new version is at another address. The page itself
is never kept, and is the same at the address of every screen: which one is shown, its script reads
from the address.
"""

from __future__ import annotations

import gzip
import hashlib
from importlib import resources
from typing import TYPE_CHECKING, Final

from barnabas.broker.http.messages.answer import Answer
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

    from barnabas.broker.http.messages.request import Request

PAGE: Final = "index.html"
HTML: Final = "text/html; charset=utf-8"
CONTENT_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json",
    "LICENSE": "text/plain; charset=utf-8",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'"
)
"""Content security policy: the page loads its own files only, and calls this broker's API only."""
_KEPT: Final = "public, max-age=31536000, immutable"
SMALLEST_ZIPPED_BYTES: Final = 1024
"""Files that are shorter are not compressed."""


class Assets:
    """The page with its scripts, styles and pictures."""

    def __init__(self) -> None:
        folder = resources.files(__package__) / "static"
        self._files = dict(_files_in(folder, ""))
        digest = hashlib.sha256()
        for name in sorted(self._files):
            digest.update(name.encode() + b"\0" + self._files[name] + b"\0")
        self.version = digest.hexdigest()[:16]
        """Version in the addresses of all files except the page."""
        self._zipped = {
            name: gzip.compress(content, 6, mtime=0)
            for name, content in self._files.items()
            if len(content) >= SMALLEST_ZIPPED_BYTES
        }
        page = self._files.pop(PAGE).replace(b"{preloads}", self._preloads().encode())
        self._page = page.replace(b"{version}", self.version.encode())

    def page(self, status: int) -> Answer:
        """Return the page."""
        headers = {
            "Content-Security-Policy": POLICY,
            "Cross-Origin-Opener-Policy": "same-origin",
        }
        return Answer(status, HTML, (self._page,), headers)

    def answer(self, request: Request) -> Answer:
        """Return a file; raises KafkaError if none has this address."""
        _, version, *rest = (*request.parts, "", "")
        name = "/".join(each for each in rest if each)
        content = self._files.get(name)
        if content is None or version != self.version:
            raise KafkaError(ErrorCode.RESOURCE_NOT_FOUND, "no such file")
        tag = f'"{self.version}"'
        headers = {"Cache-Control": _KEPT, "ETag": tag, "Content-Security-Policy": POLICY}
        content_type = CONTENT_TYPES[name.rpartition(".")[2]]
        if tag in request.headers.get("if-none-match", ""):
            return Answer(304, content_type, (), headers)
        headers["Vary"] = "Accept-Encoding"
        if name in self._zipped and _takes_gzip(request):
            headers["Content-Encoding"] = "gzip"
            content = self._zipped[name]
        return Answer(200, content_type, (content,), headers)

    def _preloads(self) -> str:
        """Return links to all modules, so that a browser loads them in parallel."""
        links = [
            f'<link rel="modulepreload" href="/assets/{{version}}/{name}">'
            for name in sorted(self._files)
            if name.endswith(".js")
        ]
        return "\n".join(links)


def _takes_gzip(request: Request) -> bool:
    accepted = request.headers.get("accept-encoding", "")
    return any(each.strip().partition(";")[0] == "gzip" for each in accepted.split(","))


def _files_in(folder: Traversable, before: str) -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        name = f"{before}{each.name}"
        if each.is_dir():
            yield from _files_in(each, f"{name}/")
        else:
            yield name, each.read_bytes()
