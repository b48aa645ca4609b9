"""The three indexes of a segment, in Kafka's file formats; pure data, the segment does the I/O.

Rules of this file:

1. Indexes are caches. An index that cannot be right (:class:`CorruptIndex`) is rebuilt from the log
   and never trusted (D7); a rebuild gives the same bytes (D4).
2. An offset entry points at the batch whose *last* offset it names. It is written before a batch
   that starts more than ``index.interval.bytes`` after the batch of the previous entry; with it
   goes a time entry, if the largest timestamp so far has grown. The first batch needs no entry.
3. Hence the state between two entries needs no counter of its own: the position of the last entry
   says it all, and feeding the batches from there on again changes nothing.
4. A time entry (timestamp, offset) says: no batch up to ``offset`` is younger than ``timestamp``.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.protocol.records import BatchHeader

TIME_ENTRY: Final = struct.Struct(">qi")
TRANSACTION_ENTRY: Final = struct.Struct(">hqqqq")
TRANSACTION_VERSION: Final = 0
NO_TIMESTAMP: Final = -1


class CorruptIndex(Exception):
    """The bytes are no index of this segment; rebuild it from the log."""


class OffsetIndex:
    """``.index``: int32 relative offset, int32 position, both increasing."""

    ENTRY_BYTES: Final = 8

    __slots__ = ("_offsets", "_positions", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._offsets = array("i")
        self._positions = array("i")

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last_offset(self) -> int:
        """Offset of the last entry; the base offset without entries."""
        return self.base_offset + self._offsets[-1] if self._offsets else self.base_offset

    @property
    def last_position(self) -> int:
        """Byte position of the last entry; 0 without entries."""
        return self._positions[-1] if self._positions else 0

    def entries(self) -> Iterator[tuple[int, int]]:
        """Yield every entry, as (its batch's last offset, its position)."""
        for relative, position in zip(self._offsets, self._positions, strict=True):
            yield self.base_offset + relative, position

    def append(self, offset: int, position: int) -> None:
        """Append an entry."""
        relative = offset - self.base_offset
        if self._offsets:
            assert relative > self._offsets[-1], "index entries must have increasing offsets"
            assert position > self._positions[-1], "index entries must have increasing positions"
        self._offsets.append(relative)
        self._positions.append(position)

    def lookup(self, offset: int) -> int:
        """Return the byte position from which to scan for ``offset``."""
        entry = bisect_right(self._offsets, offset - self.base_offset) - 1
        return self._positions[entry] if entry >= 0 else 0

    def entry_at(self, offset: int) -> tuple[int, int]:
        """Return the last entry not after ``offset``, as (its batch's last offset, its position).

        (Base offset, 0) if no entry exists.
        """
        entry = bisect_right(self._offsets, offset - self.base_offset) - 1
        if entry < 0:
            return self.base_offset, 0
        return self.base_offset + self._offsets[entry], self._positions[entry]

    def floor(self, position: int) -> tuple[int, int]:
        """Return the last entry not after ``position``, as (its batch's last offset, its position).

        (Base offset, 0) if no entry exists.
        """
        entry = bisect_right(self._positions, position) - 1
        if entry < 0:
            return self.base_offset, 0
        return self.base_offset + self._offsets[entry], self._positions[entry]

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and after ``offset``."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._offsets[keep:]
        del self._positions[keep:]

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number ``first_entry`` on."""
        entries = array("i", bytes(OffsetIndex.ENTRY_BYTES * (len(self) - first_entry)))
        entries[0::2] = self._offsets[first_entry:]
        entries[1::2] = self._positions[first_entry:]
        _swap_to_big_endian(entries)
        return entries.tobytes()

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "OffsetIndex":
        """Read a whole file; raises :class:`CorruptIndex`."""
        if len(data) % OffsetIndex.ENTRY_BYTES:
            raise CorruptIndex(f"offset index of {len(data)} bytes")
        entries = array("i")
        entries.frombytes(data)
        _swap_to_big_endian(entries)
        index = cls(base_offset)
        index._offsets = entries[0::2]
        index._positions = entries[1::2]
        for name, column in (("offsets", index._offsets), ("positions", index._positions)):
            if not _increases(column):
                raise CorruptIndex(f"offset index whose {name} do not increase")
        return index

    def check(self, end_offset: int, log_bytes: int) -> None:
        """Raise :class:`CorruptIndex` if an entry points past the log it is for."""
        if self.last_position >= max(log_bytes, 1) or self.last_offset >= max(
            end_offset, self.base_offset + 1
        ):
            raise CorruptIndex(f"offset index reaches past the log's end at {end_offset}")


class TimeEntry(NamedTuple):
    """The largest timestamp (ms) up to ``offset``."""

    timestamp: int
    offset: int


class TimeIndex:
    """``.timeindex``: int64 timestamp (increasing), int32 relative offset (not decreasing)."""

    __slots__ = ("_offsets", "_timestamps", "base_offset")

    def __init__(self, base_offset: int) -> None:
        self.base_offset = base_offset
        self._timestamps = array("q")
        self._offsets = array("i")

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> TimeEntry:
        """Last entry; (-1, base offset) without entries."""
        if not self._timestamps:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(self._timestamps[-1], self.base_offset + self._offsets[-1])

    @property
    def last_timestamp(self) -> int:
        """Timestamp of the last entry; -1 without entries."""
        return self._timestamps[-1] if self._timestamps else NO_TIMESTAMP

    def entries(self) -> Iterator[TimeEntry]:
        """Yield every entry."""
        for timestamp, relative in zip(self._timestamps, self._offsets, strict=True):
            yield TimeEntry(timestamp, self.base_offset + relative)

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Add an entry if its timestamp is higher than the last one's."""
        if timestamp <= self.last_timestamp:
            return False
        relative = offset - self.base_offset
        assert not self._offsets or relative >= self._offsets[-1], "time entries must not go back"
        self._timestamps.append(timestamp)
        self._offsets.append(relative)
        return True

    def lookup(self, timestamp: int) -> TimeEntry:
        """Return the last entry with a timestamp up to ``timestamp``, else (-1, base offset)."""
        entry = bisect_right(self._timestamps, timestamp) - 1
        if entry < 0:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(self._timestamps[entry], self.base_offset + self._offsets[entry])

    def entry_before(self, offset: int) -> TimeEntry:
        """The last entry whose offset is not after ``offset``, else (-1, base offset)."""
        entry = bisect_right(self._offsets, offset - self.base_offset) - 1
        if entry < 0:
            return TimeEntry(NO_TIMESTAMP, self.base_offset)
        return TimeEntry(self._timestamps[entry], self.base_offset + self._offsets[entry])

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at and after ``offset``."""
        keep = bisect_left(self._offsets, offset - self.base_offset)
        del self._timestamps[keep:]
        del self._offsets[keep:]

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number ``first_entry`` on."""
        return b"".join(
            map(TIME_ENTRY.pack, self._timestamps[first_entry:], self._offsets[first_entry:])
        )

    @classmethod
    def decode(cls, data: bytes, base_offset: int) -> "TimeIndex":
        """Read a whole file; raises :class:`CorruptIndex`."""
        if len(data) % TIME_ENTRY.size:
            raise CorruptIndex(f"time index of {len(data)} bytes")
        index = cls(base_offset)
        for timestamp, relative in TIME_ENTRY.iter_unpack(data):
            if timestamp <= index.last_timestamp or relative < max(index._offsets[-1:] or (0,)):
                raise CorruptIndex("time index that goes back")
            index._timestamps.append(timestamp)
            index._offsets.append(relative)
        return index

    def check(self, end_offset: int) -> None:
        """Raise :class:`CorruptIndex` if an entry points past the log it is for."""
        if self._offsets and self.last.offset >= end_offset:
            raise CorruptIndex(f"time index reaches past the log's end at {end_offset}")


class AbortedTransaction(NamedTuple):
    """An aborted transaction with data; ``last_offset`` is the offset of its marker.

    ``last_stable_offset`` is the last stable offset of the partition after that marker.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """``.txnindex``: the aborted transactions whose marker lies in this segment, in its order.

    Kept as the file's bytes: a busy partition may abort millions of transactions, all of which are
    in memory, and a checkpoint writes them from the loop.
    """

    __slots__ = ("_data", "_last_offsets")

    def __init__(self) -> None:
        self._data = bytearray()
        self._last_offsets = array("q")

    def __len__(self) -> int:
        return len(self._last_offsets)

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return self._from(0)

    def _from(self, first_entry: int) -> Iterator[AbortedTransaction]:
        size = TRANSACTION_ENTRY.size
        for position in range(first_entry * size, len(self._data), size):
            _, *fields = TRANSACTION_ENTRY.unpack_from(self._data, position)
            yield AbortedTransaction(*fields)

    @property
    def last_offset(self) -> int:
        """Offset of the last marker; -1 without entries."""
        return self._last_offsets[-1] if self._last_offsets else -1

    def append(self, aborted: AbortedTransaction) -> None:
        """Add an entry, whose marker is after all others."""
        assert not self._last_offsets or aborted.last_offset > self._last_offsets[-1], (
            "aborted transactions must come in the order of their markers"
        )
        self._data += TRANSACTION_ENTRY.pack(TRANSACTION_VERSION, *aborted)
        self._last_offsets.append(aborted.last_offset)

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTransaction], bool]:
        """Return the aborted transactions of this segment that affect ``[fetch_offset,
        upper_bound)``.

        The flag is True if no later segment can add to them: an entry's last stable offset reached
        the bound, so everything before the bound was decided by then (L10).
        """
        found: list[AbortedTransaction] = []
        for entry in self.since(fetch_offset):
            if entry.first_offset < upper_bound:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def since(self, offset: int) -> Iterator[AbortedTransaction]:
        """Yield every entry whose marker is at or after ``offset``; there may be millions.

        Entries that are added during the iteration, also by another thread, may be included.
        """
        return self._from(bisect_left(self._last_offsets, offset))

    def truncate_to(self, offset: int) -> None:
        """Drop the entries whose marker lies at or after ``offset``."""
        keep = bisect_left(self._last_offsets, offset)
        del self._data[keep * TRANSACTION_ENTRY.size :]
        del self._last_offsets[keep:]

    def encode(self, first_entry: int = 0) -> bytes:
        """Return the file's bytes from entry number ``first_entry`` on."""
        return bytes(memoryview(self._data)[first_entry * TRANSACTION_ENTRY.size :])

    @classmethod
    def decode(cls, data: bytes, base_offset: int = 0) -> "TransactionIndex":
        """Read the whole file of the segment at ``base_offset``; raises :class:`CorruptIndex`."""
        if len(data) % TRANSACTION_ENTRY.size:
            raise CorruptIndex(f"transaction index of {len(data)} bytes")
        index = cls()
        previous = base_offset - 1
        for version, *fields in TRANSACTION_ENTRY.iter_unpack(data):
            entry = AbortedTransaction(*fields)
            if version != TRANSACTION_VERSION:
                raise CorruptIndex(f"transaction index of version {version}")
            if not previous < entry.last_offset or entry.first_offset > entry.last_offset:
                raise CorruptIndex("transaction index that goes back")
            previous = entry.last_offset
            index.append(entry)
        return index

    def check(self, end_offset: int) -> None:
        """Raise :class:`CorruptIndex` if a marker lies past the log it is for."""
        if self._last_offsets and self._last_offsets[-1] >= end_offset:
            raise CorruptIndex(f"transaction index reaches past the log's end at {end_offset}")


class SegmentIndex:
    """Offset and time index of one segment, fed batch by batch, live and in a rebuild alike."""

    __slots__ = (
        "index_interval_bytes",
        "max_timestamp",
        "offset_of_max_timestamp",
        "offsets",
        "times",
    )

    def __init__(self, base_offset: int, index_interval_bytes: int) -> None:
        self.index_interval_bytes = index_interval_bytes
        self.offsets = OffsetIndex(base_offset)
        self.times = TimeIndex(base_offset)
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = base_offset

    def resume(self, offsets: OffsetIndex, times: TimeIndex) -> None:
        """Continue with indexes read from files.

        Then pass the batches from ``offsets.last_position`` on to :meth:`append`.
        """
        self.offsets = offsets
        self.times = times
        self.max_timestamp, self.offset_of_max_timestamp = times.last

    def resume_from(
        self, files: tuple[bytes, bytes], checksum: int | None, end_offset: int
    ) -> None:
        """Continue with the content of both index files, up to an offset.

        ``checksum`` is that of the content when it was written, or None if it is not known. Raises
        CorruptIndex.
        """
        offset_data, time_data = files
        if checksum not in (None, index_checksum(offset_data, time_data)):
            raise CorruptIndex("the index files have changed since they were written")
        base_offset = self.offsets.base_offset
        self.resume(
            OffsetIndex.decode(offset_data, base_offset), TimeIndex.decode(time_data, base_offset)
        )
        self.truncate_to(end_offset)

    def append(self, last_offset: int, max_timestamp: int, position: int) -> bool:
        """Index the batch at ``position``; return whether it got an offset entry."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.offset_of_max_timestamp = last_offset
        offsets = self.offsets
        if position - offsets.last_position <= self.index_interval_bytes:
            return False
        offsets.append(last_offset, position)
        self.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        return True

    def thinned(self, step_bytes: int) -> "SegmentIndex":
        """Return a sealed index with at most one entry for each ``step_bytes`` of the segment."""
        thin = SegmentIndex(self.offsets.base_offset, step_bytes)
        position = step_bytes
        while position <= self.offsets.last_position:
            offset, found = self.offsets.floor(position)
            if found > thin.offsets.last_position:
                thin.offsets.append(offset, found)
                thin.times.maybe_append(*self.times.entry_before(offset))
            position += step_bytes
        thin.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)
        thin.resume(thin.offsets, thin.times)
        return thin

    def seal(self) -> bool:
        """Add the last time entry of a complete segment."""
        return self.times.maybe_append(self.max_timestamp, self.offset_of_max_timestamp)

    def truncate_to(self, offset: int) -> None:
        """Drop entries for ``offset`` and later; pass batches again, as after :meth:`resume`."""
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.resume(self.offsets, self.times)


def index_checksum(offsets: bytes, times: bytes) -> int:
    """Return the CRC32C of an offset and a time index in the form of their files."""
    return crc32c(times, crc32c(offsets))


def _swap_to_big_endian(entries: "array[int]") -> None:
    if sys.byteorder == "little":
        entries.byteswap()


def _increases(column: "array[int]") -> bool:
    if column and column[0] < 0:
        return False
    return all(map(int.__lt__, column, column[1:]))


def check_last_time(
    index: SegmentIndex,
    scan: Callable[[int], Iterator[tuple[int, BatchHeader, memoryview]]],
    *,
    needs_entry: bool,
) -> None:
    """Raise CorruptIndex unless the last time entry agrees with the batch that it names.

    ``needs_entry``: a sealed segment always has such an entry, unless none of its records has a
    timestamp.
    """
    if not len(index.times):
        if needs_entry:
            raise CorruptIndex("a time index without entries")
        return
    timestamp, offset = index.times.last
    for _, header, _ in scan(index.offsets.lookup(offset)):
        if header.last_offset >= offset:
            if (header.last_offset, header.max_timestamp) == (offset, timestamp):
                return
            break
    raise CorruptIndex("the last time entry is not that of its batch")
