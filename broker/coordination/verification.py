"""Verification of the transactional batches of a Produce (KIP-98, KIP-890).

A batch goes into the log only while its transaction is open with that partition in it (P1). Up to
version 11 the client has added the partition, and here it is verified; from version 12 on writing
adds it, before the data in the same journal. Nothing is awaited between the decision of this
broker's coordinator and the append, so no marker can slip in between (P6). If another broker is the
coordinator it is queried first (R1), and its response is judged here once more. A guard for each
partition is dropped by such a marker (``verification_guards.py``).

An open transaction of a producer id belongs to its transactional id only, for which a client needs
its permission. Apache Kafka 4.3.0 trusts any client that knows the producer id. Under access
control no client writes outside of transactions with such an id, either: the log would accept it as
the producer itself, with its next sequence used or its epoch exceeded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.cluster.coordinating.remote_coordinators import NO_WORD, Question
from barnabas.coordinator.transactions.commands import AddPartitions, VerifyPartitions
from barnabas.coordinator.transactions.state import TRANSACTIONS_V2, TopicPartition
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records import (
    ATTRIBUTES_LOW_BYTE,
    CONTROL_BIT,
    HEADER_BYTES,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
    read_header,
    read_producer,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster.coordinating.remote_coordinators import Answer
    from barnabas.broker.cluster.coordinating.verification_guards import Guards, Log

ADDS_SINCE: Final = 12
ABORTABLE_SINCE: Final = 11
_KINDS: Final = TRANSACTIONAL_BIT | CONTROL_BIT

_RETRIABLE: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    NO_WORD,
}


def is_transactional(records: memoryview | None) -> bool:
    """Return whether a batch is marked as part of a transaction.

    False for batches that no log accepts: control batches (P5), and batches without a producer.
    """
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and records[ATTRIBUTES_LOW_BYTE] & _KINDS == TRANSACTIONAL_BIT
        and records[PRODUCER_ID_POSITION] < 0x80
    )


def is_idempotent(records: memoryview | None) -> bool:
    """Return whether a batch has a producer and is not marked as part of a transaction."""
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and not records[ATTRIBUTES_LOW_BYTE] & _KINDS
        and records[PRODUCER_ID_POSITION] < 0x80
    )


class Coordinator(Protocol):
    """Parts of the transaction coordinator that verification uses."""

    def has_producer(self, transactional_id: str, producer_id: int) -> bool:
        """Return whether a known transactional ID has this producer ID."""

    def add(self, command: AddPartitions) -> ErrorCode:
        """Make partitions part of a transaction."""

    def verify(self, command: VerifyPartitions) -> dict[TopicPartition, ErrorCode]:
        """Return for each partition whether it is part of the transaction."""


class Writer(NamedTuple):
    """The producer of transactional batches."""

    transactional_id: str | None
    api_version: int
    """Version of the Produce request."""


class Verification(NamedTuple):
    """The verdicts on the batches of one request."""

    refused: dict[TopicPartition, ErrorCode]
    is_pending: bool = False
    """Whether a batch is refused only temporarily.

    The previous transaction has not ended yet, or there is a ``question``.
    """
    error: ErrorCode = ErrorCode.NONE
    """The error of the whole request, batches outside of transactions included, or NONE."""
    has_added: bool = False
    """Whether the coordinator has made partitions part of the transaction."""
    question: Question | None = None
    """The request to another coordinator that has to come first, or None."""


NOTHING_REFUSED: Final = Verification({})

Batches = list[tuple[TopicPartition, "Log", memoryview]]
"""The partition, the log and the bytes of each batch."""


def verify(
    transactions: Coordinator,
    writer: Writer,
    batches: Batches,
    guards: Guards | None = None,
    answer: Answer | None = None,
) -> Verification:
    """Verify all transactional ``batches`` of a request at once.

    ``guards``: of transactions of other brokers, or None for a single broker. ``answer`` is that of
    another coordinator about these batches; partitions that it admits must be appended now.
    """
    key = writer.transactional_id
    if key is None:
        return Verification({}, error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producer: tuple[int, int] | None = None
    refused: dict[TopicPartition, ErrorCode] = {}
    unverified: dict[TopicPartition, Log] = {}
    for topic_partition, log, records in batches:
        claim = read_producer(records)
        if producer is None:
            producer = claim
        elif claim != producer:
            return Verification({}, error=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        producer_id, epoch = claim
        entry = log.producers.entry(producer_id)
        if entry is None or epoch > entry.epoch:
            unverified[topic_partition] = log
            if entry is None and guards is not None and _is_ahead(guards, log, records):
                refused[topic_partition] = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif epoch < entry.epoch:
            refused[topic_partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif not (
            (
                entry.is_in_transaction
                and (
                    transactions.has_producer(key, producer_id)
                    or (guards is not None and guards.has_verified(log, producer_id, key))
                )
            )
            or entry.duplicate_of(read_header(records))
        ):
            # A repeated batch is acknowledged from the log's memory and opens nothing (S4).
            unverified[topic_partition] = log
    for topic_partition in refused:
        unverified.pop(topic_partition, None)
    if producer is None or not unverified:
        return Verification(refused)
    version = writer.api_version
    if answer is not None:
        errors = {
            topic_partition: code
            for topic_partition, log in unverified.items()
            if (code := answer.refusal(topic_partition, log))
        }
    else:
        errors = _errors_of(transactions, writer, producer, frozenset(unverified))
    refused |= {each: _sent(code, version) for each, code in errors.items()}
    if answer is not None:
        return Verification(refused)
    codes = errors.values()
    if guards is not None and not _RETRIABLE.isdisjoint(codes):
        _note_beginnings(guards, batches, unverified)
    if key and guards is not None and ErrorCode.NOT_COORDINATOR in codes:
        question = Question(key, *producer, unverified, adds=version >= ADDS_SINCE)
        return Verification(refused, is_pending=True, question=question)
    is_concurrent = ErrorCode.CONCURRENT_TRANSACTIONS in codes
    has_added = not errors and version >= ADDS_SINCE
    return Verification(refused, is_concurrent, has_added=has_added)


def _is_ahead(guards: Guards, log: Log, records: memoryview) -> bool:
    """Return whether the producer's first batch has to be appended before this one."""
    header = read_header(records)
    claim = header.producer_id, header.producer_epoch
    return guards.is_ahead(log, *claim, header.base_sequence)


