"""Responses of the console's API about events and their users (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Cursor, Page, TopicPartition, Wide

# ----------------------------------------------------------------------- the story of transactions


@dataclass(frozen=True, slots=True)
class TransactionEventRow:
    """Event of a transactional id."""

    transactional_id: str
    number: Wide
    """Counts all events since the broker started; the order in which they happened."""
    time_ms: Wide
    kind: str
    reason: str | None
    """Cause of an abort or a refusal: client, timeout, fenced, operator."""
    producer_id: str
    producer_epoch: int
    client: str | None
    """Client that caused it, or None for the broker."""
    host: str | None
    fenced_client: str | None
    """Previous client of the transactional id, or None if it was the same client."""
    fenced_host: str | None
    start_time_ms: Wide | None
    """Start of the transaction."""
    partition_count: int
    """Number of added partitions; for an end, those of the whole transaction."""
    partitions: tuple[TopicPartition, ...]
    """The first of the added partitions."""


@dataclass(frozen=True, slots=True)
class TransactionEventPage(Cursor):
    """A page of the events of transactions."""

    since_ms: Wide
    """Time from which the list is complete."""
    is_since_start: bool
    """Whether that is the start of the broker; if not, older events were dropped."""
    items: tuple[TransactionEventRow, ...]


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction that has ended."""

    transactional_id: str
    start_time_ms: Wide
    end_time_ms: Wide
    outcome: str
    """committed, aborted (by its producer), timeout, fenced, operator."""
    producer_id: str
    producer_epoch: int
    client: str | None
    """Client that decided; after a timeout, the last user of the id."""
    host: str | None
    partition_count: int


@dataclass(frozen=True, slots=True)
class EndedPage(Cursor):
    """A page of transactions that have ended."""

    since_ms: Wide
    is_since_start: bool
    items: tuple[EndedTransaction, ...]


# ----------------------------------------------------------------------------- the lag of a group


@dataclass(frozen=True, slots=True)
class GroupRebalance:
    """Change of a group's generation."""

    time_ms: Wide
    generation: int
    """Epoch of a group of KIP-848."""


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """Measurements of a group since it was first viewed."""

    as_of: Wide
    group: str
    is_hidden: bool
    """Whether the lag is not shown: it counts topics that the user may not see."""
    since_ms: Wide | None
    """Time of the first measurement shown, or None if there is none yet."""
    trend: str | None
    """Trend over five minutes, or over the measured time if it is shorter: falling_behind,
    catching_up, steady."""
    times_ms: tuple[Wide, ...]
    lag_readable: tuple[Wide, ...]
    """Lag at each of the times; ``lag_blocked`` has the same length."""
    lag_blocked: tuple[Wide, ...]
    rebalances_since_ms: Wide
    """Time from which the rebalances are complete."""
    rebalances: tuple[GroupRebalance, ...]


# ---------------------------------------------------------------------------------------- clients


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A connection of a client."""

    connection: Wide
    """Number of the connection since the broker started."""
    client: str
    """Client id of its last request."""
    software: str
    """Software name from ApiVersions, or empty."""
    software_version: str
    address: str
    """Host and port."""
    listener: str
    user: str
    since_ms: Wide
    requests: Wide
    refused: Wide
    """Requests that were refused as a whole; errors of single topics are not in it."""
    received_bytes: Wide
    sent_bytes: Wide
    received_bytes_per_s: float
    """Rate since the previous view at least a second ago, or since the connection was opened."""
    sent_bytes_per_s: float
    last_api: str | None
    """API of its last request, or None before the first one."""
    idle_ms: Wide | None
    """Time since its last request."""
    waits_for: tuple[str, ...]
    """Reasons why its next request is not handled now: request (one takes its time, mostly a
    waiting fetch), reader (it does not read its responses), disk, answers (too many are
    outstanding), quota, closing."""
    isolation_seen: str | None
    """Isolation level of its last fetch."""
    in_group: bool
    """Whether a connection of the same client id and host is active for a group."""
    partitions: int | None
    """Number of partitions of its last fetch, or None if there were too many to keep."""


@dataclass(frozen=True, slots=True)
class ClientPage(Page):
    """A page of connections."""

    items: tuple[ClientRow, ...]


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A partition that a connection reads, by its last fetch."""

    topic: str
    partition: int
    connection: Wide
    client: str | None
    """Shown with DESCRIBE on the cluster or on a group of this client, else None."""
    address: str | None
    """Address of the client, or None without DESCRIBE on the cluster; the user has the same
    rule."""
    user: str | None
    isolation_seen: str
    in_group: bool
    position: Wide
    """First offset of its last fetch."""
    stable_offset: Wide
    end_offset: Wide
    lag: Wide
    """Lag: offsets from its position to the end that it may read."""
    lag_blocked: Wide
    """Number of further offsets that an open transaction blocks."""
    idle_ms: Wide | None
    """Time since its last request."""


