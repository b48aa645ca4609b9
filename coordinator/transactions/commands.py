"""Commands of clients and timers to the transaction coordinator: for one transactional id each.

A command that may need a producer id that no producer had yet contains one; the effect
``TakeProducerId`` reports that it was used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from barnabas.coordinator.decision import Decision, Timer
from barnabas.coordinator.transactions.state import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    TopicPartition,
    Transaction,
)
from barnabas.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class InitProducer:
    """Start a producer under a transactional id: the producer that had it before is fenced."""

    transactional_id: str
    timeout_ms: int
    expected_producer_id: int = NO_PRODUCER_ID
    expected_epoch: int = NO_EPOCH
    """The producer's present id and epoch (KIP-360), or both -1."""
    keep_prepared: bool = False
    """Take an open transaction over as prepared instead of aborting it (KIP-939)."""
    fresh_producer_id: int = NO_PRODUCER_ID
    oldest_producer_id: int = 0
    """Epochs of an id below may have been given to a producer by the original of a restored
    directory."""

    @property
    def expected(self) -> tuple[int, int] | None:
        """The producer's present id and epoch, or None if the request has none."""
        if self.expected_epoch == NO_EPOCH:
            return None
        return self.expected_producer_id, self.expected_epoch

    def needs_fresh_id(self, transaction: Transaction) -> bool:
        """Whether the producer cannot get the next epoch of its present producer ID.

        All epochs are used up, or the next one may be that of a producer that the original of a
        restored directory has served since: neither would fence the other.
        """
        return transaction.is_exhausted or transaction.owner[0] < self.oldest_producer_id


class AddPartitions(NamedTuple):
    """Make partitions part of the transaction, which begins with the first."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]
    transaction_version: int
    """CLASSIC when the client asks, TRANSACTIONS_V2 when a write implies it (KIP-890)."""


@dataclass(frozen=True, slots=True)
class VerifyPartitions:
    """Check whether partitions are part of the transaction (KIP-890)."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class EndTransaction(NamedTuple):
    """Commit or abort."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    commit: bool
    transaction_version: int
    fresh_producer_id: int = NO_PRODUCER_ID


class MarkersWritten(NamedTuple):
    """Every partition of a decided transaction has its marker."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class TimerExpired:
    """The transaction's timeout has expired."""

    timer: Timer
    fresh_producer_id: int = NO_PRODUCER_ID

    @property
    def transactional_id(self) -> str:
        """Transactional ID of the transaction."""
        return self.timer.key


@dataclass(frozen=True, slots=True)
class Expire:
    """Forget a transactional id that was not used for long."""

    transactional_id: str
    idle_ms: int


Command: TypeAlias = (
    InitProducer
    | AddPartitions
    | VerifyPartitions
    | EndTransaction
    | MarkersWritten
    | TimerExpired
    | Expire
)


class Outcome(NamedTuple):
    """The response to a command."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    """Id and epoch that the producer must present from now on, if the command can change them."""
    ongoing_producer_id: int = NO_PRODUCER_ID
    ongoing_epoch: int = NO_EPOCH
    """Id and epoch of the open transaction that was taken over as prepared."""
    partition_errors: Mapping[TopicPartition, ErrorCode] = {}


DONE: Final = Outcome()
FENCED: Final = Decision(Outcome(ErrorCode.PRODUCER_FENCED))
NO_FRESH_ID: Final = Decision(Outcome(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
"""Clients ask again: the next block of producer ids is on its way to the disk."""


class TakeProducerId(NamedTuple):
    """Effect: a producer now has the new producer id that its command contained."""

    producer_id: int


class WriteMarkers(NamedTuple):
    """Effect: write the markers of a decided transaction to every partition that awaits one."""

    transactional_id: str


class MarkersPlaced(NamedTuple):
    """Change: partitions have their marker, or were deleted and need none."""

    transactional_id: str
    partitions: Collection[TopicPartition]


class MarkersLost(NamedTuple):
    """Change: markers that were not durable may be lost, so all partitions need a marker again."""

    transactional_id: str
