"""Keys and values as text: in a format guessed from some of them, or in the requested one.

A value that does not fit is shown in hexadecimal, with the reason.
"""

from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final
from uuid import UUID

from barnabas.broker.console.records.json_layout import NotJson, lay_out
from barnabas.broker.console.records.shapes import Shown
from barnabas.protocol.internal_records import decode_internal

if TYPE_CHECKING:
    from barnabas.broker.console.records.examining import Content
    from barnabas.broker.console.records.pace import ThreadPace

AUTO: Final = "auto"
HEX: Final = "hex"
TEXT: Final = "text"
JSON: Final = "json"
MARKER_FORMAT: Final = "marker"
INTERNAL: Final[Mapping[str, str]] = {
    "consumer_offsets": "__consumer_offsets",
    "transaction_state": "__transaction_state",
}
"""Formats of the records of internal topics, of which key and value belong together."""
SHOWN_CHARACTERS: Final = 4096
"""Maximum number of characters of a key and of a value in a list."""
KEPT_BYTES: Final = SHOWN_CHARACTERS
KEPT_BYTES_INTERNAL: Final = 256 * 1024
"""Maximum number of bytes kept of internal records, which must be decoded whole."""
GUESSED_FROM: Final = 20
"""Records."""
_INTEGER_SIZES: Final = frozenset((1, 2, 4, 8))
_GUESSED_INTEGER_SIZES: Final = frozenset((4, 8))
_UUID_BYTES: Final = 16
_FRAME_BYTES: Final = 5
_SCHEMA_MOST: Final = 1 << 24
"""A schema registry counts its schemas from 1."""
_CONTROLS: Final = frozenset(map(chr, range(32))) - frozenset("\t\n\r")


class NotShown(Exception):
    """Bytes are not in a format; the message says why."""


Showing = Callable[["Content", int, "ThreadPace"], tuple[str, bool]]
"""Function that returns a text of limited length, and whether it was cut."""


