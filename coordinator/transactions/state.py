"""The state of a transactional id, and its record.

The record in ``__transaction_state`` holds everything, so a restart loses nothing: also the epoch
and the producer id before the latest bump, by which a repeated request is recognised (KIP-890).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.coordinator.decision import Now, Record, Timer
from barnabas.protocol.messages.transaction_log_record import (
    TRANSACTION_LOG_RECORD,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
LARGEST_CLIENT_EPOCH: Final = 32_766
"""Largest producer epoch of a client. The next one is reserved, to fence that client (C11)."""
LARGEST_EPOCH: Final = 32_767
NEVER_MS: Final = 2**31 - 1
"""The timeout of a transaction that another system decides about (KIP-939)."""
TIMEOUT: Final = "transaction timeout"
"""Name of the timer of an open transaction."""

CLASSIC: Final = 0
"""Transaction version under which the client adds the partitions (TV_0, and TV_1 alike)."""
TRANSACTIONS_V2: Final = 2
"""Transaction version under which the broker adds them, with an epoch for each (KIP-890)."""


class State(IntEnum):
    """Kafka's states, by their numbers in the record."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def kafka_name(self) -> str:
        """Name in Kafka's tools."""
        return _NAMES[self]

    @property
    def is_decided(self) -> bool:
        """Whether the transaction is decided and its markers are being written."""
        return self in _PREPARED

    @property
    def is_idle(self) -> bool:
        """Whether there is no transaction."""
        return self in _IDLE


# Tuples: their members are found by identity, without a hash.
_PREPARED: Final = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
_IDLE: Final = (State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT)

_NAMES: Final = {
    State.EMPTY: "Empty",
    State.ONGOING: "Ongoing",
    State.PREPARE_COMMIT: "PrepareCommit",
    State.PREPARE_ABORT: "PrepareAbort",
    State.COMPLETE_COMMIT: "CompleteCommit",
    State.COMPLETE_ABORT: "CompleteAbort",
    State.DEAD: "Dead",
    State.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

STORABLE: Final = frozenset(State) - {State.DEAD, State.PREPARE_EPOCH_FENCE}
"""States that a record may have; Kafka has the other two in memory only."""

PREDECESSORS: Final = {
    State.EMPTY: {State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT},
    State.ONGOING: {State.ONGOING, State.EMPTY, State.COMPLETE_COMMIT, State.COMPLETE_ABORT},
    State.PREPARE_COMMIT: {State.ONGOING},
    # From the idle states by the empty abort of KIP-890.
    State.PREPARE_ABORT: {
        State.ONGOING,
        State.EMPTY,
        State.COMPLETE_COMMIT,
        State.COMPLETE_ABORT,
    },
    State.COMPLETE_COMMIT: {State.PREPARE_COMMIT},
    State.COMPLETE_ABORT: {State.PREPARE_ABORT},
}
"""States that may precede each state (C1)."""


class TopicPartition(NamedTuple):
    """A partition that takes part in a transaction."""

    topic: str
    partition: int


class Transaction(NamedTuple):
    """A transactional id and its latest transaction. Times in ms since 1970."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    """Id and epoch that a legitimate producer must present now."""
    timeout_ms: int
    state: State = State.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    last_epoch: int = NO_EPOCH
    """Epoch before the latest bump: makes the repetition of a request recognisable (C8)."""
    previous_producer_id: int = NO_PRODUCER_ID
    """Producer id before the latest rotation."""
    next_producer_id: int = NO_PRODUCER_ID
    """Producer id that replaces ``producer_id`` when this transaction is complete, because its
    epochs are used up (KIP-890)."""
    next_epoch: int = NO_EPOCH
    """Epoch of ``next_producer_id``. The owner of a prepared transaction presents it to end the
    transaction, and afterwards to begin the next one (KIP-939). The records of the transaction keep
    the old epoch."""
    transaction_version: int = CLASSIC
    """Protocol of the present transaction, CLASSIC (v1) or TRANSACTIONS_V2."""

    @property
    def producer(self) -> tuple[int, int]:
        """Producer id and epoch together, as a request presents them."""
        return self.producer_id, self.producer_epoch

    @property
    def owner(self) -> tuple[int, int]:
        """Producer id and epoch of the client that may end the transaction."""
        if self.next_epoch == NO_EPOCH:
            return self.producer
        return self.next_producer_id, self.next_epoch

    @property
    def is_two_phase_prepared(self) -> bool:
        """Whether another client took the open transaction over as prepared (KIP-939)."""
        return self.state == State.ONGOING and self.next_epoch != NO_EPOCH

    @property
    def is_exhausted(self) -> bool:
        """Whether no epoch is left for its owner."""
        return self.owner[1] >= LARGEST_CLIENT_EPOCH

    @property
    def commits(self) -> bool:
        """Whether a prepared transaction was decided to commit."""
        return self.state == State.PREPARE_COMMIT


def updated_ms(transaction: Transaction, now: Now) -> int:
    """Return the time of a change, never before the last one if the clock was set back (T1)."""
    return max(transaction.last_update_ms, now.wall_ms)


def record_of(transaction: Transaction, version: int) -> Record:
    """Return the record of the state; ``version`` 0 has no fields for KIP-890."""
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        next_producer_epoch=transaction.next_epoch,
        producer_epoch=transaction.producer_epoch,
        last_producer_epoch=transaction.last_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        # Kafka writes none instead of an empty list where nothing was ever added.
        transaction_partitions=_by_topic(transaction.partitions)
        if transaction.state is not State.EMPTY
        else None,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.transaction_version,
    )
    key = TransactionLogKey(transaction.transactional_id)
    return Record(TRANSACTION_LOG_RECORD, key, value, version, meaning=transaction)


def _by_topic(partitions: frozenset[TopicPartition]) -> list[PartitionsSchema]:
    """Return the partitions in the order and form of a record."""
    # Names and numbers are sorted apart: tuples compare ten times as slowly.
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        known = topics.get(topic)
        if known is None:
            topics[topic] = [partition]
        else:
            known.append(partition)
    return [PartitionsSchema(topic, sorted(topics[topic])) for topic in sorted(topics)]


def tombstone(transactional_id: str) -> Record:
    """Return the record that deletes a transactional ID."""
    return Record(TRANSACTION_LOG_RECORD, TransactionLogKey(transactional_id), None)


def transaction_of(record: Record) -> Transaction:
    """Read a record; raises ValueError for a state that no record may have."""
    if record.meaning is not None:
        known: Transaction = record.meaning
        return known
    value: TransactionLogValue = record.value
    state = State(value.transaction_status)
    if state not in STORABLE:
        raise ValueError(f"a record of {record.key.transactional_id!r} is in state {state.name}")
    return Transaction(
        record.key.transactional_id,
        value.producer_id,
        value.producer_epoch,
        value.transaction_timeout_ms,
        state,
        frozenset(_partitions(value.transaction_partitions or ())),
        value.transaction_start_timestamp_ms,
        value.transaction_last_update_timestamp_ms,
        value.last_producer_epoch,
        value.previous_producer_id,
        value.next_producer_id,
        value.next_producer_epoch,
        value.client_transaction_version,
    )


def _partitions(topics: Iterable[PartitionsSchema]) -> Iterable[TopicPartition]:
    return (
        TopicPartition(topic.topic, partition)
        for topic in topics
        for partition in topic.partition_ids
    )


def timeout_timer(transactional_id: str) -> Timer:
    """Return the timer of an open transaction."""
    return Timer(transactional_id, TIMEOUT)
