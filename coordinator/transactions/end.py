"""EndTxn in all transaction versions, the fence that aborts for another client, and completion.

The response is true when the Prepare record is durable: from then on the decision is final (C3),
and the markers follow in any case. The tables have the outcome of each request in each state. While
markers are being written every request gets CONCURRENT_TRANSACTIONS: the state after them is only
known for sure when the request is sent again (Kafka's "pending").
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import NOTHING, Cancel, Decision, Effect, Now
from barnabas.coordinator.transactions.commands import (
    DONE,
    NO_FRESH_ID,
    EndTransaction,
    MarkersWritten,
    Outcome,
    TakeProducerId,
    WriteMarkers,
)
from barnabas.coordinator.transactions.state import (
    CLASSIC,
    LARGEST_CLIENT_EPOCH,
    LARGEST_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    TRANSACTIONS_V2,
    State,
    Transaction,
    timeout_timer,
    updated_ms,
)
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.transaction_table import TransactionTable


class Step(Enum):
    """Outcome of a request that is not an error."""

    PREPARE = "prepare"
    PREPARE_EMPTY = "prepare an abort of nothing"
    DONE = "nothing: this has happened already"


COMMIT: Final = True
ABORT: Final = False
_E: Final = ErrorCode

CLASSIC_TABLE: Final[dict[tuple[bool, State], Step | ErrorCode]] = {
    (COMMIT, State.EMPTY): _E.INVALID_TXN_STATE,
    (COMMIT, State.ONGOING): Step.PREPARE,
    (COMMIT, State.COMPLETE_COMMIT): Step.DONE,
    (COMMIT, State.COMPLETE_ABORT): _E.INVALID_TXN_STATE,
    (ABORT, State.EMPTY): _E.INVALID_TXN_STATE,
    (ABORT, State.ONGOING): Step.PREPARE,
    (ABORT, State.COMPLETE_COMMIT): _E.INVALID_TXN_STATE,
    (ABORT, State.COMPLETE_ABORT): Step.DONE,
}
"""EndTxn up to version 4, by decision and state."""

PRESENT: Final = "present"
RETRY: Final = "retry"

V2_TABLE: Final[dict[tuple[bool, str, State], Step | ErrorCode]] = {
    (COMMIT, PRESENT, State.EMPTY): _E.INVALID_TXN_STATE,
    (COMMIT, PRESENT, State.ONGOING): Step.PREPARE,
    (COMMIT, PRESENT, State.COMPLETE_COMMIT): _E.INVALID_TXN_STATE,
    (COMMIT, PRESENT, State.COMPLETE_ABORT): _E.INVALID_TXN_STATE,
    (COMMIT, RETRY, State.EMPTY): _E.PRODUCER_FENCED,
    (COMMIT, RETRY, State.ONGOING): _E.PRODUCER_FENCED,
    (COMMIT, RETRY, State.COMPLETE_COMMIT): Step.DONE,
    (COMMIT, RETRY, State.COMPLETE_ABORT): _E.PRODUCER_FENCED,  # KAFKA-20785
    (ABORT, PRESENT, State.EMPTY): Step.PREPARE_EMPTY,
    (ABORT, PRESENT, State.ONGOING): Step.PREPARE,
    (ABORT, PRESENT, State.COMPLETE_COMMIT): Step.PREPARE_EMPTY,
    (ABORT, PRESENT, State.COMPLETE_ABORT): Step.PREPARE_EMPTY,
    (ABORT, RETRY, State.EMPTY): _E.PRODUCER_FENCED,
    (ABORT, RETRY, State.ONGOING): _E.PRODUCER_FENCED,
    (ABORT, RETRY, State.COMPLETE_COMMIT): _E.INVALID_TXN_STATE,
    (ABORT, RETRY, State.COMPLETE_ABORT): Step.DONE,
}
"""Effects of EndTxn from version 5 on, by decision, by epoch of the request, and by state."""


# ------------------------------------------------------------------------------------------ EndTxn


def end(shard: TransactionTable, command: EndTransaction, now: Now) -> Decision:
    """Decide the transaction, or return the error."""
    transaction = shard.transactions.get(command.transactional_id)
    if transaction is None:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if command.transaction_version < TRANSACTIONS_V2:
        step = _classic_step(transaction, command)
    else:
        step = _v2_step(transaction, command)
    if isinstance(step, ErrorCode):
        return _refused(step)
    if step is Step.DONE:
        return Decision(_after(transaction, command))
    if step is Step.PREPARE_EMPTY:
        # Nothing was added; in Kafka the abort of nothing starts with its request.
        transaction = transaction._replace(partitions=frozenset(), start_ms=now.wall_ms)
    prepared = _prepared(
        transaction,
        State.PREPARE_COMMIT if command.commit else State.PREPARE_ABORT,
        command.fresh_producer_id,
        now,
        bump=command.transaction_version >= TRANSACTIONS_V2,
    )
    if prepared is None:
        return NO_FRESH_ID
    return _decided(shard, prepared, _after(prepared, command), command.fresh_producer_id)


def _classic_step(transaction: Transaction, command: EndTransaction) -> Step | ErrorCode:
    if (command.producer_id, command.producer_epoch) != transaction.owner:
        return _not_the_owner(transaction, command.producer_id)
    if transaction.state.is_decided:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return CLASSIC_TABLE[command.commit, transaction.state]


def _v2_step(transaction: Transaction, command: EndTransaction) -> Step | ErrorCode:
    # Ahead of the identity: the producer may have its next one already, which comes into force
    # with completion.
    if transaction.state.is_decided:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    claim = (command.producer_id, command.producer_epoch)
    if claim == transaction.owner:
        kind = PRESENT
    elif claim == _ended_by(transaction):
        kind = RETRY
    else:
        return _not_the_owner(transaction, command.producer_id)
    return V2_TABLE[command.commit, kind, transaction.state]


def _not_the_owner(transaction: Transaction, producer_id: int) -> ErrorCode:
    if producer_id in {transaction.producer_id, transaction.owner[0]}:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.INVALID_PRODUCER_ID_MAPPING


def _ended_by(transaction: Transaction) -> tuple[int, int] | None:
    """Return the producer that ended the latest transaction, with its epoch before the bump.

    None for transaction protocol v1, which bumps nothing: a producer with the previous epoch is a
    zombie, and does not learn that its transaction is committed (stricter than Kafka).
    """
    if transaction.transaction_version < TRANSACTIONS_V2:
        return None
    # The epochs were used up: the request was sent with the previous producer id.
    if transaction.producer_epoch == 0:
        return transaction.previous_producer_id, LARGEST_CLIENT_EPOCH
    return transaction.producer_id, transaction.producer_epoch - 1


def _refused(error: ErrorCode) -> Decision:
    return Decision(Outcome(error))


def _after(transaction: Transaction, command: EndTransaction) -> Outcome:
    """Return the next producer ID and epoch, which a response of protocol v1 lacks."""
    if command.transaction_version < TRANSACTIONS_V2:
        return DONE
    producer_id, epoch = _next_producer(transaction)
    return Outcome(producer_id=producer_id, producer_epoch=epoch)


# ------------------------------------------------------------------------------------------- fence


def fence(
    shard: TransactionTable, transaction: Transaction, fresh_producer_id: int, now: Now
) -> Decision | None:
    """Abort an open transaction for another client, so that its producer is fenced (C5, C10).

    Returns None if the epochs are used up and there is no new producer id.
    """
    is_v2 = shard.transaction_version >= TRANSACTIONS_V2
    fenced = _prepared(
        transaction,
        State.PREPARE_ABORT,
        fresh_producer_id if is_v2 else NO_PRODUCER_ID,
        now,
        bump=True,
        rotates=is_v2,
    )
    if fenced is None:
        return None
    if not is_v2:
        # No client received this epoch: there is no request to recognise by it.
        fenced = fenced._replace(last_epoch=NO_EPOCH)
    concurrent = Outcome(ErrorCode.CONCURRENT_TRANSACTIONS)
    return _decided(shard, fenced, concurrent, fresh_producer_id)


# ------------------------------------------------------------------------------- prepare, complete


def _prepared(
    transaction: Transaction,
    state: State,
    fresh_producer_id: int,
    now: Now,
    *,
    bump: bool,
    rotates: bool = True,
) -> Transaction | None:
    """Return the transaction as decided, or None if it needs a fresh producer id and has none.

    With ``bump`` its markers have an epoch that no data has, so that late data is refused, and late
    markers too (M4).
    """
    owner_id, epoch = transaction.owner
    is_handed_on = owner_id != transaction.producer_id
    last_epoch = NO_EPOCH if is_handed_on else transaction.last_epoch
    # The largest epoch cannot be open; should it be, it ends rather than hangs (KAFKA-20090).
    if bump and epoch < LARGEST_EPOCH:
        epoch, last_epoch = epoch + 1, epoch
    next_producer_id, next_epoch = NO_PRODUCER_ID, NO_EPOCH
    if is_handed_on:
        # The markers follow the data, under whose id the epochs were used up; the bump is of the
        # owner's.
        next_producer_id, next_epoch = owner_id, epoch
        epoch = min(transaction.producer_epoch + 1, LARGEST_EPOCH)
    if bump and rotates and transaction.is_exhausted:
        if fresh_producer_id == NO_PRODUCER_ID:
            return None
        next_producer_id, next_epoch = fresh_producer_id, NO_EPOCH
    return transaction._replace(
        state=state,
        last_update_ms=updated_ms(transaction, now),
        producer_epoch=epoch,
        last_epoch=last_epoch,
        next_producer_id=next_producer_id,
        next_epoch=next_epoch,
        transaction_version=TRANSACTIONS_V2 if bump and rotates else CLASSIC,
    )


def _decided(
    shard: TransactionTable, prepared: Transaction, outcome: Outcome, fresh_producer_id: int
) -> Decision:
    key = prepared.transactional_id
    effects: list[Effect] = [Cancel(timeout_timer(key)), WriteMarkers(key)]
    if prepared.next_producer_id == fresh_producer_id != NO_PRODUCER_ID:
        effects.insert(0, TakeProducerId(fresh_producer_id))
    return Decision(outcome, (shard.record(prepared),), effects=tuple(effects))


def complete(shard: TransactionTable, command: MarkersWritten, now: Now) -> Decision:
    """Complete a decided transaction, which has all its markers."""
    transaction = shard.transactions.get(command.transactional_id)
    if transaction is None or not transaction.state.is_decided:
        return NOTHING
    if transaction.producer != (command.producer_id, command.producer_epoch):
        return NOTHING
    assert not shard.awaiting_markers(command.transactional_id)
    return Decision(records=(shard.record(_completed(transaction, now)),))


def _next_producer(transaction: Transaction) -> tuple[int, int]:
    """Return the producer id and epoch that apply once the transaction is complete."""
    if transaction.next_producer_id == NO_PRODUCER_ID:
        return transaction.producer
    return transaction.next_producer_id, max(transaction.next_epoch, 0)


def _completed(prepared: Transaction, now: Now) -> Transaction:
    producer_id, epoch = _next_producer(prepared)
    rotates = producer_id != prepared.producer_id
    return prepared._replace(
        state=State.COMPLETE_COMMIT if prepared.commits else State.COMPLETE_ABORT,
        partitions=frozenset(),
        last_update_ms=updated_ms(prepared, now),
        producer_id=producer_id,
        producer_epoch=epoch,
        previous_producer_id=prepared.producer_id if rotates else prepared.previous_producer_id,
        next_producer_id=NO_PRODUCER_ID,
        next_epoch=NO_EPOCH,
    )
