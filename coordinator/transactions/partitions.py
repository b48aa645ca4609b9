"""AddPartitionsToTxn, AddOffsetsToTxn and the adding that a write implies (KIP-98, KIP-890)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Decision, Effect, Now, Schedule
from barnabas.coordinator.transactions.commands import AddPartitions, Outcome, VerifyPartitions
from barnabas.coordinator.transactions.state import (
    NEVER_MS,
    State,
    Transaction,
    timeout_timer,
    updated_ms,
)
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.transaction_table import TransactionTable

PARTITIONS_MAX: Final = 100_000
"""Maximum number of partitions of one transaction: its record names them all."""

DONE: Final = Decision(Outcome())


def add(shard: TransactionTable, command: AddPartitions, now: Now) -> Decision:
    """Make partitions part of the transaction, durably, before anything is written to them (P1)."""
    transaction = shard.transactions.get(command.transactional_id)
    if transaction is not None and transaction.state.is_decided:
        # Ahead of the identity: completion may give the producer another, which it knows already.
        return Decision(Outcome(ErrorCode.CONCURRENT_TRANSACTIONS))
    error = _refusal(transaction, command)
    if error or transaction is None:
        return Decision(Outcome(error))
    is_open = transaction.state == State.ONGOING
    if is_open and command.partitions <= transaction.partitions:
        return DONE
    partitions = transaction.partitions if is_open else frozenset()
    partitions |= command.partitions
    if len(partitions) > PARTITIONS_MAX:
        return Decision(Outcome(ErrorCode.INVALID_REQUEST))
    grown = transaction._replace(
        state=State.ONGOING,
        partitions=partitions,
        last_update_ms=updated_ms(transaction, now),
        start_ms=transaction.start_ms if is_open else now.wall_ms,
        transaction_version=transaction.transaction_version
        if is_open
        else command.transaction_version,
    )
    effects: tuple[Effect, ...] = ()
    if not is_open and transaction.timeout_ms != NEVER_MS:
        at = now.tick_ms + transaction.timeout_ms
        effects = (Schedule(timeout_timer(transaction.transactional_id), at),)
    return Decision(Outcome(), (shard.record(grown),), effects=effects)


def verify(shard: TransactionTable, command: VerifyPartitions, _now: Now) -> Decision:
    """Return for each partition whether it is part of the transaction."""
    transaction = shard.transactions.get(command.transactional_id)
    error = _refusal(transaction, command)
    if error or transaction is None:
        return Decision(Outcome(error, partition_errors=dict.fromkeys(command.partitions, error)))
    is_open = transaction.state == State.ONGOING
    members = transaction.partitions if is_open else frozenset()
    return Decision(
        Outcome(
            partition_errors={
                partition: ErrorCode.NONE
                if partition in members
                else ErrorCode.TRANSACTION_ABORTABLE
                for partition in command.partitions
            }
        )
    )


def _refusal(
    transaction: Transaction | None, command: AddPartitions | VerifyPartitions
) -> ErrorCode:
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    claim = (command.producer_id, command.producer_epoch)
    if transaction.is_two_phase_prepared and claim == transaction.owner:
        # The client that took it over may only end it (KIP-939),
        return ErrorCode.INVALID_TXN_STATE
    if transaction.producer_id != command.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.is_two_phase_prepared:
        return ErrorCode.PRODUCER_FENCED  # and its previous producer may do nothing more.
    if transaction.producer_epoch != command.producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    if transaction.state.is_decided:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE
