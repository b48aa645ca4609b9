"""Responses of the console's API: one frozen class for each shape, from which OpenAPI is generated.

Fields have the names of the command line's JSON for the same values. Times are in milliseconds
since 1970, sizes in bytes; a ``Wide`` number beyond 2**53 is a string, since JavaScript would round
it. Producer ids are always strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final, TypeAlias

WIDE: Final = "wide"
Wide: TypeAlias = Annotated[int, WIDE]
"""A number of 64 bits."""


@dataclass(frozen=True)
class AsOf:
    """A response with its time. It has no slots, so that it can be combined with another base
    class.
    """

    as_of: Wide


@dataclass(frozen=True)
class Cursor(AsOf):
    """A response that has a next page."""

    next: str | None
    """Value of ``after`` for the next page, or None after the last one."""


@dataclass(frozen=True)
class Page(Cursor):
    """A page of a list whose rows are counted."""

    total: int
    """Number of rows on all pages."""


@dataclass(frozen=True, slots=True)
class Error:
    """Reason of a refused request."""

    error: str
    """The name of Kafka's error."""
    message: str


@dataclass(frozen=True, slots=True)
class LoginNeeded:
    """The refusal of a request without valid credentials."""

    error: str
    """The name of Kafka's error."""
    message: str
    logins: list[str]
    """Credentials that begin a session from here: `token`, `password`, or none."""


# ----------------------------------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """Properties of a topic in lists and descriptions."""

    topic: str
    topic_id: str
    internal: bool
    """Whether the broker or the Spark sink keeps its own records in it."""
    partitions: int
    """Number of partitions."""
    replicas: int
    cleanup_policy: str
    records_max: Wide
    """Offsets between the starts and the ends of its partitions. Not all of them are records:
    markers also take offsets, and compaction removes records."""
    written: Wide
    """Number of offsets assigned in its partitions since their creation; the difference of two
    responses is the number in between."""
    size_bytes: Wide
    blocked_offsets: Wide
    """Offsets that are not yet visible to ``read_committed`` consumers."""


@dataclass(frozen=True, slots=True)
class TopicRow(TopicSummary):
    """A topic in a list."""

    groups: int | None
    """Groups with committed offsets of it, as far as they may be seen; null where the broker has
    too many groups to count them, or still loads them."""


@dataclass(frozen=True, slots=True)
class TopicPage(Page):
    """A page of topics."""

    items: tuple[TopicRow, ...]


@dataclass(frozen=True, slots=True)
class SettingOfTopic:
    """One configuration of a topic."""

    key: str
    value: str | None
    """Value, or None for a secret."""
    source: str


@dataclass(frozen=True, slots=True)
class TopicDescription(TopicSummary, AsOf):
    """A topic."""

    configs: tuple[SettingOfTopic, ...] | None
    """Settings, or None if the user cannot see them."""


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: Wide
    stable_offset: Wide
    """Last stable offset, where ``read_committed`` consumers stop."""
    end_offset: Wide
    """High watermark, where all consumers stop."""
    blocked_offsets: Wide
    """Number of offsets from the last stable offset to the high watermark."""
    size_bytes: Wide
    segments: int


@dataclass(frozen=True, slots=True)
class PartitionPage(Page):
    """A page of a topic's partitions."""

    topic: str
    items: tuple[PartitionRow, ...]


# ----------------------------------------------------------------------------------- transactions


@dataclass(frozen=True, slots=True)
class TransactionRow:
    """A transactional id and its latest transaction."""

    transactional_id: str
    state: str
    producer_id: str
    producer_epoch: int
    timeout_ms: int
    start_time_ms: Wide | None
    """Start of the transaction; None, as the next two fields, if no transaction is open."""
    age_ms: Wide | None
    remaining_ms: Wide | None
    """Time until the broker aborts it, or None, also if it has no timeout."""
    coordinator: int
    client: str | None
    """Client that used the id last since the broker started."""
    host: str | None
    partition_count: int