@dataclass(frozen=True, slots=True)
class ReaderPage(Page):
    """A page of the partitions that are read."""

    items: tuple[ReaderRow, ...]


# ----------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class BrokerEvent:
    """Event of the broker."""

    number: Wide
    """Counts all events since the start."""
    time_ms: Wide
    kind: str
    words: str
    resource: str
    """Resource of the event as Kind:name, or empty for the broker."""
    user: str
    host: str


@dataclass(frozen=True, slots=True)
class BrokerEventPage(Cursor):
    """A page of the events of the broker."""

    since_ms: Wide
    """Time from which the list is complete."""
    is_since_start: bool
    kinds: tuple[str, ...]
    """Kinds of all events in memory."""
    items: tuple[BrokerEvent, ...]


# -------------------------------------------------------------------------------------- pipelines


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """A group whose offsets are committed in transactions."""

    group: str
    transactional_ids: int
    """Number of ids seen lately; at most 50 are kept."""
    transactional_id: str | None
    """The first of them that may be seen."""
    inputs: tuple[str, ...]
    """Topics of the group's committed offsets."""
    outputs: tuple[str, ...]
    lag: Wide
    lag_readable: Wide
    lag_blocked: Wide
    commits: Wide
    """Number since the pipeline was seen first."""
    aborts: Wide
    commits_per_s: float
    """Rate over the last whole minute."""
    last_commit_ms: Wide | None
    last_took_ms: Wide | None
    """Time from the start of the last committed transaction to its decision."""


@dataclass(frozen=True, slots=True)
class PipelinePage(Page):
    """A page of pipelines."""

    items: tuple[PipelineRow, ...]


@dataclass(frozen=True, slots=True)
class InputLag:
    """A topic that a query reads; fields are None if no offsets are committed for it here."""

    topic: str
    lag: Wide | None
    lag_readable: Wide | None
    lag_blocked: Wide | None


@dataclass(frozen=True, slots=True)
class SparkQueryRow:
    """A query of Spark that writes exactly once, by its entry in the ledger."""

    transactional_id: str
    """Transactional id of its driver, which belongs to one driver of this sink at a time."""
    sink: str
    query: str
    """One for each checkpoint."""
    batch: Wide | None
    """Last decided batch, or None before the first one."""
    begun_batch: Wide | None
    """Batch started since, if that is recorded: a table can have rows of it already."""
    written_ms: Wide
    """Time when the entry was written."""
    records: Wide | None
    """Number of records of that batch."""
    measured_batch: Wide | None
    """Batch of the two durations, usually the one before the last decided one, or None if unknown.
    """
    decide_ms: float | None
    """Time from the end of that batch's tasks until it was decided."""
    commit_ms: float | None
    """Time from its decision until all of its transactions were committed."""
    transactions: int
    """Number of transactions of its tasks, or 0 if one transaction has the whole batch."""
    is_pinned: bool
    """Whether these transactions had no timeout (two-phase commit, KIP-939)."""
    open_transactions: int
    """Number of open transactions of the sink, as far as they are visible."""
    open_transactional_ids: tuple[str, ...]
    """The first transactional ids with an open transaction."""
    open_since_ms: Wide | None
    """Start of the oldest one."""
    inputs: tuple[InputLag, ...]
    outputs: tuple[str, ...]
    ledger_topic: str
    ledger_partition: int
    ledger_offset: Wide
    """Offset of its entry."""
    problem: str | None
    """Reason that the entry cannot be read."""


@dataclass(frozen=True, slots=True)
class SparkQueryPage(Cursor):
    """A page of Spark's queries."""

    hidden_because: str | None
    """Reason that the ledger is hidden, or None if it is visible."""
    is_complete: bool
    """Whether the ledger is read to its end; if not, the next response has more."""
    items: tuple[SparkQueryRow, ...]
