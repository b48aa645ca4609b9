"""Which transactional batches of a Produce may be appended (KIP-98, KIP-890).

A batch goes into the log only while its transaction is open with that partition in it (P1). Up to
version 11 the client has added the partition, and here it is verified; from version 12 on writing
adds it, in front of the data in the same journal. Nothing is awaited between the coordinator's word
and the append, so no marker can slip in between (P6): Kafka's verification guard closes a gap that
does not exist here.

An open transaction of a producer id is nobody's but of its transactional id's, which is what a
client has its right for. Apache Kafka 4.3.0 takes the word of whoever knows the producer id. Where
there is access control nobody writes outside of transactions with such an id, either: in a log that
would be the producer itself, its next sequence used or its epoch outdone.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

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
from barnabas.storage.producers import ProducerState

ADDS_SINCE: Final = 12
ABORTABLE_SINCE: Final = 11
_KINDS: Final = TRANSACTIONAL_BIT | CONTROL_BIT

_RETRIABLE: Final = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def is_transactional(records: memoryview | None) -> bool:
    """Whether a batch says that it is part of a producer's transaction.

    Not what no log takes anyway: control batches (P5), and batches without a producer.
    """
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and records[ATTRIBUTES_LOW_BYTE] & _KINDS == TRANSACTIONAL_BIT
        and records[PRODUCER_ID_POSITION] < 0x80
    )


def is_idempotent(records: memoryview | None) -> bool:
    """Whether a batch has a producer and says that it is part of no transaction."""
    return (
        records is not None
        and len(records) >= HEADER_BYTES
        and not records[ATTRIBUTES_LOW_BYTE] & _KINDS
        and records[PRODUCER_ID_POSITION] < 0x80
    )


class Coordinator(Protocol):
    """What is needed of the transaction coordinator."""

    def has_producer(self, transactional_id: str, producer_id: int) -> bool:
        """Whether this is the producer id of a transactional id that is known."""

    def add(self, command: AddPartitions) -> ErrorCode:
        """Make partitions part of a transaction."""

    def verify(self, command: VerifyPartitions) -> dict[TopicPartition, ErrorCode]:
        """Say of each partition whether it is part of the transaction."""


class Writer(NamedTuple):
    """Who writes transactional batches."""

    transactional_id: str | None
    api_version: int
    """Of the Produce request."""


class Verification(NamedTuple):
    """The verdicts on the batches of one request."""

    refused: dict[TopicPartition, ErrorCode]
    is_concurrent: bool = False
    """Whether something is refused only because the transaction before is still ending."""
    error: ErrorCode = ErrorCode.NONE
    """Why nothing of the request is taken, batches outside of transactions included."""
    has_added: bool = False
    """Whether the coordinator has made partitions part of the transaction."""


NOTHING_REFUSED: Final = Verification({})

Batches = list[tuple[TopicPartition, ProducerState, memoryview]]
"""Where each batch goes, who has written there, and the batch."""


def verify(transactions: Coordinator, writer: Writer, batches: Batches) -> Verification:
    """Let the coordinator judge all transactional ``batches`` of a request at once."""
    key = writer.transactional_id
    if key is None:
        return Verification({}, error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producer: tuple[int, int] | None = None
    refused: dict[TopicPartition, ErrorCode] = {}
    unverified: set[TopicPartition] = set()
    for topic_partition, producers, records in batches:
        claim = read_producer(records)
        if producer is None:
            producer = claim
        elif claim != producer:
            return Verification({}, error=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        producer_id, epoch = claim
        entry = producers.entry(producer_id)
        if entry is None or epoch > entry.epoch:
            unverified.add(topic_partition)
        elif epoch < entry.epoch:
            refused[topic_partition] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif not (
            (entry.is_in_transaction and transactions.has_producer(key, producer_id))
            or entry.duplicate_of(read_header(records))
        ):
            # A repeated batch is answered from the log's memory and opens nothing (S4).
            unverified.add(topic_partition)
    unverified -= refused.keys()
    if producer is None or not unverified:
        return Verification(refused)
    errors = _errors_of(transactions, writer, producer, frozenset(unverified))
    is_concurrent = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
    refused |= {
        topic_partition: _sent(code, writer.api_version) for topic_partition, code in errors.items()
    }
    has_added = not errors and writer.api_version >= ADDS_SINCE
    return Verification(refused, is_concurrent, has_added=has_added)


def _errors_of(
    transactions: Coordinator,
    writer: Writer,
    producer: tuple[int, int],
    unverified: frozenset[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    """What the coordinator has against some partitions."""
    key = writer.transactional_id
    if not key:
        return dict.fromkeys(unverified, ErrorCode.INVALID_REQUEST)
    if writer.api_version < ADDS_SINCE:
        verdicts = transactions.verify(VerifyPartitions(key, *producer, unverified))
        return {topic_partition: code for topic_partition, code in verdicts.items() if code}
    code = transactions.add(AddPartitions(key, *producer, unverified, TRANSACTIONS_V2))
    return dict.fromkeys(unverified, code) if code else {}


def _sent(code: ErrorCode, version: int) -> ErrorCode:
    """The coordinator's error as a producer knows it, by version."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if code in _RETRIABLE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
