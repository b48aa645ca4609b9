"""Looking at the records of a piece, on a thread: which are wanted, and what of them is kept.

Of each record no more is kept than a list shows. Batches are expanded one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.records.pieces import Unread
from barnabas.broker.console.records.standing import VISIBLE, WAITING, Aborted, Holder
from barnabas.protocol.records import (
    InvalidBatch,
    Record,
    increment_sequence,
    iterate_records,
    read_marker,
)

if TYPE_CHECKING:
    from barnabas.broker.console.records.filters import Filter
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.console.records.pieces import Batch, Piece
    from barnabas.protocol.records import BatchHeader

EXPANDED_BYTES_MAX: Final = 64 * 1024 * 1024
"""What a batch may expand to; another is left out, and that is said."""
HEADERS_KEPT: Final = 16
HEADER_BYTES_KEPT: Final = 512
NO_TIME: Final = -1


class Content(NamedTuple):
    """Bytes of a record, or the first of them."""

    data: bytes
    size_bytes: int

    @property
    def is_cut(self) -> bool:
        """Whether there is more of it."""
        return len(self.data) < self.size_bytes


class FoundRecord(NamedTuple):
    """A record that is wanted."""

    partition: int
    batch: BatchHeader
    offset: int
    timestamp_ms: int
    key: Content | None
    value: Content | None
    headers: tuple[tuple[str, Content | None], ...]
    header_count: int
    size_bytes: int
    state: str
    holder: Holder | None
    """Of one that waits."""

    @property
    def sequence(self) -> int:
        """The producer's number of the record; -1 without one."""
        base = self.batch.base_sequence
        if base < 0:
            return base
        return increment_sequence(base, self.offset - self.batch.base_offset)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which records of one partition are wanted."""

    partition: int
    low: int
    high: int
    """Offsets from the one up to the other."""
    since_ms: int
    until_ms: int
    """Times from the one up to the other."""
    all_states: bool
    filter: Filter
    rows: int
    """How many at most; then the rest of the piece is left for later."""
    kept_bytes: int
    """Of a key and of a value."""
    newest_first: bool


@dataclass(slots=True)
class Examined:
    """What was found in a piece."""

    position: int
    """Where to go on: the offset behind what was looked at, or that of the last that was looked at
    where the newest come first."""
    rows: list[FoundRecord] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    undecided: int = 0
    last_ms: int = NO_TIME
    """The time of the record that was looked at last."""
    unread: list[Unread] = field(default_factory=list)


def examine(piece: Piece, wanted: Wanted, pace: ThreadPace) -> Examined:
    """Find the wanted records of a piece, in the order that is wanted."""
    newest_first = wanted.newest_first
    whole = max(wanted.low, piece.from_offset) if newest_first else piece.until_offset
    found = Examined(whole, bytes=piece.size_bytes, unread=list(piece.unread))
    aborted = piece.standing.aborted(piece.from_offset, piece.until_offset, pace)
    batches = reversed(piece.batches) if newest_first else iter(piece.batches)
    for batch in batches:
        if not _examine_batch(piece, batch, wanted, aborted, found, pace):
            break
        if found.bytes >= EXPANDED_BYTES_MAX:  # What is small on the disk may be much here.
            header = batch.header
            found.position = (
                max(wanted.low, header.base_offset) if newest_first else header.next_offset
            )
            break
    return found


def _examine_batch(
    piece: Piece,
    batch: Batch,
    wanted: Wanted,
    aborted: Aborted,
    found: Examined,
    pace: ThreadPace,
) -> bool:
    """Look at one batch; False once there are rows enough."""
    standing, header = piece.standing, batch.header
    low = max(wanted.low, standing.start_offset)
    try:
        records: Sequence[Record] = list(_expanded(batch, low, wanted.high, pace))
    except InvalidBatch as error:
        until = min(header.next_offset, wanted.high)
        found.unread.append(Unread(max(low, header.base_offset), until, str(error)))
        return True
    if header.compression:
        found.bytes += sum(_size(each) for each in records)
    for record in reversed(records) if wanted.newest_first else records:
        pace.step()
        found.records += 1
        found.last_ms = record.timestamp
        state = standing.state(header, record.offset, aborted)
        if _is_wanted(record, header, state, wanted, found):
            holder = standing.holder if state == WAITING else None
            found.rows.append(_row(record, header, state, holder, wanted, batch))
            if len(found.rows) >= wanted.rows:
                found.position = record.offset + (0 if wanted.newest_first else 1)
                return False
    return True


def _expanded(batch: Batch, low: int, high: int, pace: ThreadPace) -> Iterator[Record]:
    """Yield the records of a batch from one offset up to another; raises InvalidBatch."""
    for record in iterate_records(batch.data, limit_bytes=EXPANDED_BYTES_MAX):
        pace.step()
        if low <= record.offset < high:
            yield record


def _is_wanted(
    record: Record, header: BatchHeader, state: str, wanted: Wanted, found: Examined
) -> bool:
    if not wanted.all_states and state not in VISIBLE:
        return False
    if not wanted.since_ms <= record.timestamp < wanted.until_ms:
        return False
    if wanted.filter.is_empty:
        return True
    if header.is_control:
        return False
    verdict = wanted.filter.matches(record)
    if verdict is None:
        found.undecided += 1
    return verdict is True


def _row(
    record: Record,
    header: BatchHeader,
    state: str,
    holder: Holder | None,
    wanted: Wanted,
    batch: Batch,
) -> FoundRecord:
    key, value = _kept(record.key, wanted.kept_bytes), _kept(record.value, wanted.kept_bytes)
    if header.is_control:
        key, value = None, _marker(batch)
    return FoundRecord(
        wanted.partition,
        header,
        record.offset,
        record.timestamp,
        key,
        value,
        tuple(
            (name, _kept(content, max(HEADER_BYTES_KEPT, wanted.kept_bytes // 8)))
            for name, content in record.headers[: max(HEADERS_KEPT, wanted.kept_bytes // 256)]
        ),
        len(record.headers),
        _size(record),
        state,
        holder,
    )


def _marker(batch: Batch) -> Content:
    """Return what a control record says, in a word."""
    try:
        marker = read_marker(batch.data)
    except InvalidBatch:
        marker = None
    word = b"control record" if marker is None else (b"commit" if marker.commit else b"abort")
    return Content(word, len(word))


def _kept(data: bytes | None, most: int) -> Content | None:
    return None if data is None else Content(data[:most], len(data))


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
