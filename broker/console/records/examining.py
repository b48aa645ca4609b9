"""Search of the records of a piece, on a thread: the matches, and the part of each that is kept.

The part is what a list shows of a record. Batches are expanded one at a time, and of an
expanded batch one record exists at a time: a record of seven bytes is an object of two hundred.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.records.pieces import KEPT_BYTES_MOST, Unread
from barnabas.broker.console.records.standing import VISIBLE, WAITING, Aborted, Blocker
from barnabas.protocol.record_decoding import iterate_records, read_marker
from barnabas.protocol.records import InvalidBatch, Record, increment_sequence

if TYPE_CHECKING:
    from barnabas.broker.console.records.filters import Filter
    from barnabas.broker.console.records.pace import ThreadPace
    from barnabas.broker.console.records.pieces import Batch, Piece
    from barnabas.protocol.records import BatchHeader

EXPANDED_BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum expanded size of a batch; a larger one is skipped and reported."""
HEADERS_MOST: Final = 100_000
"""Maximum number of headers of one record; a batch with a record beyond it is left out, and
reported so."""
HEADERS_KEPT: Final = 16
HEADER_BYTES_KEPT: Final = 512
OBJECT_BYTES: Final = 200
"""About the size of a header without its name and value."""
NO_TIME: Final = -1


