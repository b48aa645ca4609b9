"""A check that the records of a batch are consistent, piece by piece, without creating records.

Rules of this file:

1. A scan accepts exactly what ``record_decoding.iterate_records`` decodes, where the batch counts
   its offsets as a client has to: from 0 on, without a gap.
2. Its memory is bounded by the pieces that it is fed, regardless of the batch's expanded size. Of a
   record that continues in the next piece at most ``_KEPT_BYTES`` are kept; a larger one is skipped
   field by field.
3. A scan keeps the interpreter during one piece: 10 to 30 ns for each record of it (measured,
   compiled). The caller chooses the pieces.

Positions are 64-bit numbers in the compiled code; nothing here may grow beyond that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.record_decoding import read_varint
from barnabas.protocol.records import BatchHeader, InvalidBatch

if TYPE_CHECKING:
    from mypy_extensions import i64

_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1
_NEAR: Final = 1 << 61
"""Two numbers up to this size have a sum of 64 bits. Compiled code has it as a number of the
machine; larger ones are objects to it, and are read from memory each time."""
_MAX_VARLONG_BYTES: Final = 10
_KEPT_BYTES: Final = 32 * 1024
_LENGTH_BYTES: Final = 5
"""The longest length; the shortest record is longer."""
_HEAD_BYTES: Final = 1 + 10 + 5 + 5
"""The longest run of fields that is read at once: attributes, both deltas, the key's length."""

# Where in a large record the scan is: what is read next.
_HEAD: Final = 0
_VALUE: Final = 1
_HEADER_COUNT: Final = 2
_HEADER_NAME: Final = 3
_HEADER_VALUE: Final = 4
_END: Final = 5


