"""What the console's API answers about what has happened, and who does what (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import Cursor, Page, TopicPartition, Wide

# ----------------------------------------------------------------------- the story of transactions


@dataclass(frozen=True, slots=True)
class TransactionEventRow:
    """Something that has happened to a transactional id."""

    transactional_id: str
    number: Wide
    """Counts all events since the broker started; the order in which they happened."""
    time_ms: Wide
    kind: str
    reason: str | None
    """Of what was ended or refused: client, timeout, fenced, operator."""
    producer_id: str
    producer_epoch: int
    client: str | None
    """Who did it; None where the broker did."""
    host: str | None
    fenced_client: str | None
    """From whom it has taken the transactional id, if that was another client."""
    fenced_host: str | None
    start_time_ms: Wide | None
    """When the transaction began."""
    partition_count: int
    """Of what was added; of an end, of the whole transaction."""
    partitions: tuple[TopicPartition, ...]
    """The first of those that were added."""


@dataclass(frozen=True, slots=True)
class TransactionEventPage(Cursor):
    """A page of what has happened to transactions."""

    since_ms: Wide
    """From when on nothing is missing."""
    is_since_start: bool
    """Whether that is the start of the broker; older events have had to give way otherwise."""
    items: tuple[TransactionEventRow, ...]


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A transaction that is over."""

    transactional_id: str
    start_time_ms: Wide
    end_time_ms: Wide
    outcome: str
    """committed, aborted (by its producer), timeout, fenced, operator."""
    producer_id: str
    producer_epoch: int
    client: str | None
    """Whose decision it was; of a timeout, who used the id last."""
    host: str | None
    partition_count: int


@dataclass(frozen=True, slots=True)
class EndedPage(Cursor):
    """A page of transactions that are over."""

    since_ms: Wide
    is_since_start: bool
    items: tuple[EndedTransaction, ...]


# ----------------------------------------------------------------------------- the lag of a group


@dataclass(frozen=True, slots=True)
class GroupRebalance:
    """A group has come to another generation."""

    time_ms: Wide
    generation: int
    """Epoch of a group of KIP-848."""


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """What was measured of a group since somebody looked at it."""

    as_of: Wide
    group: str
    is_hidden: bool
    """Whether the lag is not shown: it counts topics that the user may not see."""
    since_ms: Wide | None
    """When it was measured first, of what is here; None: not yet."""
    trend: str | None
    """Over five minutes, or as long as it is measured: falling_behind, catching_up, steady."""
    times_ms: tuple[Wide, ...]
    lag_readable: tuple[Wide, ...]
    """One for each time; so is the next."""
    lag_held_back: tuple[Wide, ...]
    rebalances_since_ms: Wide
    """From when on no rebalance is missing."""
    rebalances: tuple[GroupRebalance, ...]