@dataclass(frozen=True, slots=True)
class TransactionPage(Page):
    """A page of transactional ids."""

    items: tuple[TransactionRow, ...]


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """A partition by its name."""

    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class TransactionDescription(TransactionRow, Cursor):
    """A transactional id with a page of the partitions of its transaction."""

    partitions: tuple[TopicPartition, ...]
    """Partitions of the transaction; once it is decided, those with a pending marker."""


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction as its partition knows it."""

    start_offset: Wide
    producer_id: str
    producer_epoch: int
    last_timestamp_ms: Wide
    hanging: bool
    """Whether no coordinator knows the transaction: only an operator can end it."""
    transaction: TransactionRow | None
    """The transaction, or None if it hangs or the user cannot see it."""


@dataclass(frozen=True, slots=True)
class BlockedPartition:
    """A partition with blocked ``read_committed`` consumers."""

    topic: str
    partition: int
    stable_offset: Wide
    end_offset: Wide
    blocked_offsets: Wide
    open_count: int
    """Transactions that are open on it."""
    transactions: tuple[OpenTransaction, ...]
    """The oldest open transactions; the first of them blocks the consumers."""


@dataclass(frozen=True, slots=True)
class BlockedPage(Page):
    """A page of partitions with blocked consumers."""

    items: tuple[BlockedPartition, ...]


# ----------------------------------------------------------------------------------------- groups


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in a list."""

    group: str
    state: str
    type: str
    protocol_type: str
    members: int
    """Number of members."""
    partitions: int
    """Number of partitions with committed offsets."""
    lag: Wide | None
    """Offsets between the committed ones and the ends; null, as the next two fields, without
    committed offsets."""
    lag_readable: Wide | None
    """Part of the lag that a ``read_committed`` consumer can read now."""
    lag_blocked: Wide | None
    """Part of the lag that open transactions block."""
    last_commit_ms: Wide | None
    """Time of the newest current commit, or None if the group has none."""
    trend: str | None
    """Trend of its lag over five minutes: falling_behind, catching_up, steady, or None if unknown:
    only viewed groups are measured."""


@dataclass(frozen=True, slots=True)
class GroupPage(Page):
    """A page of groups."""

    items: tuple[GroupRow, ...]


@dataclass(frozen=True, slots=True)
class GroupPartition:
    """A partition that a group reads or has read; fields without a value are None."""

    topic: str
    partition: int
    committed_offset: Wide | None
    start_offset: Wide | None
    stable_offset: Wide | None
    end_offset: Wide | None
    lag: Wide | None
    lag_readable: Wide | None
    lag_blocked: Wide | None
    commit_ms: Wide | None
    """Time of that commit."""
    member: str | None
    """Member that owns the partition."""
    blocked_by: OpenTransaction | None
    """The first transaction that is open on it."""


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of one topic."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member of a group."""

    member: str
    instance: str | None
    client: str
    host: str
    isolation_seen: str | None
    """Isolation level of clients with this id and host, by their last fetches: read_committed,
    read_uncommitted, both, or None if none of their connections has fetched."""
    partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription(Cursor):
    """A group: a page of its partitions, and its first members."""

    group: str
    state: str
    type: str
    coordinator: int
    assignor: str | None
    epoch: int | None
    """Epoch of a consumer group (KIP-848)."""
    lag: Wide | None
    """The lag of all partitions with committed offsets; null without any, as the next two."""
    lag_readable: Wide | None
    lag_blocked: Wide | None
    last_commit_ms: Wide | None
    partitions: tuple[GroupPartition, ...]
    member_count: int
    members: tuple[GroupMember, ...]


# --------------------------------------------------------------------------- the broker as a whole


@dataclass(frozen=True, slots=True)
class Worst:
    """Result of a walk through everything, at most every ten seconds, on request."""

    as_of: Wide
    groups: int
    """Number of groups."""
    lagging: tuple[GroupRow, ...]
    """Groups with the largest lag."""
    blocked_partitions: tuple[BlockedPartition, ...]
    """The partitions with most blocked offsets."""
    waiting: Waiting


