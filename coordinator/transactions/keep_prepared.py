"""Two-phase commit: a prepared transaction, which another system decides about (KIP-939).

A client that starts with ``KeepPreparedTxn`` takes the open transaction over as it is: it is not
aborted, and the producer that wrote it can neither add to it nor end it any more. Its data keep
their identity; the client presents a later epoch, or another id when the epochs are used up (C11).
With ``Enable2Pc`` the transaction has no timeout from then on, also if it was opened with one: so
it stays open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Cancel, Decision, Effect, Now
from barnabas.coordinator.transactions.commands import (
    FENCED,
    NO_FRESH_ID,
    InitProducer,
    Outcome,
    TakeProducerId,
)
from barnabas.coordinator.transactions.state import (
    NEVER_MS,
    NO_PRODUCER_ID,
    Transaction,
    timeout_timer,
    updated_ms,
)

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.transaction_table import TransactionTable


def keep_prepared(
    shard: TransactionTable, transaction: Transaction, command: InitProducer, now: Now
) -> Decision:
    """Take over an open transaction."""
    if command.expected not in {None, transaction.owner, transaction.producer}:
        return FENCED
    producer_id, epoch = transaction.owner
    effects: list[Effect] = []
    if not command.needs_fresh_id(transaction):
        epoch += 1
    elif command.fresh_producer_id == NO_PRODUCER_ID:
        return NO_FRESH_ID
    else:
        producer_id, epoch = command.fresh_producer_id, 0
        effects.append(TakeProducerId(producer_id))
    pinned = command.timeout_ms == NEVER_MS
    prepared = transaction._replace(
        next_producer_id=producer_id,
        next_epoch=epoch,
        timeout_ms=NEVER_MS if pinned else transaction.timeout_ms,
        last_update_ms=updated_ms(transaction, now),
    )
    if pinned:
        effects.append(Cancel(timeout_timer(transaction.transactional_id)))
    outcome = Outcome(
        producer_id=producer_id,
        producer_epoch=epoch,
        ongoing_producer_id=transaction.producer_id,
        ongoing_epoch=transaction.producer_epoch,
    )
    return Decision(outcome, (shard.record(prepared),), effects=tuple(effects))
