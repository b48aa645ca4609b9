"""Examination of partitions in one order by time, within the limits of one request.

Each partition keeps its own order, by offsets: if timestamps decrease, a record counts as no
younger (or older) than those before it. The youngest possible time of an unread partition is known,
so of many partitions only the relevant ones are read.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.records.examining import (
    EXPANDED_BYTES_MAX,
    NO_TIME,
    FoundRecord,
    Wanted,
    examine,
)
from barnabas.broker.console.records.pieces import PIECE_BYTES
from barnabas.broker.console.records.ranges import FOR_EVER_MS, NEWEST, Range, cursor_of
from barnabas.broker.console.records.shapes import PartitionScan, Scanned, UnreadRange
from barnabas.storage.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.console.records.filters import Filter
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.console.records.pieces import RecordReaders
    from barnabas.broker.metadata.topic import Partition
    from barnabas.broker.runtime.clock import Clock
    from barnabas.storage.log.partition_log import PartitionLog

ROWS_MOST: Final = 500
BYTES_MOST: Final = 64 * 1024 * 1024
SECONDS_MOST: Final = 10.0
"""Maximum duration of one request; then the response has a cursor."""
KEPT_MOST_BYTES: Final = 32 * 1024 * 1024
"""Bytes of kept records up to which one request examines more."""
UNREAD_SHOWN: Final = 20
SMALL_PIECE_BYTES: Final = 16 * 1024
_ROWS_KEPT: Final = 2000
"""Rows that wait for their turn, of all partitions together, about."""


@dataclass(frozen=True, slots=True)
class Terms:
    """Conditions of a request for all of its partitions."""

    order: str
    limit: int
    all_states: bool
    filter: Filter
    since_ms: int
    until_ms: int
    kept_bytes: int


class _Entry(NamedTuple):
    """A record that waits for its turn, or (None) the rest of a partition, with the first key that
    it can have.
    """

    key: int
    is_rest: bool
    partition: int
    number: int
    record: FoundRecord | None


@dataclass(slots=True)
class _Part:
    """One partition on its way."""

    partition: Partition
    low: int
    high: int
    """End of the unread range, which is empty if it equals ``low``."""
    first_low: int
    first_high: int
    key: int
    """Earliest place of its next records in the order."""
    piece_bytes: int
    waiting: deque[int] = field(default_factory=deque)
    """Offsets of the records that were found and not handed out."""


class Scan:
    """One walk through ranges of partitions."""

    def __init__(
        self,
        readers: RecordReaders,
        pace: ThreadPace,
        parts: Mapping[int, Partition],
        ranges: Sequence[Range],
        terms: Terms,
        hold: Callable[[int], None],
        clock: Clock,
    ) -> None:
        """``hold`` counts bytes that are kept until the request ends."""
        self._readers = readers
        self._hold = hold
        self._kept_bytes = 0
        self._pace = pace
        self._terms = terms
        self._newest_first = terms.order == NEWEST
        self._heap: list[_Entry] = []
        self._number = 0
        self._records = self._bytes = self._undecided = self._given = 0
        self._unread: list[UnreadRange] = []
        self._stopped_by = "end"
        self._clock = clock
        self._begun = clock.monotonic()
        ranges = [each for each in ranges if each.partition in parts]
        many = len(ranges) > 4
        self._rows = max(16, _ROWS_KEPT // max(1, len(ranges)))
        self._parts: dict[int, _Part] = {}
        for each in ranges:
            found = parts[each.partition]
            key = -_youngest_ms(found.log_here()) if self._newest_first else -FOR_EVER_MS
            part = _Part(
                found,
                each.low,
                each.high,
                each.low,
                each.high,
                key,
                SMALL_PIECE_BYTES if many else PIECE_BYTES,
            )
            self._parts[each.partition] = part
            if part.low < part.high:
                self._push(part, None)

    def _push(self, part: _Part, record: FoundRecord | None) -> None:
        self._number += 1
        index = part.partition.index
        heapq.heappush(self._heap, _Entry(part.key, record is None, index, self._number, record))

    async def records(self) -> AsyncIterator[FoundRecord | None]:
        """Yield records in order, to the end or a limit, and None after each piece."""
        while self._heap:
            if self._given >= self._terms.limit:
                self._stopped_by = "records"
                return
            entry = self._heap[0]
            if entry.record is None and self._has_had_enough():
                return
            heapq.heappop(self._heap)
            part = self._parts[entry.partition]
            if entry.record is not None:
                part.waiting.popleft()
                self._given += 1
                yield entry.record
            else:
                await self._examine(part)
                yield None

    def _has_had_enough(self) -> bool:
        if self._bytes >= BYTES_MOST or self._kept_bytes >= KEPT_MOST_BYTES:
            self._stopped_by = "bytes"
        elif self._clock.monotonic() - self._begun >= SECONDS_MOST:
            self._stopped_by = "time"
        else:
            return False
        return True

    async def _examine(self, part: _Part) -> None:
        """Examine the next piece of a partition."""
        terms, log, pace = self._terms, part.partition.log_here(), self._pace
        size = part.piece_bytes
        part.piece_bytes = min(PIECE_BYTES, 2 * size)
        if self._newest_first:
            piece = await self._readers.before(log, part.high, size, pace)
        else:
            piece = await self._readers.after(log, part.low, part.high, size, pace)
        wanted = Wanted(
            part.partition.index,
            part.low,
            part.high,
            terms.since_ms,
            terms.until_ms,
            terms.all_states,
            terms.filter,
            min(self._rows, terms.limit),
            terms.kept_bytes,
            self._newest_first,
        )
        found = await self._readers.expand(
            piece.batches, partial(examine, piece, wanted, pace), EXPANDED_BYTES_MAX
        )
        self._kept_bytes += found.kept_bytes
        self._hold(found.kept_bytes)
        self._records += found.records
        self._bytes += found.bytes
        self._undecided += found.undecided
        room = UNREAD_SHOWN - len(self._unread)
        index = part.partition.index
        self._unread += [UnreadRange(index, *each) for each in found.unread[:room]]
        for row in found.rows:
            part.key = max(part.key, self._key(row.timestamp_ms))
            part.waiting.append(row.offset)
            self._push(part, row)
        if found.records:
            part.key = max(part.key, self._key(found.last_ms))
        if self._newest_first:
            part.high = max(part.low, min(found.position, part.high - 1))
        else:
            part.low = min(part.high, max(found.position, part.low + 1))
        if part.low < part.high:
            self._push(part, None)

    def _key(self, timestamp_ms: int) -> int:
        return -timestamp_ms if self._newest_first else timestamp_ms

    # ----------------------------------------------------------------------------- what is summary

    def left(self) -> str | None:
        """Return the cursor for the remaining records, or None without any."""
        return cursor_of(self._terms.order, map(self._left_of, self._parts.values()))

    def _left_of(self, part: _Part) -> Range:
        low, high = part.low, part.high
        if part.waiting and self._newest_first:
            high = part.waiting[0] + 1
        elif part.waiting:
            low = part.waiting[0]
        return Range(part.partition.index, low, high)

    def summary(self) -> Scanned:
        """Return counts and ranges of the examined records."""
        took_ms = int((self._clock.monotonic() - self._begun) * 1000)
        parts = []
        for part in self._parts.values():
            log = part.partition.log_here()
            index, low, high = self._left_of(part)
            looked = (high, part.first_high) if self._newest_first else (part.first_low, low)
            stable, end = log.last_stable_offset, log.high_watermark
            parts.append(PartitionScan(index, log.log_start_offset, stable, end, *looked))
        return Scanned(
            self._records,
            self._bytes,
            took_ms,
            self._stopped_by,
            self._undecided,
            tuple(parts),
            tuple(self._unread),
        )


def _youngest_ms(log: PartitionLog) -> int:
    """Return an upper limit of the timestamps of a log's last records."""
    for segment in reversed(log.segments):
        if segment.size_bytes:
            try:
                return segment.max_timestamp_ms
            except (StorageError, OSError):
                return FOR_EVER_MS  # Its index cannot be read: its turn comes first.
    return NO_TIME
