"""What is answered of records; see ``barnabas.broker.console.shapes`` for what all shapes share."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Cursor, Wide


@dataclass(frozen=True, slots=True)
class Shown:
    """A key, a value or a header's value as text."""

    format: str
    text: str
    size_bytes: int
    """Of the whole, as it is stored."""
    is_cut: bool
    """Whether the text is only of its beginning."""
    problem: str | None
    """Why it is not in the format that was asked for."""


@dataclass(frozen=True, slots=True)
class ShownHeader:
    """A header of a record; a name may be there more than once."""

    name: str
    value: Shown | None


@dataclass(frozen=True, slots=True)
class Behind:
    """The open transaction that readers of committed records wait for."""

    transactional_id: str | None
    """None of one that no coordinator knows, and for who may not see it."""
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
    """In lists the first of them."""
    header_count: int
    state: str
    """`plain`: in no transaction. `committed`. `waiting`: will be read by readers of committed
    records once what it is behind has ended. `aborted`. `open`: its transaction is not over.
    `marker`: ends a transaction, and is no record to clients."""
    behind: Behind | None
    """What a record that waits is behind; None, too, where that ends at this moment."""
    is_transactional: bool
    producer_id: str | None
    producer_epoch: int | None
    sequence: int | None
    batch_base_offset: Wide
    compression: str
    leader_epoch: int
    size_bytes: int
    """Of key, value and headers, uncompressed."""


@dataclass(frozen=True, slots=True)
class PartitionScan:
    """How far a partition was looked at."""

    partition: int
    start_offset: Wide
    stable_offset: Wide
    """Where readers of committed records stop."""
    end_offset: Wide
    from_offset: Wide
    """The first offset that was looked at."""
    until_offset: Wide
    """The one behind the last; the same where nothing was."""


@dataclass(frozen=True, slots=True)
class UnreadRange:
    """Offsets that could not be looked at."""

    partition: int
    from_offset: Wide
    until_offset: Wide
    reason: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """What was looked at for one answer."""

    records: int
    """Those that were looked at, shown or not."""
    bytes: Wide
    """What they were read from, or expanded to."""
    took_ms: int
    stopped_by: str
    """`end`, or the limit that was reached: `records`, `bytes`, `time`."""
    undecided: int
    """Records that are too large for the filter, and are left out."""
    partitions: tuple[PartitionScan, ...]
    unread: tuple[UnreadRange, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True)
class RecordPage(Cursor):
    """A page of records."""

    topic: str
    key_format: str
    """What keys are shown as; guessed where it was not asked for."""
    value_format: str
    scanned: Scanned
    items: tuple[RecordRow, ...]


@dataclass(frozen=True, slots=True)
class SearchState(Cursor):
    """How far a search is: `progress` once a second, and `done` at its end."""

    key_format: str | None
    """None until there is a record."""
    value_format: str | None
    found: int
    scanned: Scanned


@dataclass(frozen=True, slots=True)
class Skipped:
    """What a live tail has not shown since it began."""

    skipped: Wide
    """Records that are wanted, but were too many, or came while nothing was read."""
    unseen: Wide
    """Offsets that were not looked at: more was written than is looked at."""


@dataclass(frozen=True, slots=True)
class RecordDescription:
    """One record, whole up to a mebibyte of each of its parts."""

    as_of: Wide
    topic: str
    previous_offset: Wide | None
    """Where the record before it may be looked for; None at the start."""
    next_offset: Wide | None
    record: RecordRow