# ---------------------------------------------------------------------------------------- clients


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A connection of a client."""

    connection: Wide
    """Its number among all since the broker started."""
    client: str
    """Client id of its last request."""
    software: str
    """As it has named itself; empty if it has not."""
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
    """Since somebody looked before, at least a second ago; of the first look, since it is there."""
    sent_bytes_per_s: float
    last_api: str | None
    """What its last request was; None before there is one."""
    idle_ms: Wide | None
    """How long ago that was."""
    waits_for: tuple[str, ...]
    """Why nothing of it is handled now: request (one takes its time, mostly a fetch that waits),
    reader (it does not read its answers), disk, answers (too many are owed), quota, closing."""
    isolation_seen: str | None
    """Isolation level of its last fetch."""
    in_group: bool
    """Whether a connection of the same client id and host is active for a group."""
    partitions: int | None
    """That its last fetch asked for; None where they were too many to be remembered."""


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
    """Shown with DESCRIBE on the cluster, else None; so is the user."""
    user: str | None
    isolation_seen: str
    in_group: bool
    position: Wide
    """Where its last fetch has begun."""
    stable_offset: Wide
    end_offset: Wide
    lag: Wide
    """Offsets from its position to the end, of what it may see."""
    lag_held_back: Wide
    """Those beyond, which an open transaction keeps from it."""
    idle_ms: Wide | None
    """How long ago its last request was."""


@dataclass(frozen=True, slots=True)
class ReaderPage(Page):
    """A page of what is read."""

    items: tuple[ReaderRow, ...]


# ----------------------------------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class BrokerEvent:
    """Something that has happened in the broker."""

    number: Wide
    """Counts all events since the start."""
    time_ms: Wide
    kind: str
    words: str
    resource: str
    """What it is about, as Kind:name; empty: the broker."""
    user: str
    host: str


@dataclass(frozen=True, slots=True)
class BrokerEventPage(Cursor):
    """A page of what has happened in the broker."""

    since_ms: Wide
    """From when on nothing is missing."""
    is_since_start: bool
    kinds: tuple[str, ...]
    """Of all that are remembered."""
    items: tuple[BrokerEvent, ...]


# -------------------------------------------------------------------------------------- pipelines


@dataclass(frozen=True, slots=True)
class PipelineRow:
    """A group whose offsets are committed in transactions."""

    group: str
    transactional_ids: int
    """How many were seen lately; at most 50 are remembered."""
    transactional_id: str | None
    """The first of them that may be seen."""
    inputs: tuple[str, ...]
    """Topics of the group's committed offsets."""
    outputs: tuple[str, ...]
    lag: Wide
    lag_readable: Wide
    lag_held_back: Wide
    commits: Wide
    """Since the pipeline was seen first."""
    aborts: Wide
    commits_per_s: float
    """Over the last whole minute."""
    last_commit_ms: Wide | None
    last_took_ms: Wide | None
    """From the beginning of the transaction that was committed last to its decision."""


@dataclass(frozen=True, slots=True)
class PipelinePage(Page):
    """A page of pipelines."""

    items: tuple[PipelineRow, ...]


@dataclass(frozen=True, slots=True)
class InputLag:
    """A topic that a query reads; None where no offsets are committed for it here."""

    topic: str
    lag: Wide | None
    lag_readable: Wide | None
    lag_held_back: Wide | None


@dataclass(frozen=True, slots=True)
class SparkQueryRow:
    """A query of Spark that writes exactly once, by its entry in the ledger."""

    transactional_id: str
    """Of its driver; who has it is the one driver of this sink."""
    sink: str
    query: str
    """One for each checkpoint."""
    batch: Wide | None
    """The last that is decided; None: none yet."""
    begun_batch: Wide | None
    """What is begun since, where that is noted: rows may be in a table already."""
    written_ms: Wide
    """When the entry was written."""
    records: Wide | None
    """Of that batch."""
    measured_batch: Wide | None
    """Batch of the two durations, usually the one before the last decided one; None: not known."""
    decide_ms: float | None
    """Time from the end of that batch's tasks until it was decided."""
    commit_ms: float | None
    """Time from its decision until all of its transactions were committed."""
    transactions: int
    """Of its tasks; 0 where one transaction has all of the batch."""
    is_pinned: bool
    """Whether these had no timeout (two-phase commit, KIP-939)."""
    open_transactions: int
    """Of the sink at this moment, as far as they may be seen."""
    open_transactional_ids: tuple[str, ...]
    """The first of them."""
    open_since_ms: Wide | None
    """When the oldest of them began."""
    inputs: tuple[InputLag, ...]
    outputs: tuple[str, ...]
    ledger_topic: str
    ledger_partition: int
    ledger_offset: Wide
    """Where its entry stands."""
    problem: str | None
    """Why the entry says nothing else."""


@dataclass(frozen=True, slots=True)
class SparkQueryPage(Cursor):
    """A page of Spark's queries."""

    hidden_because: str | None
    """Why nothing of the ledger is told; None where it is."""
    is_complete: bool
    """Whether the ledger is read to its end; the next answer knows more otherwise."""
    items: tuple[SparkQueryRow, ...]
