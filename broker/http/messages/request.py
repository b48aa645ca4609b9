"""Requests over HTTP/1: bytes in, whole requests out, without any I/O.

Rules of this file:

* **Any malformed or ambiguous request is refused.** A body has a Content-Length or does not exist;
  a header occurs once if two values could contradict each other.
* **All sizes are limited**: heads, the number of headers, bodies, the parts of a query.
* **A path is split before it is decoded**, so a name with a slash in it is one part.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

HEAD_BYTES_MAX: Final = 8 * 1024
"""Maximum size of the head of a request, long enough for the cookies of browsers."""
BODY_BYTES_MAX: Final = 1024 * 1024
HEAD_END: Final = b"\r\n\r\n"
HEADERS_MAX: Final = 64
QUERY_FIELDS_MAX: Final = 64

METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"))
_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,16}) ([\x21-\x7e]{1,4096}) HTTP/1\.([01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_LENGTH: Final = re.compile(r"[0-9]{1,10}")
_ONCE: Final = frozenset(("host", "content-length", "content-type", "authorization", "origin"))
"""Headers that make a request ambiguous if they occur twice."""


class BadRequest(Exception):
    """A request that is refused; ``status`` says how."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        self.status = status
        self.headers = headers
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Request:
    """One whole request."""

    method: str
    parts: tuple[str, ...]
    """The decoded parts of the path, empty for the root."""
    query: Mapping[str, str] = field(default_factory=dict)
    """Query parameters; the last value of a repeated one counts."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers by name in lower case; repeated values are joined by commas."""
    body: bytes = b""
    is_old: bool = False
    """Whether it is HTTP/1.0: no chunks, one request for each connection."""

    @property
    def path(self) -> str:
        """Path as text, for pages without encoded names."""
        return "/" + "/".join(self.parts)

    @property
    def keeps_alive(self) -> bool:
        """Whether the client keeps the connection open."""
        return not self.is_old and "close" not in self.headers.get("connection", "").lower()

    @property
    def media_type(self) -> str:
        """Content type of the body, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def cookies(self) -> dict[str, str]:
        """Return the cookies of the request."""
        pairs = (each.partition("=") for each in self.headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip() for name, equals, value in pairs if equals}


class RequestReader:
    """The requests of one connection, one at a time."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._head: Request | None = None
        self._body_bytes = 0

    def receive(self, data: bytes) -> None:
        """Add received bytes. Take the request out before receiving more."""
        self._data += data

    @property
    def has_begun(self) -> bool:
        """Whether a part of a request was received."""
        return bool(self._data) or self._head is not None

    @property
    def awaits_permission(self) -> bool:
        """Whether the client waits for permission to send its body."""
        head = self._head
        return (
            head is not None
            and len(self._data) < self._body_bytes
            and head.headers.get("expect", "").lower() == "100-continue"
        )

    def next_request(self) -> Request | None:
        """Return the complete request, or None. After BadRequest the parser is unusable."""
        if self._head is None and not self._read_head():
            return None
        head = self._head
        assert head is not None
        if len(self._data) < self._body_bytes:
            return None
        body = bytes(self._data[: self._body_bytes])
        del self._data[: self._body_bytes]
        self._head = None
        return Request(head.method, head.parts, head.query, head.headers, body, head.is_old)

    def _read_head(self) -> bool:
        end = self._data.find(HEAD_END, 0, HEAD_BYTES_MAX + len(HEAD_END))
        if end < 0:
            if len(self._data) > HEAD_BYTES_MAX:
                raise BadRequest(431, f"a request's head has at most {HEAD_BYTES_MAX} bytes")
            return False
        head = bytes(self._data[: end + len(HEAD_END)])
        del self._data[: end + len(HEAD_END)]
        self._head = parse_head(head)
        self._body_bytes = _body_bytes(self._head)
        return True


def parse_head(head: bytes) -> Request:
    """Parse the head of a request with its empty line; raises BadRequest."""
    lines = head.removesuffix(HEAD_END).split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(lines[0])
    if match is None:
        raise BadRequest(400, "not an HTTP/1 request")
    if len(lines) - 1 > HEADERS_MAX:
        raise BadRequest(431, "too many headers")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise BadRequest(400, "malformed header")
        name, value = header[1].decode().lower(), header[2].decode("latin-1").rstrip(" \t")
        if name in headers:
            if name in _ONCE:
                raise BadRequest(400, f"header {name} occurs twice")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    method, target, minor = match[1].decode(), match[2], match[3]
    if method not in METHODS:
        raise BadRequest(405, "no such method", Allow=", ".join(sorted(METHODS)))
    parts, query = _target(target)
    return Request(method, parts, query, headers, is_old=minor == b"0")


def _target(target: bytes) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return path and query of a target, with or without a host."""
    try:
        split = urlsplit(target.decode("ascii"))
        if not split.path.startswith("/") and (split.path or not split.netloc):
            raise BadRequest(400, "malformed target")
        raw = split.path.strip("/")
        parts = tuple(unquote(each, errors="strict") for each in raw.split("/")) if raw else ()
        fields = parse_qsl(
            split.query,
            keep_blank_values=True,
            errors="strict",
            max_num_fields=QUERY_FIELDS_MAX,
        )
    except ValueError as error:
        raise BadRequest(400, "malformed target") from error
    if any("\0" in each for each in parts):
        raise BadRequest(400, "malformed target")
    return parts, dict(fields)


def _body_bytes(head: Request) -> int:
    if "transfer-encoding" in head.headers:
        raise BadRequest(501, "a body needs a Content-Length here")
    text = head.headers.get("content-length", "0")
    if not _LENGTH.fullmatch(text):
        raise BadRequest(400, "malformed Content-Length")
    if int(text) > BODY_BYTES_MAX:
        raise BadRequest(413, f"a body has at most {BODY_BYTES_MAX} bytes")
    return int(text)
