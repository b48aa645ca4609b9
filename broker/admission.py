"""Which transactional batches of a Produce may be appended (KIP-98, KIP-890).

A batch goes into the log only while its transaction is open with that partition in it (P1). Up to
version 11 the client has added the partition, and here it is verified; from version 12 on writing
adds it, in front of the data in the same journal. Nothing is awaited between the coordinator's word
and the append, so no marker can slip in between (P6): Kafka's verification guard closes a gap that
does not exist here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from broker.catalogue import Partition
from coordinator.transactions.commands import AddPartitions, VerifyPartitions
from coordinator.transactions.state import TRANSACTIONS_V2, TopicPartition
from protocol.errors import ErrorCode
from protocol.records import (
    ATTRIBUTES_LOW_BYTE,
    CONTROL_BIT,
    HEADER_BYTES,
    PRODUCER_ID_POSITION,
    TRANSACTIONAL_BIT,
    read_header,
)

if TYPE_CHECKING:
    from broker.dispatch import RequestContext
    from broker.transactions import Transactions

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


class Writer(NamedTuple):
    """Who writes transactional batches."""

    transactional_id: str | None
    context: RequestContext

    @property
    def api_version(self) -> int:
        """The version of Produce."""
        return self.context.api_version


class Admission(NamedTuple):
    """The verdicts on the batches of one request."""

    refused: dict[TopicPartition, ErrorCode]
    is_concurrent: bool = False
    """Whether something is refused only because the transaction before is still ending."""
    error: ErrorCode = ErrorCode.NONE
    """Why nothing of the request is taken, batches outside of transactions included."""


NOTHING_REFUSED: Final = Admission({})

Batches = list[tuple[Partition, memoryview]]


def admit(transactions: Transactions, writer: Writer, batches: Batches) -> Admission:
    """Ask the coordinator for all transactional ``batches`` of a request at once."""
    if writer.transactional_id is None:
        return Admission({}, error=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers: set[tuple[int, int]] = set()
    refused: dict[TopicPartition, ErrorCode] = {}
    asked: set[TopicPartition] = set()
    for partition, records in batches:
        header = read_header(records)
        producer_id, epoch = header.producer_id, header.producer_epoch
        producers.add((producer_id, epoch))
        entry = partition.log.producers.entry(producer_id)
        if entry is None or epoch > entry.epoch:
            asked.add(_place(partition))
        elif epoch < entry.epoch:
            refused[_place(partition)] = ErrorCode.INVALID_PRODUCER_EPOCH
        elif not (entry.is_in_transaction or entry.duplicate_of(header)):
            # A repeated batch is answered from the log's memory and opens nothing (S4).
            asked.add(_place(partition))
    if len(producers) > 1:
        return Admission({}, error=ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    asked -= refused.keys()
    if not asked:
        return Admission(refused)
    (producer,) = producers
    found = _ask(transactions, writer, producer, frozenset(asked))
    errors = {place: code for place, code in found.items() if code}
    is_concurrent = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
    refused |= {place: _sent(code, writer.api_version) for place, code in errors.items()}
    return Admission(refused, is_concurrent)


def _place(partition: Partition) -> TopicPartition:
    return TopicPartition(partition.topic.name, partition.index)


def _ask(
    transactions: Transactions,
    writer: Writer,
    producer: tuple[int, int],
    asked: frozenset[TopicPartition],
) -> dict[TopicPartition, ErrorCode]:
    key = writer.transactional_id
    if not key:
        return dict.fromkeys(asked, ErrorCode.INVALID_REQUEST)
    if writer.api_version < ADDS_SINCE:
        return transactions.verify(VerifyPartitions(key, *producer, asked))
    code = transactions.add(AddPartitions(key, *producer, asked, TRANSACTIONS_V2))
    if not code:
        transactions.used(key, writer.context)
    return dict.fromkeys(asked, code)


def _sent(code: ErrorCode, version: int) -> ErrorCode:
    """The coordinator's error as a producer is told it, by version."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        return ErrorCode.INVALID_TXN_STATE
    if code in _RETRIABLE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    if code == ErrorCode.CONCURRENT_TRANSACTIONS and version < ADDS_SINCE:
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return code
