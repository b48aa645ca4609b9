"""What the console's API answers about what has happened, and who does what (see shapes.py)."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.broker.console.shapes import TopicPartition, Wide

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
class TransactionEventPage:
    """A page of what has happened to transactions."""

    as_of: Wide
    next: str | None
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
class EndedPage:
    """A page of transactions that are over."""

    as_of: Wide
    next: str | None
    since_ms: Wide
    is_since_start: bool
    items: tuple[EndedTransaction, ...]
