"""Writing messages field by field, for generated codecs: see ``reader.py``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, TypeVar

from barnabas.protocol.wire import Chunks, null_value, put_tag, put_varint

T = TypeVar("T")

_BYTE: Final = Struct(">b").pack
_SHORT: Final = Struct(">h").pack
_UNSIGNED_SHORT: Final = Struct(">H").pack
_INT: Final = Struct(">i").pack
_LONG: Final = Struct(">q").pack
_DOUBLE: Final = Struct(">d").pack


def required(value: T | None, name: str) -> T:
    """Return a value that may be null in other versions only; raises ValueError for None."""
    if value is None:
        raise null_value(name)
    return value


class Writer:
    """Appends the fields of one message to ``out``.

    ``chunks`` are the buffers before ``out``: record batches are passed on by reference.
    """

    __slots__ = ("_flexible", "chunks", "out")

    def __init__(self, out: bytearray, *, flexible: bool) -> None:
        self.out = out
        self.chunks: Chunks = []
        self._flexible = flexible

    # -- values of a fixed size --------------------------------------------------------------------

    def boolean(self, value: bool) -> None:  # noqa: FBT001 - it is the value
        """Write a boolean."""
        self.out.append(1 if value else 0)

    def int8(self, value: int) -> None:
        """Write a signed integer of 8 bits."""
        self.out += _BYTE(value)

    def int16(self, value: int) -> None:
        """Write a signed integer of 16 bits."""
        self.out += _SHORT(value)

    def uint16(self, value: int) -> None:
        """Write an unsigned integer of 16 bits."""
        self.out += _UNSIGNED_SHORT(value)

    def int32(self, value: int) -> None:
        """Write a signed integer of 32 bits."""
        self.out += _INT(value)

    def int64(self, value: int) -> None:
        """Write a signed integer of 64 bits."""
        self.out += _LONG(value)

    def float64(self, value: float) -> None:
        """Write a floating-point number of 64 bits."""
        self.out += _DOUBLE(value)

    def uuid(self, value: bytes) -> None:
        """Write an id of 16 bytes."""
        self.out += value[:16].ljust(16, b"\0")

    # -- strings and bytes -------------------------------------------------------------------------

    def string(self, value: str) -> None:
        """Write a string."""
        data = value.encode()
        self._size(len(data), 2)
        self.out += data

    def optional_string(self, value: str | None) -> None:
        """Write a string or null."""
        if value is None:
            self._size(-1, 2)
        else:
            self.string(value)

    def blob(self, value: bytes) -> None:
        """Write bytes."""
        self._size(len(value), 4)
        self.out += value

    def optional_blob(self, value: bytes | None) -> None:
        """Write bytes or null."""
        if value is None:
            self._size(-1, 4)
        else:
            self.blob(value)

    def records(self, value: memoryview) -> None:
        """Write record batches by reference."""
        self._size(len(value), 4)
        self.chunks += [self.out, value]
        self.out = bytearray()

    def optional_records(self, value: memoryview | None) -> None:
        """Write record batches by reference, or null."""
        if value is None:
            self._size(-1, 4)
        else:
            self.records(value)

    # -- arrays ------------------------------------------------------------------------------------

    def values(self, items: Sequence[T], write: Callable[[T], None]) -> None:
        """Write an array of values."""
        self._size(len(items), 4)
        for item in items:
            write(item)

    def optional_values(self, items: Sequence[T] | None, write: Callable[[T], None]) -> None:
        """Write an array of values, or null."""
        if items is None:
            self._size(-1, 4)
        else:
            self.values(items, write)

    def array(
        self, items: Sequence[T], write: Callable[[Writer, T, int], None], version: int
    ) -> None:
        """Write an array of structures."""
        self._size(len(items), 4)
        for item in items:
            write(self, item, version)

    def optional_array(
        self, items: Sequence[T] | None, write: Callable[[Writer, T, int], None], version: int
    ) -> None:
        """Write an array of structures, or null."""
        if items is None:
            self._size(-1, 4)
        else:
            self.array(items, write, version)

    # -- structures and tagged fields --------------------------------------------------------------

    def optional(
        self, value: T | None, write: Callable[[Writer, T, int], None], version: int
    ) -> None:
        """Write a structure, or null as the byte -1."""
        if value is None:
            self.out.append(0xFF)
        else:
            self.out.append(1)
            write(self, value, version)

    def optional_tagged(
        self, value: T | None, write: Callable[[Writer, T, int], None], version: int
    ) -> None:
        """Write a structure in a tagged field, or null as the byte 0."""
        if value is None:
            self.out.append(0)
        else:
            self.optional(value, write, version)

    def no_tags(self) -> None:
        """Write an empty section of tagged fields, in a version that can have them."""
        if self._flexible:
            self.out.append(0)

    def tags(self, tagged: TaggedFields) -> None:
        """Write tagged fields, in a version that has some."""
        if self._flexible:
            put_varint(self.out, tagged.count)
            self.out += tagged.fields

    def _size(self, size: int, classic_bytes: int) -> None:
        if self._flexible:
            put_varint(self.out, size + 1)
        elif classic_bytes == 2:
            self.int16(size)
        else:
            self.int32(size)


class TaggedFields(Writer):
    """Collects the tagged fields of a structure, one after the other, by tag."""

    __slots__ = ("count", "fields")

    def __init__(self) -> None:
        super().__init__(bytearray(), flexible=True)
        self.count = 0
        self.fields = bytearray()

    def end(self, tag: int) -> None:
        """End a tagged field with the bytes written since the previous one."""
        put_tag(self.fields, tag, self.out)
        self.out = bytearray()
        self.count += 1