class RecordScan:
    """Feed it the expanded records of a client's batch, then ``finish``.

    Both raise :class:`InvalidBatch` if the records differ from the header. After ``finish`` the
    attributes have the facts that rules of a topic need.
    """

    def __init__(self, header: BatchHeader) -> None:
        """Start before the first record."""
        # Fields by number, and numbers as the machine has them: one is made for every small batch.
        base_timestamp: i64 = header[7]
        self._base_timestamp: i64 = base_timestamp
        self._count: i64 = header[12]
        self._index: i64 = 0
        self._keyless: i64 = 0
        largest = _largest()
        self._smallest_delta: i64 = largest
        self._largest_delta: i64 = -largest
        self._first_after_epoch: i64 = largest
        """The delta from which on a timestamp is not negative."""
        if base_timestamp > -largest:
            self._first_after_epoch = -base_timestamp
        self._oldest_delta: i64 = largest
        self._kept = b""
        self._in_large = False
        self._stage = _HEAD
        self._left = 0
        self._skip = 0
        self._headers_left = 0

    @property
    def keyless(self) -> int:
        """Number of records without a key."""
        return self._keyless

    @property
    def oldest_ms(self) -> int:
        """Smallest timestamp other than -1 (none); 2^63-1 if all are -1."""
        oldest_delta: int = self._oldest_delta
        base_timestamp: int = self._base_timestamp
        smallest_delta: int = self._smallest_delta
        if base_timestamp + smallest_delta < -1:
            return base_timestamp + smallest_delta
        return _INT64_MAX if oldest_delta == _INT64_MAX else base_timestamp + oldest_delta

    @property
    def newest_ms(self) -> int:
        """Largest timestamp; -1 if all are negative, as in Kafka's validator."""
        largest_delta: int = self._largest_delta
        base_timestamp: int = self._base_timestamp
        return max(base_timestamp + largest_delta, -1)

    def feed(self, piece: bytes, start: int = 0) -> None:
        """Check the next bytes, from ``start`` of ``piece`` on."""
        data, position = piece, start
        if self._kept:
            data, position, self._kept = self._kept + piece[start:], 0, b""
        try:
            while True:
                if self._in_large:
                    position = self._walk_large(data, position)
                    if self._in_large:
                        break
                position = self._scan(data, position)
                if not self._in_large:
                    break
        except IndexError as error:
            raise InvalidBatch("a record runs past the end of its batch") from error
        if position < len(data):
            if self._index == self._count:
                raise InvalidBatch(f"{len(data) - position} bytes after the last record")
            self._kept = data[position:]

    def finish(self) -> None:
        """Check that the records end here."""
        if self._kept or self._in_large:
            raise InvalidBatch("a record runs past the end of its batch")
        if self._index < self._count:
            raise InvalidBatch(f"{self._index} records where {self._count} are announced")
        base: i64 = self._base_timestamp
        if -_NEAR < base < _NEAR and self._smallest_delta > -_NEAR and self._largest_delta < _NEAR:
            return
        # Neither side of these overflows, as one of the two is not negative.
        if self._smallest_delta < _INT64_MIN - min(base, 0) or (
            self._largest_delta > _INT64_MAX - max(base, 0)
        ):
            raise InvalidBatch("a timestamp is too far from the others")

    def _scan(self, data: bytes, start: i64) -> int:
        """Check whole records; returns the position of the first incomplete one.

        If that is a large one (``_in_large``), the position is after its length; otherwise it is
        kept.
        """
        position: i64 = start
        size: i64 = len(data)
        index: i64 = self._index
        count: i64 = self._count
        keyless: i64 = 0
        first_after_epoch: i64 = self._first_after_epoch
        oldest: i64 = self._oldest_delta
        smallest: i64 = self._smallest_delta
        largest: i64 = self._largest_delta
        number: i64 = 0
        while index < count and size - position >= _LENGTH_BYTES:
            begun = position
            number, position = data[position], position + 1
            if number >= 0x80:
                following: i64 = data[position]
                if following < 0x80:
                    number, position = number + ((following - 1) << 7), position + 1
                else:
                    number, position = _long_number(data, position - 1)
            if number & 1:
                raise InvalidBatch("a record of negative length")
            end: i64 = position + (number >> 1)
            if end > size:
                if end - position > _KEPT_BYTES:
                    self._begin_large(end - position)
                else:
                    position = begun
                break
            number, position = data[position + 1], position + 2
            if number >= 0x80:
                delta, position = _long_delta(data, position - 1)
            else:
                delta = (number >> 1) ^ -(number & 1)
            smallest = min(smallest, delta)
            largest = max(largest, delta)
            if first_after_epoch <= delta < oldest:
                oldest = delta
            number, position = data[position], position + 1
            if number >= 0x80:
                following = data[position]
                if following < 0x80:
                    number, position = number + ((following - 1) << 7), position + 1
                else:
                    number, position = _long_number(data, position - 1)
            if number != index << 1:
                raise InvalidBatch(f"record {index} has another offset delta")
            number, position = data[position], position + 1
            if number >= 0x80:
                number, position = _long_number(data, position - 1)
            if number & 1 == 0:
                position += number >> 1
            elif number == 1:
                keyless += 1
            else:
                raise InvalidBatch("a key of negative length")
            if position >= end:
                raise InvalidBatch("a key runs past the end of its record")
            position = _after_value(data, position, end)
            if data[position] == 0:
                position += 1
            else:
                position = _after_headers(data, position, end)
            if position != end:
                raise InvalidBatch("a record has another length than its fields")
            index += 1
        self._index = index
        self._keyless += keyless
        self._oldest_delta = oldest
        self._smallest_delta, self._largest_delta = smallest, largest
        return position

    def _begin_large(self, length: int) -> None:
        self._in_large = True
        self._stage = _HEAD
        self._left = length
        self._skip = 0

    def _walk_large(self, data: bytes, start: int) -> int:
        """Continue through a large record; returns the position where the next piece continues."""
        position = start
        size = len(data)
        while True:
            step = min(self._skip, size - position)
            position += step
            self._skip -= step
            self._left -= step
            if self._skip:
                return position
            if self._stage == _END:
                if self._left:
                    raise InvalidBatch("a record has another length than its fields")
                self._in_large = False
                self._index += 1
                return position
            if size - position < min(self._left, _HEAD_BYTES):
                return position
            before = position
            position = self._read_field(data, position)
            self._left -= position - before
            if self._skip > self._left or self._left < 0:
                raise InvalidBatch("a key, value or header runs past the end of its record")

    def _read_field(self, data: bytes, start: int) -> int:
        """Read the fields before the next bytes to skip; returns the position of those."""
        position = start
        stage = self._stage
        if stage == _HEAD:
            delta, position = read_varint(data, position + 1, _MAX_VARLONG_BYTES)
            self._note_timestamp(delta)
            offset_delta, position = read_varint(data, position)
            if offset_delta != self._index:
                raise InvalidBatch(f"record {self._index} has another offset delta")
        number, position = read_varint(data, position)
        if stage == _HEADER_COUNT:
            if not 0 <= number <= self._left - (position - start):
                raise InvalidBatch(f"{number} headers in one record")
            self._headers_left = number
            self._stage = _HEADER_NAME if number else _END
            return position
        if number < -1 or (number == -1 and stage == _HEADER_NAME):
            raise InvalidBatch(f"length {number} of a key, value or header")
        if stage == _HEAD and number < 0:
            self._keyless += 1
        self._skip = max(number, 0)
        if stage == _HEADER_VALUE:
            self._headers_left -= 1
            self._stage = _HEADER_NAME if self._headers_left else _END
        else:
            self._stage = stage + 1
        return position

    def _note_timestamp(self, delta: int) -> None:
        self._smallest_delta = min(self._smallest_delta, delta)
        self._largest_delta = max(self._largest_delta, delta)
        if delta >= self._first_after_epoch:
            self._oldest_delta = min(self._oldest_delta, delta)


