"""Responses about records; see ``barnabas.broker.console.shapes`` for the rules of all shapes."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Cursor, Wide


@dataclass(frozen=True, slots=True)
class Shown:
    """A key, a value or a header's value as text."""

    format: str
    text: str
    size_bytes: int
    """Size of the whole value, as stored."""
    is_cut: bool
    """Whether the text is only of its beginning."""
    problem: str | None
    """Reason that the value is not in the requested format."""


@dataclass(frozen=True, slots=True)
class ShownHeader:
    """A header of a record; a name may be there more than once."""

    name: str
    value: Shown | None


@dataclass(frozen=True, slots=True)
class BlockingTransaction:
    """The open transaction that blocks ``read_committed`` consumers."""

    transactional_id: str | None
    """Transactional id, or None if no coordinator knows it or the user cannot see it."""
    producer_id: str
    producer_epoch: int
    start_offset: Wide


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record."""

    partition: int
    offset: Wide
    timestamp_ms: Wide
    timestamp_type: str
    """`create` or `append`."""
    key: Shown | None
    value: Shown | None
    headers: tuple[ShownHeader, ...]
    """Headers; in lists only the first ones."""
    header_count: int
    state: str
    """`plain`: in no transaction. `committed`. `waiting`: not visible to ``read_committed``
    consumers before the blocking transaction ends. `aborted`. `open`: its transaction is open.
    `marker`: ends a transaction, and is no record to clients."""
    blocking_transaction: BlockingTransaction | None
    """Transaction that blocks the record, or None, also if it is ending at this moment."""
    is_transactional: bool
    producer_id: str | None
    producer_epoch: int | None
    sequence: int | None
    batch_base_offset: Wide
    compression: str
    leader_epoch: int
    size_bytes: int
    """Size of key, value and headers, uncompressed."""


@dataclass(frozen=True, slots=True)
class PartitionScan:
    """Examined part of a partition."""

    partition: int
    start_offset: Wide
    stable_offset: Wide
    """Last stable offset, where ``read_committed`` consumers stop."""
    end_offset: Wide
    from_offset: Wide
    """First examined offset."""
    until_offset: Wide
    """The offset after the last one; equal to the first offset if the range is empty."""


@dataclass(frozen=True, slots=True)
class UnreadRange:
    """Offsets that could not be examined."""

    partition: int
    from_offset: Wide
    until_offset: Wide
    reason: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """Examined records of one response."""

    records: int
    """Number of examined records, shown or not."""
    bytes: Wide
    """Bytes read, or expanded from them."""
    took_ms: int
    stopped_by: str
    """`end`, or the limit that was reached: `records`, `bytes`, `time`."""
    undecided: int
    """Records that are too large for the filter, and are left out."""
    partitions: tuple[PartitionScan, ...]
    unread: tuple[UnreadRange, ...]
    """The first ranges that were not read."""


@dataclass(frozen=True, slots=True)
class RecordPage(Cursor):
    """A page of records."""

    topic: str
    key_format: str
    """Format of keys, guessed if not requested."""
    value_format: str
    scanned: Scanned
    items: tuple[RecordRow, ...]


@dataclass(frozen=True, slots=True)
class SearchState(Cursor):
    """Progress of a search: `progress` once a second, and `done` at its end."""

    key_format: str | None
    """Format, or None before the first record."""
    value_format: str | None
    found: int
    scanned: Scanned


@dataclass(frozen=True, slots=True)
class Skipped:
    """Records that a live tail has not shown since it started."""

    skipped: Wide
    """Number of wanted records that were skipped: too many at once, or written during a pause."""
    unseen: Wide
    """Offsets that were not examined, since more was written than the limit."""


@dataclass(frozen=True, slots=True)
class RecordDescription:
    """One record, whole up to a mebibyte of each of its parts."""

    as_of: Wide
    topic: str
    previous_offset: Wide | None
    """Offset for searching the previous record, or None at the start."""
    next_offset: Wide | None
    record: RecordRow