@dataclass(frozen=True, slots=True)
class Waiting:
    """Records blocked by transactions that hang or have been open for ten seconds."""

    transactions: int
    hanging: int
    """Number of hanging transactions: no coordinator ends them."""
    partitions: int
    records: Wide
    """Offsets that are not yet visible to ``read_committed`` consumers."""
    groups: int
    """Groups whose committed offset precedes such records."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Activity and problems of the broker."""

    as_of: Wide
    cluster_id: str
    node_id: int
    version: str
    checks: dict[str, str]
    """Conditions for serving clients: "ok", or the problem."""
    warnings: dict[str, str]
    """Problems that need an operator although clients are served, as in ``/readyz``."""
    rates: dict[str, float | None]
    """The newest of each series of the history, or none without a history."""
    topics: int
    partitions: int
    connections: int
    transactional_ids: int
    transactions_open: int
    oldest_start_time_ms: Wide | None
    """Start of the oldest open transaction."""
    disk_free_bytes: Wide
    full_in_ms: Wide | None
    """Time until the disk is full at the rate of the last hour, or None if it does not fill up, or
    without a history."""
    journal_bytes: Wide
    duplicates: Wide
    """Number of batches since the start that were duplicates, and not written again."""
    worst: Worst | None
    """The worst groups and partitions, or None until they are known."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Number of operations shorter than a time, and not shorter than the previous bucket's."""

    less_than_us: Wide | None
    """Upper bound, or None for the last bucket."""
    count: Wide


@dataclass(frozen=True, slots=True)
class LogSize:
    """One of the largest logs."""

    topic: str
    partition: int
    size_bytes: Wide


@dataclass(frozen=True, slots=True)
class Compaction:
    """A pass of compaction over one log."""

    time_ms: Wide
    """Time when it ended."""
    topic: str
    partition: int
    bytes_before: Wide
    """Size of the replaced segments."""
    bytes_after: Wide


@dataclass(frozen=True, slots=True)
class Storage:
    """The data directory, and the disk's part in every acknowledgement."""

    as_of: Wide
    directory: str
    total_bytes: Wide
    free_bytes: Wide
    is_full: bool
    """Whether appends are refused because the disk is full."""
    full_in_ms: Wide | None
    """Time until the disk is full, as in the overview."""
    has_history: bool
    """Whether anything is recorded: barnabas.console.history."""
    journal_bytes: Wide
    """Bytes that a start after a crash would read."""
    journal_written_bytes: Wide
    """Number of bytes written since the start."""
    backlog_bytes: Wide
    """Bytes in memory that are not in the segments yet."""
    flushes: tuple[Bucket, ...]
    """Durations of writes to the journal until they were durable, since the start."""
    flushed_batches: Wide
    """Number of batches made durable."""
    damage: str | None
    """Damaged parts of the logs."""
    logs: int
    size_bytes: Wide
    largest: tuple[LogSize, ...]
    compactions: tuple[Compaction, ...]
    """The last passes of compaction since the start that have changed something, the newest
    first."""


@dataclass(frozen=True, slots=True)
class Synonym:
    """Another source of a setting, configured or possible."""

    key: str
    value: str | None
    source: str


@dataclass(frozen=True, slots=True)
class Setting:
    """One key of the broker's configuration."""

    key: str
    value: str | None
    source: str
    type: str
    synonyms: tuple[Synonym, ...]
    doc: str
    is_dynamic: bool
    """Whether it can be changed while the broker runs."""
    fixed: str | None
    """Reason that the setting cannot be changed."""


@dataclass(frozen=True, slots=True)
class SettingPage(Page):
    """A page of settings."""

    items: tuple[Setting, ...]


@dataclass(frozen=True, slots=True)
class SeriesOfHistory:
    """One series."""

    name: str
    doc: str
    values: tuple[float | None, ...]
    """Values at the times, None where nothing was measured."""


@dataclass(frozen=True, slots=True)
class HeatOfHistory:
    """Histogram of durations in each span of ten seconds."""

    name: str
    bounds_us: tuple[Wide, ...]
    """Upper bounds of the buckets; the last bucket also counts longer durations."""
    times_ms: tuple[Wide, ...]
    """End of each span."""
    counts: tuple[tuple[int, ...], ...]
    """Counts of all buckets for each span."""


@dataclass(frozen=True, slots=True)
class HistoryOfBroker:
    """Recorded values of some series."""

    as_of: Wide
    step_s: int
    times_ms: tuple[Wide, ...]
    """Times of the values of all series."""
    series: tuple[SeriesOfHistory, ...]
    heat: tuple[HeatOfHistory, ...]
