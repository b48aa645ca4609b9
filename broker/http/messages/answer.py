"""Answers over HTTP/1: what they say, and how that is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

if TYPE_CHECKING:
    from barnabas.broker.http.messages.answer_memory import Holding

WITHOUT_BODY: Final = frozenset((204, 304))
"""Statuses whose responses have no body, and so no length."""

Piece: TypeAlias = str | bytes | memoryview
JSON: Final = "application/json"

_ALWAYS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Default headers of every response."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


class Viewer(Protocol):
    """Reader of an endless response."""

    def show(self, piece: Piece) -> bool:
        """Send a piece; return False without sending while previous pieces are unread."""

    def abort(self) -> None:
        """Stop sending."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Body that does not end by itself; its owner sends pieces when there is news."""

    joined: Callable[[Viewer], None]
    """Called when the response has started; from then on the viewer receives pieces."""
    left: Callable[[Viewer], None]
    """Called when the viewer has disconnected or was removed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Response; a tuple is a whole body, an iterator a body in pieces."""

    status: int
    content_type: str
    body: tuple[Piece, ...] | Iterable[Piece] | Stream
    headers: Mapping[str, str] = field(default_factory=dict)
    holding: Holding | None = None
    """Released once the response is written, or its connection has ended."""


def text(status: int, words: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a response of one line."""
    return Answer(status, "text/plain; charset=utf-8", (words + "\n",), headers or {})


def json_answer(status: int, content: object, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a response in JSON."""
    return Answer(status, JSON, (_indented(content) + "\n",), headers or {})


def _indented(value: object, line: str = "\n") -> str:
    """Return a value as ``json.dumps`` writes it with ``indent=2``.

    With ``indent`` that function leaves a cycle of 33 objects for each call. A full collection
    would freeze those of a health probe, and never free them.
    """
    if not (value and isinstance(value, Mapping | list | tuple)):
        return json.dumps(value)
    inner = line + "  "
    if isinstance(value, Mapping):
        rows = [f"{json.dumps(name)}: {_indented(each, inner)}" for name, each in value.items()]
        return f"{{{inner}{f',{inner}'.join(rows)}{line}}}"
    return f"[{inner}{f',{inner}'.join(_indented(each, inner) for each in value)}{line}]"


class Framing:
    """Encoding of one response for its client."""

    __slots__ = ("chunked", "keeps_alive")

    def __init__(self, *, keeps_alive: bool) -> None:
        self.chunked = False
        """Whether the length of the body is not known before its end."""
        self.keeps_alive = keeps_alive
        """Whether another request may follow on the connection."""

    def head(self, answer: Answer, size_bytes: int | None) -> bytes:
        """Return the head of a response; ``size_bytes`` is its body's size, or None if unknown."""
        headers = {"Content-Type": answer.content_type, **_ALWAYS, **answer.headers}
        if size_bytes is not None and answer.status not in WITHOUT_BODY:
            headers["Content-Length"] = str(size_bytes)
        elif self.chunked:
            headers["Transfer-Encoding"] = "chunked"
        headers["Connection"] = "keep-alive" if self.keeps_alive else "close"
        lines = [f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")

    def piece(self, piece: Piece) -> bytes | memoryview:
        """Return a piece of a body; an empty one would end a body in chunks and is left out."""
        data = piece.encode() if isinstance(piece, str) else piece
        if not self.chunked or not data:
            return data
        return b"%x\r\n%b\r\n" % (len(data), bytes(data))

    @property
    def end(self) -> bytes:
        """Return the bytes after the last piece."""
        return LAST_CHUNK if self.chunked else b""
