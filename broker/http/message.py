"""Just enough of HTTP for questions without a body: a request's head, an answer's head.

Rules of this file: no I/O, and whatever is not plainly right is refused. There is no need here to
understand what others might have meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

HEAD_BYTES_MAX: Final = 8 * 1024
"""Longest head of a request; browsers' cookies are what makes one long."""
HEAD_END: Final = b"\r\n\r\n"
HEADERS_MAX: Final = 64

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) (\S{1,2048}) HTTP/1\.([01])")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*)")

REASONS: Final[Mapping[int, str]] = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class BadRequest(Exception):
    """A request that is refused; ``status`` says how."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        self.status = status
        self.headers = headers
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Question:
    """A request: GET or HEAD, and a path without its query."""

    path: str
    is_head: bool
    chunked: bool
    """Whether the asker understands an answer in chunks (HTTP/1.1)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; its body comes piece by piece."""

    status: int
    content_type: str
    body: Iterable[str]
    headers: Mapping[str, str] = field(default_factory=dict)


def text(status: int, words: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer of one line."""
    return Answer(status, "text/plain; charset=utf-8", (words + "\n",), headers or {})


def json_answer(status: int, content: object) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, "application/json", (json.dumps(content, indent=2) + "\n",))


def parse_question(head: bytes) -> Question:
    """Read the head of a request, its empty line included; raises BadRequest."""
    lines = head.removesuffix(HEAD_END).split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(lines[0])
    if match is None:
        raise BadRequest(400, "not an HTTP/1 request")
    if len(lines) - 1 > HEADERS_MAX:
        raise BadRequest(431, "too many headers")
    headers: dict[bytes, bytes] = {}
    for line in lines[1:]:
        header = _HEADER.fullmatch(line)
        if header is None:
            raise BadRequest(400, "malformed header")
        headers[header[1].lower()] = header[2]
    method, target, minor = match.groups()
    if method not in {b"GET", b"HEAD"}:
        raise BadRequest(405, "only GET and HEAD", Allow="GET, HEAD")
    if headers.get(b"content-length", b"0").strip() != b"0" or b"transfer-encoding" in headers:
        raise BadRequest(413, "a request has no body here")
    return Question(_path(target), method == b"HEAD", chunked=minor == b"1")


def _path(target: bytes) -> str:
    """Take the path out of a target, with or without a host before it."""
    try:
        path = unquote(urlsplit(target.decode("ascii")).path, errors="strict")
    except ValueError as error:
        raise BadRequest(400, "malformed target") from error
    return path if path == "/" else path.rstrip("/")


def encode_head(answer: Answer, *, chunked: bool) -> bytes:
    """Return the head of an answer. Every connection ends with its answer."""
    lines = [
        f"HTTP/1.1 {answer.status} {REASONS[answer.status]}",
        f"Content-Type: {answer.content_type}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *(f"{name}: {words}" for name, words in answer.headers.items()),
        *(("Transfer-Encoding: chunked",) if chunked else ()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii")


def encode_piece(piece: str, *, chunked: bool) -> bytes:
    """Return a piece of a body; an empty one would end a body in chunks and is left out."""
    data = piece.encode()
    if not chunked or not data:
        return data
    return b"%x\r\n%b\r\n" % (len(data), data)


LAST_CHUNK: Final = b"0\r\n\r\n"
