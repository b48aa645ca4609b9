"""Reader of DER (X.690), for the types that certificates use."""

from __future__ import annotations

from typing import Final, NamedTuple

BOOLEAN: Final = 0x01
INTEGER: Final = 0x02
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
UTC_TIME: Final = 0x17
GENERALIZED_TIME: Final = 0x18
SEQUENCE: Final = 0x30
SET: Final = 0x31

_LENGTH_OCTETS_MAX: Final = 4


class MalformedDer(Exception):
    """Invalid DER."""


class Element(NamedTuple):
    """Value: its tag, its content, and the encoding of both with the length."""

    tag: int
    content: bytes
    encoded: bytes


class DerReader:
    """Reader of consecutive values; raises MalformedDer."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    @property
    def at_end(self) -> bool:
        """Whether everything has been read."""
        return self._position == len(self._data)

    @property
    def tag(self) -> int:
        """Return the tag of the next value, or -1 at the end."""
        return -1 if self.at_end else self._data[self._position]

    def next(self, tag: int | None = None) -> Element:
        """Return the next value, which must have ``tag`` if one is given."""
        data, begin = self._data, self._position
        if len(data) - begin < 2:
            raise MalformedDer(f"the value at byte {begin} is truncated")
        found, length = data[begin], data[begin + 1]
        start = begin + 2
        if tag is not None and found != tag:
            raise MalformedDer(f"tag {found:#x} in place of {tag:#x}")
        if length >= 0x80:
            octets = length & 0x7F
            if not 1 <= octets <= _LENGTH_OCTETS_MAX:
                raise MalformedDer("a length that DER does not have")
            length = int.from_bytes(data[start : start + octets], "big")
            start += octets
        end = start + length
        if end > len(data):
            raise MalformedDer(f"the value at byte {begin} is truncated")
        self._position = end
        return Element(found, data[start:end], data[begin:end])

    def enter(self, tag: int = SEQUENCE) -> DerReader:
        """Return a reader of the content of the next value."""
        return DerReader(self.next(tag).content)

    def skip(self, tag: int) -> None:
        """Skip the next value if it has this tag."""
        if self.tag == tag:
            self.next()


def object_identifier(content: bytes) -> str:
    """Return an object identifier in dots; raises MalformedDer."""
    if not content or content[-1] & 0x80:
        raise MalformedDer("an object identifier without an end")
    arcs = []
    arc = 0
    for octet in content:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
    root = min(arcs[0] // 40, 2)
    return ".".join(map(str, (root, arcs[0] - 40 * root, *arcs[1:])))