def _text(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:  # noqa: ARG001
    text = _decoded(content)
    return text[:most], content.is_cut or len(text) > most


def _decoded(content: Content) -> str:
    """Return UTF-8 as text, without an incomplete last character."""
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(
            content.data, final=not content.is_cut
        )
    except UnicodeDecodeError as error:
        raise NotShown(f"not UTF-8 at byte {error.start}") from None


def _json(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:
    try:
        return lay_out(_decoded(content), most, pace, is_cut=content.is_cut)
    except NotJson as problem:
        raise NotShown(str(problem)) from None


def _hex(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:  # noqa: ARG001
    shown = content.data[: most // 2]
    return shown.hex(), len(shown) < content.size_bytes


def _base64(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:  # noqa: ARG001
    shown = content.data[: most // 4 * 3]
    return base64.b64encode(shown).decode(), len(shown) < content.size_bytes


def _integer(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:  # noqa: ARG001
    if content.size_bytes not in _INTEGER_SIZES:
        raise NotShown(f"no integer has {content.size_bytes} bytes")
    return str(int.from_bytes(content.data, "big", signed=True)), False


def _uuid(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:  # noqa: ARG001
    if content.size_bytes != _UUID_BYTES:
        raise NotShown(f"a UUID has {_UUID_BYTES} bytes, not {content.size_bytes}")
    return str(UUID(bytes=content.data)), False


def _schema(content: Content, most: int, pace: ThreadPace) -> tuple[str, bool]:  # noqa: ARG001
    number = schema_of(content.data)
    if number is None:
        raise NotShown("no schema id at its beginning")
    return f"schema {number}", True


def schema_of(data: bytes) -> int | None:
    """Return the schema id of a value in a schema registry's framing."""
    if len(data) < _FRAME_BYTES or data[0]:
        return None
    return int.from_bytes(data[1:_FRAME_BYTES], "big")


_SHOWING: Final[Mapping[str, Showing]] = {
    TEXT: _text,
    JSON: _json,
    HEX: _hex,
    "base64": _base64,
    "integer": _integer,
    "uuid": _uuid,
    "schema": _schema,
}
FORMATS: Final = (AUTO, *_SHOWING, *INTERNAL)
"""Formats that a request can choose."""


def show(content: Content | None, name: str, most: int, pace: ThreadPace) -> Shown | None:
    """Return bytes in a format, or in hexadecimal with the reason."""
    if content is None:
        return None
    pace.step()
    problem = None
    try:
        text, is_cut = _SHOWING[name](content, most, pace)
    except NotShown as failed:
        problem, name = str(failed), HEX
        text, is_cut = _hex(content, most, pace)
    return Shown(name, text, content.size_bytes, is_cut, problem)


def show_internal(
    key: Content | None, value: Content | None, name: str, most: int, pace: ThreadPace
) -> tuple[Shown | None, Shown | None]:
    """Return key and value of a record of an internal topic, laid out as JSON."""
    cut = next((each for each in (key, value) if each is not None and each.is_cut), None)
    found = None
    problem = "the record has no key that states the type"
    if cut is not None:
        problem = f"{cut.size_bytes} bytes are too many to be decoded in a list"
    elif key is not None:
        found = decode_internal(INTERNAL[name], key.data, None if value is None else value.data)
        kind = None if found is None else found["kind"]
        if found is None or "key" not in found:
            found, problem = None, str(kind)
    if found is None:
        return _failed(key, most, pace, problem), _failed(value, most, pace, problem)
    shown_key = {"kind": found["kind"], **found["key"]}
    return (
        _laid_out(key, shown_key, name, most, pace),
        None if value is None else _laid_out(value, found["value"], name, most, pace),
    )


def _failed(content: Content | None, most: int, pace: ThreadPace, problem: str) -> Shown | None:
    shown = show(content, HEX, most, pace)
    return (
        None if shown is None else Shown(HEX, shown.text, shown.size_bytes, shown.is_cut, problem)
    )


def _laid_out(
    content: Content | None, found: object, name: str, most: int, pace: ThreadPace
) -> Shown:
    text, is_cut = lay_out(json.dumps(found, ensure_ascii=False), most, pace, is_cut=False)
    return Shown(name, text, 0 if content is None else content.size_bytes, is_cut, None)


# --------------------------------------------------------------------------------------- guessing


def guess(topic: str, samples: Sequence[Content | None], pace: ThreadPace) -> str:
    """Return the format of all samples, else ``text`` if that is most of them, else ``hex``."""
    for name, internal in INTERNAL.items():
        if topic == internal:
            return name
    some = [each for each in samples if each is not None and each.size_bytes]
    if not some:
        return TEXT
    if all(_is_json_like(each, pace) for each in some):
        return JSON
    if all(map(_is_text_like, some)):
        return TEXT
    if all(1 <= (schema_of(each.data) or 0) <= _SCHEMA_MOST for each in some) and any(
        each.size_bytes not in _GUESSED_INTEGER_SIZES for each in some
    ):
        return "schema"
    if all(each.size_bytes in _GUESSED_INTEGER_SIZES for each in some):
        return "integer"
    if all(each.size_bytes == _UUID_BYTES for each in some):
        return "uuid"
    # What is not text among much that is falls to hex by itself.
    return TEXT if 2 * sum(map(_is_text_like, some)) > len(some) else HEX


def _is_json_like(content: Content, pace: ThreadPace) -> bool:
    """Return whether a text is a JSON list or object: a number alone is text."""
    if content.data.lstrip()[:1] not in {b"{", b"["}:
        return False
    try:
        _json(content, SHOWN_CHARACTERS, pace)
    except NotShown:
        return False
    return True


def _is_text_like(content: Content) -> bool:
    try:
        text = _decoded(content)
    except NotShown:
        return False
    return _CONTROLS.isdisjoint(text)