def _largest() -> i64:
    """Return 2^63-1, computed from small numbers for compiled code."""
    quarter: i64 = _NEAR
    return quarter - 1 + quarter + quarter + quarter


def _after_value(data: bytes, start: i64, end: i64) -> i64:
    """Return the position after a value and its length; the length of null is -1."""
    position: i64 = start
    number: i64 = data[position]
    position += 1
    if number >= 0x80:
        following: i64 = data[position]
        if following < 0x80:
            number += (following - 1) << 7
            position += 1
        else:
            number, position = _long_number(data, start)
    if number & 1 == 0:
        position += number >> 1
    elif number != 1:
        raise InvalidBatch("a value of negative length")
    if position > end:
        raise InvalidBatch("a value runs past the end of its record")
    return position


def _after_headers(data: bytes, start: i64, end: i64) -> i64:
    """Return the position after a record's headers, of which there is at least one."""
    count, position = _long_number(data, start)
    if count & 1 or count >> 1 > end - position:
        raise InvalidBatch("an impossible number of headers in one record")
    left: i64 = count >> 1
    while left:
        left -= 1
        number, position = _long_number(data, position)
        if number & 1:
            raise InvalidBatch("a header without a name")
        position += number >> 1
        if position >= end:
            raise InvalidBatch("a header runs past the end of its record")
        position = _after_value(data, position, end)
    return position


def _long_number(data: bytes, start: i64) -> tuple[i64, i64]:
    """Return a variable-length number of up to five bytes, still zig-zag, and its end."""
    position: i64 = start
    result: i64 = 0
    shift: i64 = 0
    while shift < 35:
        byte: i64 = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, position
        shift += 7
    raise InvalidBatch("a variable-length number is too long")


def _long_delta(data: bytes, start: i64) -> tuple[i64, i64]:
    """Return a timestamp's delta of up to ten bytes, and its end."""
    position: i64 = start
    result: i64 = 0
    shift: i64 = 0
    while shift < 63:
        byte: i64 = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), position
        shift += 7
    return read_varint(data, start, _MAX_VARLONG_BYTES)
