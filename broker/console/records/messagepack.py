"""MessagePack as JSON, token by token: as much of it as is shown, with no value built.

Bytes become ``{"base64": ...}``, extensions ``{"extension": type, "base64": ...}``, times of the
timestamp extension ``{"timestamp": ...}``, keys that are no text a text of their JSON. Integers
are exact. What is nested deeper than DEPTH_MOST is refused.
"""

from __future__ import annotations

import base64
import json
import math
import struct
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.broker.console.records.pace import ThreadPace

DEPTH_MOST: Final = 100
_TIMESTAMP: Final = -1
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SIZED: Final = {
    0xC4: ("bytes", 1),
    0xC5: ("bytes", 2),
    0xC6: ("bytes", 4),
    0xC7: ("extension", 1),
    0xC8: ("extension", 2),
    0xC9: ("extension", 4),
    0xD9: ("text", 1),
    0xDA: ("text", 2),
    0xDB: ("text", 4),
    0xDC: ("list", 2),
    0xDD: ("list", 4),
    0xDE: ("map", 2),
    0xDF: ("map", 4),
}
"""First bytes of what has its size behind them, and in how many bytes."""
_NUMBERS: Final = {
    0xCA: ">f",
    0xCB: ">d",
    0xCC: ">B",
    0xCD: ">H",
    0xCE: ">I",
    0xCF: ">Q",
    0xD0: ">b",
    0xD1: ">h",
    0xD2: ">i",
    0xD3: ">q",
}
_WORDS: Final = {0xC0: "null", 0xC2: "false", 0xC3: "true"}
_FIXED_EXTENSIONS: Final = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


class NotMessagePack(Exception):
    """The bytes are not MessagePack; the message says where."""


class _Ended(Exception):
    """The bytes end within a value."""


class _Head(NamedTuple):
    """What a value begins with."""

    kind: str
    size: int
    """Bytes that follow, or items."""


@dataclass(slots=True)
class _Open:
    """A list or a map that is not over."""

    closing: str
    left: int
    """Values that are missing, of a map keys as well."""
    is_first: bool = True

    @property
    def expects_key(self) -> bool:
        """Whether what follows is the key of a map."""
        return self.closing == "}" and self.left % 2 == 0


class _Reader:
    """One value on its way."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data = data
        self.position = 0
        self.parts: list[str] = []
        self.size = 0
        self.open: list[_Open] = []
        self._most = most

    @property
    def is_full(self) -> bool:
        """Whether enough was read."""
        return self.size > self._most

    def take(self, size: int) -> bytes:
        """Return the next bytes; raises _Ended."""
        end = self.position + size
        if end > len(self.data):
            raise _Ended
        self.position, start = end, self.position
        return self.data[start:end]

    def read(self) -> None:
        """Read a value, or the beginning of a list or a map; raises _Ended, NotMessagePack."""
        start = self.position
        head = self._head()
        place = self.open[-1] if self.open else None
        is_key = place is not None and place.expects_key
        if head.kind in {"list", "map"}:
            if is_key:
                raise NotMessagePack(f"a {head.kind} as a key at byte {start}")
            text = "[" if head.kind == "list" else "{"
        else:
            text = self._scalar(head)
        self._put(self._between(place) + (_as_key(text) if is_key else text))
        if head.kind in {"list", "map"}:
            if len(self.open) >= DEPTH_MOST:
                raise NotMessagePack(f"nested deeper than {DEPTH_MOST} at byte {start}")
            is_map = head.kind == "map"
            self.open.append(_Open("}" if is_map else "]", head.size * (2 if is_map else 1)))
        while self.open and not self.open[-1].left:
            self._put(self.open.pop().closing)

    @staticmethod
    def _between(place: _Open | None) -> str:
        """Return what stands before a value in JSON, and count it."""
        if place is None:
            return ""
        is_value = place.closing == "}" and not place.expects_key
        before = ":" if is_value else "" if place.is_first else ","
        place.is_first = False
        place.left -= 1
        return before

    def _put(self, text: str) -> None:
        self.parts.append(text)
        self.size += len(text)

    def _head(self) -> _Head:
        (first,) = self.take(1)
        if first <= 0x7F or first >= 0xE0:
            return _Head(str(first if first <= 0x7F else first - 0x100), 0)
        if first <= 0xBF:
            kinds = (("map", 0x80, 0x0F), ("list", 0x90, 0x0F), ("text", 0xA0, 0x1F))
            kind, _, mask = kinds[0 if first < 0x90 else 1 if first < 0xA0 else 2]
            return _Head(kind, first & mask)
        if first in _WORDS:
            return _Head(_WORDS[first], 0)
        if first in _NUMBERS:
            form = _NUMBERS[first]
            (number,) = struct.unpack(form, self.take(struct.calcsize(form)))
            is_odd = isinstance(number, float) and not math.isfinite(number)
            return _Head(json.dumps(str(number) if is_odd else number), 0)
        if first in _FIXED_EXTENSIONS:
            return _Head("extension", _FIXED_EXTENSIONS[first])
        if first not in _SIZED:
            raise NotMessagePack(f"nothing begins with {first:#x}, at byte {self.position - 1}")
        kind, width = _SIZED[first]
        return _Head(kind, int.from_bytes(self.take(width), "big"))

    def _scalar(self, head: _Head) -> str:
        match head.kind:
            case "text":
                data = self.take(head.size)
                try:
                    return json.dumps(data.decode(), ensure_ascii=False)
                except UnicodeDecodeError:
                    return _bytes(data)
            case "bytes":
                return _bytes(self.take(head.size))
            case "extension":
                kind = int.from_bytes(self.take(1), "big", signed=True)
                return _extension(kind, self.take(head.size))
            case _:
                return head.kind


def _as_key(text: str) -> str:
    return text if text.startswith('"') else json.dumps(text, ensure_ascii=False)


def _bytes(data: bytes) -> str:
    return json.dumps({"base64": base64.b64encode(data).decode()})


def _extension(kind: int, data: bytes) -> str:
    time = _timestamp(data) if kind == _TIMESTAMP else None
    if time is not None:
        return json.dumps({"timestamp": time})
    return json.dumps({"extension": kind, "base64": base64.b64encode(data).decode()})


def _timestamp(data: bytes) -> str | None:
    """Return a time as text; None of bytes that are none, or beyond the year 9999."""
    match len(data):
        case 4:
            seconds, nanoseconds = int.from_bytes(data, "big"), 0
        case 8:
            number = int.from_bytes(data, "big")
            seconds, nanoseconds = number & (2**34 - 1), number >> 34
        case 12:
            nanoseconds, seconds = struct.unpack(">Iq", data)
        case _:
            return None
    try:
        whole = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return None
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{nanoseconds:09}Z"


def json_of_messagepack(
    data: bytes, most: int, pace: ThreadPace, *, is_cut: bool
) -> tuple[str, bool]:
    """Return bytes as JSON in one line, and whether that is only its beginning.

    It ends soon after ``most`` characters; ``is_cut``: the bytes are only a beginning. Raises
    NotMessagePack.
    """
    reader = _Reader(data, most)
    try:
        reader.read()
        while reader.open and not reader.is_full:
            pace.step()
            reader.read()
    except _Ended:
        if not is_cut:
            raise NotMessagePack(f"it ends in the middle, at byte {len(data)}") from None
        return "".join(reader.parts), True
    if reader.open:
        return "".join(reader.parts), True
    if reader.position < len(data) or is_cut:
        raise NotMessagePack(f"there is more behind it, from byte {reader.position}")
    return "".join(reader.parts), False
