"""InitProducerId: a producer starts, and the one before it is fenced (KIP-98, 360).

A success means that no transaction of the id is open anywhere and no earlier epoch is accepted any
more (C5). If one is open it is aborted first, and the response is CONCURRENT_TRANSACTIONS: when
that is done, the repeated request gets the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Decision, Now
from barnabas.coordinator.transactions.commands import (
    FENCED,
    NO_FRESH_ID,
    InitProducer,
    Outcome,
    TakeProducerId,
)
from barnabas.coordinator.transactions.end import fence
from barnabas.coordinator.transactions.keep_prepared import keep_prepared
from barnabas.coordinator.transactions.state import (
    LARGEST_CLIENT_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    State,
    Transaction,
    updated_ms,
)
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.transaction_table import TransactionTable

_CONCURRENT: Final = Decision(Outcome(ErrorCode.CONCURRENT_TRANSACTIONS))


def initialize(shard: TransactionTable, command: InitProducer, now: Now) -> Decision:
    """Assign the producer an epoch that fences all earlier ones."""
    transaction = shard.transactions.get(command.transactional_id)
    if transaction is None:
        return _create(shard, command, now)
    if transaction.state.is_decided:
        return _CONCURRENT  # Ahead of the identity: completion may give the producer another.
    if not _may_be_the_owner(transaction, command):
        return FENCED
    if transaction.state == State.ONGOING:
        if command.keep_prepared:
            return keep_prepared(shard, transaction, command, now)
        return _abort_first(shard, transaction, command, now)
    return _bump(shard, transaction, command, now)


def _create(shard: TransactionTable, command: InitProducer, now: Now) -> Decision:
    if command.fresh_producer_id == NO_PRODUCER_ID:
        return NO_FRESH_ID
    new = Transaction(command.transactional_id, command.fresh_producer_id, 0, command.timeout_ms)
    return _begun(shard, new, command, now)


def _may_be_the_owner(transaction: Transaction, command: InitProducer) -> bool:
    """Return whether this transactional ID has the expected producer ID, or had it before."""
    expected = command.expected_producer_id
    if expected in {NO_PRODUCER_ID, transaction.producer_id, transaction.owner[0]}:
        return True
    if expected != transaction.previous_producer_id:
        return False
    if command.expected_epoch >= LARGEST_CLIENT_EPOCH:
        return True
    # After a restore the id is exchanged before its epochs are used up.
    return transaction.producer_epoch == 0 and command.expected_epoch == transaction.last_epoch


def _abort_first(
    shard: TransactionTable, transaction: Transaction, command: InitProducer, now: Now
) -> Decision:
    """Abort the open transaction; a fenced producer must not (stricter than Kafka)."""
    if command.expected not in {None, transaction.owner}:
        return FENCED
    decision = fence(shard, transaction, command.fresh_producer_id, now)
    return decision or NO_FRESH_ID


def _bump(
    shard: TransactionTable, transaction: Transaction, command: InitProducer, now: Now
) -> Decision:
    expected = command.expected_epoch
    if expected == NO_EPOCH:
        last_epoch = NO_EPOCH
    elif expected == transaction.last_epoch:
        # The same request again: its response was lost, its epoch was not (C8).
        return _begun(shard, transaction, command, now)
    elif command.expected == transaction.producer:
        last_epoch = transaction.producer_epoch
    else:
        return FENCED
    if not command.needs_fresh_id(transaction):
        bumped = transaction._replace(
            producer_epoch=transaction.producer_epoch + 1, last_epoch=last_epoch
        )
        return _begun(shard, bumped, command, now)
    if command.fresh_producer_id == NO_PRODUCER_ID:
        return NO_FRESH_ID
    rotated = transaction._replace(
        producer_id=command.fresh_producer_id,
        producer_epoch=0,
        previous_producer_id=transaction.producer_id,
        last_epoch=last_epoch,
    )
    return _begun(shard, rotated, command, now)


def _begun(
    shard: TransactionTable, transaction: Transaction, command: InitProducer, now: Now
) -> Decision:
    """Return the decision that gives the producer its epoch, without a transaction."""
    begun = transaction._replace(
        timeout_ms=command.timeout_ms,
        state=State.EMPTY,
        partitions=frozenset(),
        start_ms=NO_TIME,
        last_update_ms=updated_ms(transaction, now),
        next_producer_id=NO_PRODUCER_ID,
    )
    fresh = command.fresh_producer_id
    is_used = fresh != NO_PRODUCER_ID and begun.producer_id == fresh
    return Decision(
        Outcome(producer_id=begun.producer_id, producer_epoch=begun.producer_epoch),
        (shard.record(begun),),
        effects=(TakeProducerId(fresh),) if is_used else (),
    )
