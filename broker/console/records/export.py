"""Export of records as JSON lines, whole: the form that ``barnabas produce --input json`` reads.

Lines are written while records are read, a piece of a value at a time: the text of a value takes up
to 24 times its bytes. A record stays in memory only until its line is written.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.records.examining import EXPANDED_BYTES_MAX
from barnabas.broker.console.records.pace import ThreadPace
from barnabas.broker.console.records.reading import begin, check_shown
from barnabas.broker.console.records.standing import MARKER
from barnabas.broker.http.messages.answer import Answer

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question
    from barnabas.broker.console.records.examining import Content, FoundRecord

NEXT: Final = "Barnabas-Next"
"""Header of the response with the cursor of the next page."""
_TEXT_BYTES: Final = 16 * 1024
"""Bytes of a value that are written as text in one go."""
_BASE64_BYTES: Final = 3 * _TEXT_BYTES
"""Bytes that are written as Base64 in one go: a multiple of three."""
_SENT_BYTES: Final = 32 * 1024
"""Approximate size of the part of a response that is written in one turn of the loop."""


class _Line(NamedTuple):
    """A record that is going to be written."""

    record: FoundRecord
    texts: tuple[bool, ...]
    """Whether key, value and the values of its headers are UTF-8."""


async def export(question: Question) -> Answer:
    """Return a response with one line for each record."""
    check_shown(question)
    with question.places.take(question.access) as place:
        pace = place.pace
        reading = await begin(question, place, pace, EXPANDED_BYTES_MAX)
        found = [
            each
            async for each in reading.scan.records()
            if each is not None and each.state != MARKER
        ]
        name = reading.topic.name
        lines = await place.readers.run(partial(_lines, found, pace))
        del found
        headers = {"Content-Disposition": f'attachment; filename="{name}.jsonl"'}
        following = reading.scan.left()
        if following is not None:
            headers[NEXT] = following
        body = _body(name, lines)
        return place.answered(Answer(200, "application/octet-stream", body, headers))


def _lines(found: Iterable[FoundRecord], pace: ThreadPace) -> deque[_Line]:
    """Return each record with whether its contents are text. Runs on a thread."""
    lines: deque[_Line] = deque()
    for each in found:
        contents = (each.key, each.value, *(value for _, value in each.headers))
        lines.append(_Line(each, tuple(_is_text(content, pace) for content in contents)))
    return lines


def _is_text(content: Content | None, pace: ThreadPace) -> bool:
    """Return whether bytes are UTF-8, without a full copy as text."""
    pace.step()
    if content is None or len(content.data) <= _TEXT_BYTES:
        try:
            return content is None or bool(content.data.decode() or True)
        except UnicodeDecodeError:
            return False
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in _cut(content.data, _TEXT_BYTES):
            pace.rest()
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _body(topic: str, lines: deque[_Line]) -> Iterator[bytes]:
    """Yield lines in pieces; free each record after its line."""
    parts: list[bytes] = []
    size = 0
    while lines:
        for part in _line(topic, lines.popleft()):
            parts.append(part)
            size += len(part)
            if size >= _SENT_BYTES:
                yield b"".join(parts)
                parts, size = [], 0
    yield b"".join(parts)


def _line(topic: str, line: _Line) -> Iterator[bytes]:
    """Yield one line in pieces, with the blanks that ``json.dumps`` writes."""
    record, (key_is_text, value_is_text, *are_texts) = line
    place = {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
    }
    yield _dumped(place)[:-1] + b', "key": '
    yield from _whole(record.key, is_text=key_is_text)
    yield b', "value": '
    yield from _whole(record.value, is_text=value_is_text)
    yield b', "headers": ['
    before = b""
    for (name, value), is_text in zip(record.headers, are_texts, strict=True):
        yield before + b'{"key": '
        yield from _text(name.encode(errors="replace"))
        yield b', "value": '
        yield from _whole(value, is_text=is_text)
        yield b"}"
        before = b", "
    yield b"]}\n"


def _whole(content: Content | None, *, is_text: bool) -> Iterator[bytes]:
    """Yield bytes as text, or as ``{"base64": ...}`` if they are not UTF-8."""
    if content is None:
        yield b"null"
    elif is_text:
        yield from _text(content.data)
    else:
        yield b'{"base64": "'
        for piece in _cut(content.data, _BASE64_BYTES):
            yield base64.b64encode(piece)
        yield b'"}'


def _text(data: bytes) -> Iterator[bytes]:
    if len(data) <= _TEXT_BYTES:
        yield _dumped(data.decode())
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    yield b'"'
    for piece in _cut(data, _TEXT_BYTES):
        yield _dumped(decoder.decode(piece))[1:-1]
    yield b'"'


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _cut(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