class Content(NamedTuple):
    """Bytes of a record, or the first of them."""

    data: bytes
    size_bytes: int

    @property
    def is_cut(self) -> bool:
        """Whether the record is cut."""
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
    blocker: Blocker | None
    """Open transaction of a blocked record."""

    @property
    def kept_bytes(self) -> int:
        """Bytes of its contents that are kept."""
        contents = (self.key, self.value, *(value for _, value in self.headers))
        kept = sum(len(each.data) for each in contents if each is not None)
        return kept + sum(OBJECT_BYTES + len(name) for name, _ in self.headers)

    @property
    def sequence(self) -> int:
        """Sequence number of the record, or -1 if its producer is not idempotent."""
        base = self.batch.base_sequence
        if base < 0:
            return base
        return increment_sequence(base, self.offset - self.batch.base_offset)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Conditions for the records of one partition."""

    partition: int
    low: int
    high: int
    """Range of offsets, from ``low`` up to ``high``."""
    since_ms: int
    until_ms: int
    """Range of times, from ``since_ms`` up to ``until_ms``."""
    all_states: bool
    filter: Filter
    rows: int
    """Maximum number of rows; the rest of the piece is left for later."""
    kept_bytes: int
    """Maximum number of bytes kept of a key and of a value."""
    newest_first: bool


@dataclass(slots=True)
class Examined:
    """Records found in a piece."""

    position: int
    """Offset at which to continue: after the examined records, or the last examined one if the
    newest come first."""
    rows: list[FoundRecord] = field(default_factory=list)
    records: int = 0
    bytes: int = 0
    undecided: int = 0
    last_ms: int = NO_TIME
    """Timestamp of the record examined last."""
    unread: list[Unread] = field(default_factory=list)
    kept_bytes: int = 0
    """Memory of the contents of ``rows``."""


def examine(piece: Piece, wanted: Wanted, pace: ThreadPace) -> Examined:
    """Find the matching records of a piece, in the requested order."""
    newest_first = wanted.newest_first
    whole = max(wanted.low, piece.from_offset) if newest_first else piece.until_offset
    found = Examined(whole, bytes=piece.size_bytes, unread=list(piece.unread))
    aborted = piece.standing.aborted(piece.from_offset, piece.until_offset, pace)
    batches = reversed(piece.batches) if newest_first else iter(piece.batches)
    for batch in batches:
        if not _examine_batch(piece, batch, wanted, aborted, found, pace):
            break
        # What is small on the disk may be much here.
        if found.bytes >= EXPANDED_BYTES_MAX or found.kept_bytes >= KEPT_BYTES_MOST:
            header = batch.header
            found.position = (
                max(wanted.low, header.base_offset) if newest_first else header.next_offset
            )
            break
    return found


class _Matched(NamedTuple):
    """A wanted record, and the counts of its batch before this record."""

    row: FoundRecord
    records: int
    undecided: int


def _examine_batch(
    piece: Piece,
    batch: Batch,
    wanted: Wanted,
    aborted: Aborted,
    found: Examined,
    pace: ThreadPace,
) -> bool:
    """Examine one batch; return False once there are enough rows.

    Records come in the order of their offsets. For the newest first, the last matching ones are
    kept, and the records after the first of those are counted.
    """
    standing, header = piece.standing, batch.header
    low = max(wanted.low, standing.start_offset)
    room = wanted.rows - len(found.rows)
    matched: deque[_Matched] = deque(maxlen=room)
    records = undecided = size_bytes = 0
    first_ms = last_ms = NO_TIME
    try:
        for record in _expanded(batch, low, wanted.high, pace):
            size_bytes += _size(record)
            if not wanted.newest_first and len(matched) == room:
                continue  # What follows is only read to see that the batch is whole.
            state = standing.state(header, record.offset, aborted)
            verdict = _is_wanted(record, header, state, wanted)
            if verdict:
                blocker = standing.blocker if state == WAITING else None
                row = _row(record, header, state, blocker, wanted, batch)
                matched.append(_Matched(row, records, undecided))
            records += 1
            undecided += verdict is None
            first_ms = record.timestamp if records == 1 else first_ms
            last_ms = record.timestamp
    except InvalidBatch as error:
        until = min(header.next_offset, wanted.high)
        found.unread.append(Unread(max(low, header.base_offset), until, str(error)))
        return True
    is_full = len(matched) == room
    if wanted.newest_first and is_full:
        records -= matched[0].records
        undecided -= matched[0].undecided
        first_ms = matched[0].row.timestamp_ms
    if records:
        found.last_ms = first_ms if wanted.newest_first else last_ms
    found.records += records
    found.undecided += undecided
    if header.compression:
        found.bytes += size_bytes
    rows = [each.row for each in matched]
    found.rows += reversed(rows) if wanted.newest_first else rows
    found.kept_bytes += sum(each.kept_bytes for each in rows)
    if is_full:
        found.position = found.rows[-1].offset + (0 if wanted.newest_first else 1)
    return not is_full


def _expanded(batch: Batch, low: int, high: int, pace: ThreadPace) -> Iterator[Record]:
    """Yield the records of a batch from one offset up to another; raises InvalidBatch."""
    for record in records_of(batch):
        pace.step()
        if low <= record.offset < high:
            yield record


def records_of(batch: Batch) -> Iterator[Record]:
    """Yield the records of a batch within the limits of the console; raises InvalidBatch."""
    return iterate_records(batch.data, limit_bytes=EXPANDED_BYTES_MAX, headers_max=HEADERS_MOST)


def _is_wanted(record: Record, header: BatchHeader, state: str, wanted: Wanted) -> bool | None:
    """Return whether a record matches, or None if the filter cannot decide."""
    if not wanted.all_states and state not in VISIBLE:
        return False
    if not wanted.since_ms <= record.timestamp < wanted.until_ms:
        return False
    if wanted.filter.is_empty:
        return True
    if header.is_control:
        return False
    return wanted.filter.matches(record)


def _row(
    record: Record,
    header: BatchHeader,
    state: str,
    blocker: Blocker | None,
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
        _kept_headers(record, wanted.kept_bytes),
        len(record.headers),
        _size(record),
        state,
        blocker,
    )


def _marker(batch: Batch) -> Content:
    """Return the meaning of a control record in a word."""
    try:
        marker = read_marker(batch.data)
    except InvalidBatch:
        marker = None
    word = b"control record" if marker is None else (b"commit" if marker.commit else b"abort")
    return Content(word, len(word))


def _kept_headers(record: Record, most: int) -> tuple[tuple[str, Content | None], ...]:
    """Return the first headers of a record, up to ``most`` bytes or a list's share."""
    left = max(most, HEADERS_KEPT * HEADER_BYTES_KEPT)
    each_most = most if most >= EXPANDED_BYTES_MAX else max(HEADER_BYTES_KEPT, most // 8)
    kept = []
    for name, content in record.headers[: max(HEADERS_KEPT, most // 256)]:
        kept_name = name[: max(HEADER_BYTES_KEPT, min(each_most, left))]
        shown = _kept(content, min(each_most, left))
        left = max(0, left - len(kept_name) - (0 if shown is None else len(shown.data)))
        kept.append((kept_name, shown))
    return tuple(kept)


def _kept(data: bytes | None, most: int) -> Content | None:
    return None if data is None else Content(data[:most], len(data))


def _size(record: Record) -> int:
    headers = sum(len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
