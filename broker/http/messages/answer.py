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
"""Statuses whose answers end with the head; a length would be that of another answer's body."""

Piece: TypeAlias = str | bytes | memoryview
JSON: Final = "application/json"

_ALWAYS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""What every answer says unless it says otherwise."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"


class Viewer(Protocol):
    """Somebody who reads an answer that does not end."""

    def show(self, piece: Piece) -> bool:
        """Send a piece; False, and nothing is sent, while the pieces before are not read."""

    def abort(self) -> None:
        """Send no more."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A body that does not end by itself, made by somebody who knows when there is news."""

    joined: Callable[[Viewer], None]
    """Called when the answer has begun: from now on the viewer is shown what there is."""
    left: Callable[[Viewer], None]
    """Called when the viewer is gone, whoever has ended it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer; a body that is a tuple is there whole, another one comes piece by piece."""

    status: int
    content_type: str
    body: tuple[Piece, ...] | Iterable[Piece] | Stream
    headers: Mapping[str, str] = field(default_factory=dict)
    holding: Holding | None = None
    """Released once the answer is written, or its connection has ended."""


def text(status: int, words: str, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer of one line."""
    return Answer(status, "text/plain; charset=utf-8", (words + "\n",), headers or {})


def json_answer(status: int, content: object, headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, JSON, (json.dumps(content, indent=2) + "\n",), headers or {})


class Framing:
    """How one answer is written to its client."""

    __slots__ = ("chunked", "keeps_alive")

    def __init__(self, *, keeps_alive: bool) -> None:
        self.chunked = False
        """Whether the length of the body is not known before its end."""
        self.keeps_alive = keeps_alive
        """Whether another request may follow on the connection."""

    def head(self, answer: Answer, size_bytes: int | None) -> bytes:
        """Return the head of an answer; ``size_bytes`` of its body, None where it is not known."""
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
        """Return what stands behind the last piece."""
        return LAST_CHUNK if self.chunked else b""
