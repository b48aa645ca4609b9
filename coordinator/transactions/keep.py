"""Two-phase commit: a transaction that somebody else will decide about is kept (KIP-939).

Whoever asks for it under ``KeepPreparedTxn`` takes the open transaction over as it is: it is not
aborted, and the producer that wrote it can neither add to it nor end it any more. Its data keep
their epoch; who took it over presents a later one. With ``Enable2Pc`` it has no timeout from then
on, also if it was opened with one: that is what pins it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.decision import Cancel, Decision, Effect, Now
from coordinator.transactions.commands import InitProducer, Outcome
from coordinator.transactions.names import timeout_timer
from coordinator.transactions.state import (
    NEVER_MS,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Transaction,
    updated_ms,
)
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.transactions.shard import TransactionShard


def keep(
    shard: TransactionShard, transaction: Transaction, command: InitProducer, now: Now
) -> Decision:
    """Take over an open transaction."""
    owner = owned(transaction)
    expected = command.expected_epoch
    if expected not in {NO_EPOCH, owner.producer_epoch, transaction.producer_epoch}:
        return Decision(Outcome(ErrorCode.PRODUCER_FENCED))
    # Where the epochs are used up, the last one stays: the new owner shares it with the old.
    epoch = owner.producer_epoch + (0 if owner.is_exhausted else 1)
    pinned = command.timeout_ms == NEVER_MS
    kept = transaction._replace(
        next_producer_id=transaction.producer_id,
        next_epoch=epoch,
        timeout_ms=NEVER_MS if pinned else transaction.timeout_ms,
        last_update_ms=updated_ms(transaction, now),
    )
    effects: tuple[Effect, ...] = ()
    if pinned:
        effects = (Cancel(timeout_timer(transaction.transactional_id)),)
    outcome = Outcome(
        producer_id=transaction.producer_id,
        producer_epoch=epoch,
        ongoing_producer_id=transaction.producer_id,
        ongoing_epoch=transaction.producer_epoch,
    )
    return Decision(outcome, (shard.record(kept),), effects=effects)


def owned(transaction: Transaction) -> Transaction:
    """The transaction with the epoch that its present owner presents."""
    if transaction.next_epoch == NO_EPOCH:
        return transaction
    return transaction._replace(
        producer_epoch=transaction.next_epoch, next_producer_id=NO_PRODUCER_ID, next_epoch=NO_EPOCH
    )
