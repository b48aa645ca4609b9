"""Functions of the generated codecs for the uncommon cases: long lengths, tags, nulls, limits.

The generated code handles the common case inline (one length byte below 0x80) and comes here for
the rest, so every function below is off the hot path. Reading past the end of a memoryview raises
IndexError or truncates a slice; both end as Malformed in ``api.py`` (a truncated slice leaves the
position beyond the frame).
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, ClassVar

from barnabas.protocol.errors import Malformed, TooManyElements

Chunks = list[bytes | bytearray | memoryview]

MAX_ELEMENTS = 1_000_000
MAX_TAGGED_FIELDS = 10_000
# What one array of a message may have, and all arrays inside arrays together, tagged fields inside
# arrays included. Code that decodes what clients sent may set less for its context.
elements_most: ContextVar[int] = ContextVar("elements_most", default=MAX_ELEMENTS)
# This number is within any limit, and is not checked.
FEW_ELEMENTS = 10_000
# An unsigned varint on the wire is a Java int: five bytes of seven bits, never negative.
MAX_VARINT = 0x7FFF_FFFF
ZERO_UUID = bytes(16)
# The default of a parameter whose real default is a new list or structure.
ABSENT: Any = object()


class Structure:
    """Base of all generated dataclasses, so that importing them builds no methods by exec."""

    __slots__: tuple[str, ...] = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]  # mutable, like any dataclass with eq

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


def varint_tail(view: memoryview, position: int, low: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first byte ``low`` is read; return value and new position."""
    value = low & 0x7F
    for shift in (7, 14, 21, 28):
        byte = view[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value > MAX_VARINT:
                break
            return value, position
    raise Malformed("a varint has more than 32 bits")


def varint_end(view: memoryview, position: int, low: int) -> tuple[int, int]:
    """Finish an unsigned varint whose first three bytes, all of them continued, add up to ``low``.

    ``low`` still has the continuation bit of the third byte in it.
    """
    low -= 1 << 21
    for shift in (21, 28):
        byte = view[position]
        position += 1
        low |= (byte & 0x7F) << shift
        if byte < 0x80:
            if low > MAX_VARINT:
                break
            return low, position
    raise Malformed("a varint has more than 32 bits")


def read_varint(view: memoryview, position: int) -> tuple[int, int]:
    """Read one unsigned varint; return value and new position."""
    low = view[position]
    position += 1
    return (low, position) if low < 0x80 else varint_tail(view, position, low)


def long_size(view: memoryview, position: int, low: int) -> tuple[int, int]:
    """Finish a compact length that must not be null; ``low`` is 0 or its first byte."""
    if low == 0:
        raise Malformed("null where the protocol allows none")
    return varint_tail(view, position, low)


def long_count(view: memoryview, position: int, low: int, element_bytes: int) -> tuple[int, int]:
    """Finish the length plus one of a compact array of elements of at least ``element_bytes``
    bytes.
    """
    if low == 0:
        raise Malformed("null where the protocol allows none")
    size, position = varint_tail(view, position, low)
    check_count(view, position, size - 1, element_bytes)
    return size, position


def check_count(view: memoryview, position: int, count: int, element_bytes: int) -> None:
    """Refuse an array length that is negative, above the limit or more than the frame can hold.

    Generated code calls it for lengths above 127 only: a shorter loop ends at the end of the frame
    by itself, because every element has at least one byte that is read by index.
    """
    if count < 0:
        raise Malformed("negative array length" if count != -1 else "null array")
    if count * element_bytes > len(view) - position:
        raise Malformed(f"array of {count} elements does not fit in the frame")
    if count > FEW_ELEMENTS:
        check_elements(count)


def check_elements(count: int) -> None:
    """Refuse a number of elements above what a message may have here; raises TooManyElements."""
    most = elements_most.get()
    if count > most:
        raise TooManyElements(f"{count} elements in arrays, {most} are allowed")


def tag_count(view: memoryview, position: int, low: int) -> tuple[int, int]:
    """Finish and check the number of tagged fields whose first byte is ``low``."""
    count = low
    if low >= 0x80:
        count, position = varint_tail(view, position, low)
    if count > MAX_TAGGED_FIELDS:
        raise Malformed(f"{count} tagged fields are above the limit of {MAX_TAGGED_FIELDS}")
    return count, position


def add_tags(view: memoryview, position: int, low: int, elements: int) -> int:
    """Add the number of tagged fields whose first byte is ``low`` to the nested elements so far."""
    elements += tag_count(view, position, low)[0]
    if elements > FEW_ELEMENTS:
        check_elements(elements)
    return elements


def read_tag(view: memoryview, position: int) -> tuple[int, int, int]:
    """Read the head of one tagged field; return its tag, its start and its end."""
    tag, position = read_varint(view, position)
    size, position = read_varint(view, position)
    return tag, position, position + size


def skip_tags(view: memoryview, position: int, low: int) -> int:
    """Skip a section of tagged fields none of which is known; return the position after it
    (KIP-482).
    """
    count, position = tag_count(view, position, low)
    for _ in range(count):
        _, _, position = read_tag(view, position)
    return position


def put_varint(out: bytearray, value: int) -> None:
    """Append ``value`` as an unsigned varint."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def put_tag(out: bytearray, tag: int, body: bytearray) -> None:
    """Append one tagged field."""
    put_varint(out, tag)
    put_varint(out, len(body))
    out += body


def wrong_tag_size(tag: int) -> Malformed:
    """Return the error for a known tagged field whose length differs from its size."""
    return Malformed(f"tagged field {tag} has the wrong size")


def null_value(name: str) -> ValueError:
    """Return the error for a message with None in a field that is not nullable in the version being
    encoded.
    """
    return ValueError(f"{name} may not be None in this version")