def _note_beginnings(
    guards: Guards, batches: Batches, unverified: Mapping[TopicPartition, Log]
) -> None:
    """Record the first batches of producers that their logs do not know."""
    for topic_partition, log, records in batches:
        header = read_header(records)
        if topic_partition in unverified and log.producers.entry(header.producer_id) is None:
            claim = header.producer_id, header.producer_epoch
            guards.note_beginning(log, *claim, header.base_sequence)


def _errors_of(
    transactions: Coordinator,
    writer: Writer,
    producer: tuple[int, int],
    unverified: frozenset[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """Return the coordinator's errors for some partitions."""
    key = writer.transactional_id
    if not key:
        return dict.fromkeys(unverified, ErrorCode.INVALID_REQUEST)
    producer_id, epoch = producer
    if writer.api_version < ADDS_SINCE:
        verdicts = transactions.verify(VerifyPartitions(key, producer_id, epoch, unverified))
        return {topic_partition: code for topic_partition, code in verdicts.items() if code}
    code = transactions.add(AddPartitions(key, producer_id, epoch, unverified, TRANSACTIONS_V2))
    return dict.fromkeys(unverified, code) if code else {}


def _sent(code: ErrorCode, version: int) -> ErrorCode:
    """Return the error that a producer of this version receives for a coordinator's error."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if code in _RETRIABLE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
