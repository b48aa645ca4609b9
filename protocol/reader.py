"""Reading messages field by field, for generated codecs.

The reader knows the version's encoding: in a flexible version lengths are compact and structures
end with tagged fields (KIP-482).
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final, TypeVar

from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    FEW_ELEMENTS,
    check_count,
    check_elements,
    read_tag,
    read_varint,
    tag_count,
    wrong_tag_size,
)

T = TypeVar("T")

_BYTE: Final = Struct(">b").unpack_from
_SHORT: Final = Struct(">h").unpack_from
_UNSIGNED_SHORT: Final = Struct(">H").unpack_from
_INT: Final = Struct(">i").unpack_from
_LONG: Final = Struct(">q").unpack_from
_DOUBLE: Final = Struct(">d").unpack_from


class Reader:
    """Reads the fields of one message from ``view``.

    A ``bounded`` reader counts the elements of arrays inside arrays and refuses too many of them:
    a request of the usual maximum size could otherwise hold tens of millions of tiny elements.
    """

    __slots__ = ("_bounded", "_depth", "_elements", "_flexible", "position", "view")

    def __init__(self, view: memoryview, position: int, *, flexible: bool, bounded: bool) -> None:
        self.view = view
        self.position = position
        self._flexible = flexible
        self._bounded = bounded
        self._elements = 0
        self._depth = 0
        """Number of arrays and tagged fields around the position."""

    # -- values of a fixed size --------------------------------------------------------------------

    def boolean(self) -> bool:
        """Read a boolean."""
        value = self.view[self.position]
        self.position += 1
        return value != 0

    def int8(self) -> int:
        """Read a signed integer of 8 bits."""
        value: int = _BYTE(self.view, self.position)[0]
        self.position += 1
        return value

    def int16(self) -> int:
        """Read a signed integer of 16 bits."""
        value: int = _SHORT(self.view, self.position)[0]
        self.position += 2
        return value

    def uint16(self) -> int:
        """Read an unsigned integer of 16 bits."""
        value: int = _UNSIGNED_SHORT(self.view, self.position)[0]
        self.position += 2
        return value

    def int32(self) -> int:
        """Read a signed integer of 32 bits."""
        value: int = _INT(self.view, self.position)[0]
        self.position += 4
        return value

    def int64(self) -> int:
        """Read a signed integer of 64 bits."""
        value: int = _LONG(self.view, self.position)[0]
        self.position += 8
        return value

    def float64(self) -> float:
        """Read a floating-point number of 64 bits."""
        value: float = _DOUBLE(self.view, self.position)[0]
        self.position += 8
        return value

    def uuid(self) -> bytes:
        """Read an id of 16 bytes."""
        return self._slice(16).tobytes()

    # -- strings and bytes -------------------------------------------------------------------------

    def string(self) -> str:
        """Read a string that may not be null."""
        return self._slice(self._size(2)).tobytes().decode()

    def optional_string(self) -> str | None:
        """Read a string or null."""
        size = self._size_or_null(2)
        return None if size < 0 else self._slice(size).tobytes().decode()

    def blob(self) -> bytes:
        """Read bytes that may not be null."""
        return self._slice(self._size(4)).tobytes()

    def optional_blob(self) -> bytes | None:
        """Read bytes or null."""
        size = self._size_or_null(4)
        return None if size < 0 else self._slice(size).tobytes()

    def records(self) -> memoryview:
        """Read record batches, as a view of the frame."""
        return self._slice(self._size(4))

    def optional_records(self) -> memoryview | None:
        """Read record batches, as a view of the frame, or null."""
        size = self._size_or_null(4)
        return None if size < 0 else self._slice(size)

    # -- arrays ------------------------------------------------------------------------------------

    def values(self, read: Callable[[], T], least_bytes: int) -> list[T]:
        """Read an array of values that have ``least_bytes`` bytes or more."""
        return [read() for _ in range(self._count(least_bytes))]

    def optional_values(self, read: Callable[[], T], least_bytes: int) -> list[T] | None:
        """Read an array of values, or null."""
        count = self._count_or_null(least_bytes)
        return None if count < 0 else [read() for _ in range(count)]

    def array(self, read: Callable[[Reader, int], T], version: int, least_bytes: int) -> list[T]:
        """Read an array of structures."""
        return self._structures(read, version, self._count(least_bytes))

    def optional_array(
        self, read: Callable[[Reader, int], T], version: int, least_bytes: int
    ) -> list[T] | None:
        """Read an array of structures, or null."""
        count = self._count_or_null(least_bytes)
        return None if count < 0 else self._structures(read, version, count)

    def _structures(self, read: Callable[[Reader, int], T], version: int, count: int) -> list[T]:
        self._depth += 1
        items = [read(self, version) for _ in range(count)]
        self._depth -= 1
        return items

    # -- structures and tagged fields --------------------------------------------------------------

    def optional(self, read: Callable[[Reader, int], T], version: int) -> T | None:
        """Read a structure, or null: -1 in the byte before it."""
        return read(self, version) if self.int8() >= 0 else None

    def optional_tagged(self, read: Callable[[Reader, int], T], version: int) -> T | None:
        """Read a structure in a tagged field, or null: 0 in the byte before it."""
        return read(self, version) if self.boolean() else None

    def skip_tags(self) -> None:
        """Skip tagged fields, of which none is known."""
        for _ in range(self.tags()):
            _, _, self.position = read_tag(self.view, self.position)

    def tags(self) -> int:
        """Read the number of tagged fields: 0 in a version that has none."""
        if not self._flexible:
            return 0
        low = self.view[self.position]
        self.position += 1
        if low == 0:
            return 0
        count, self.position = tag_count(self.view, self.position, low)
        if self._bounded and self._depth:
            self._add(count)
        return count

    def tag(self) -> tuple[int, int]:
        """Read the head of a tagged field; return its tag, and where the field ends."""
        tag, self.position, end = read_tag(self.view, self.position)
        self._depth += 1
        return tag, end

    def end_tag(self, tag: int, end: int) -> None:
        """Refuse a known tagged field that is longer or shorter than its size."""
        if self.position != end:
            raise wrong_tag_size(tag)
        self._depth -= 1

    # -- lengths -----------------------------------------------------------------------------------

    def _slice(self, size: int) -> memoryview:
        position = self.position
        self.position = position + size
        return self.view[position : position + size]

    def _size(self, classic_bytes: int) -> int:
        size = self._size_or_null(classic_bytes)
        if size < 0:
            raise Malformed("null where the protocol allows none")
        return size

    def _size_or_null(self, classic_bytes: int) -> int:
        """Return the length of the next value, or -1 for null; classic ones have 2 or 4 bytes."""
        if self._flexible:
            size, self.position = read_varint(self.view, self.position)
            return size - 1
        size = self.int16() if classic_bytes == 2 else self.int32()
        if size < -1:
            raise Malformed(f"negative length {size}")
        return size

    def _count(self, least_bytes: int) -> int:
        count = self._count_or_null(least_bytes)
        if count < 0:
            raise Malformed("null instead of an array")
        return count

    def _count_or_null(self, least_bytes: int) -> int:
        if self._flexible:
            count, self.position = read_varint(self.view, self.position)
            count -= 1
        else:
            count = self.int32()
        if count == -1:
            return count
        if not 0 <= count < 0x80:
            check_count(self.view, self.position, count, least_bytes)
        if self._bounded and self._depth:
            self._add(count)
        return count

    def _add(self, elements: int) -> None:
        self._elements += elements
        if self._elements > FEW_ELEMENTS:
            check_elements(self._elements)
