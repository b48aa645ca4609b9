"""Transactions whose timeout has expired, and transactional ids that are not used any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import NOTHING, Decision, Effect, Now, Schedule
from barnabas.coordinator.transactions.commands import Expire, TimerExpired, WriteMarkers
from barnabas.coordinator.transactions.end import fence
from barnabas.coordinator.transactions.state import NEVER_MS, State, timeout_timer, tombstone

if TYPE_CHECKING:
    from barnabas.coordinator.transactions.transaction_table import TransactionTable

AGAIN_MS: Final = 1000
"""Time after which a fence without a fresh producer id is retried."""


def time_is_over(shard: TransactionTable, command: TimerExpired, now: Now) -> Decision:
    """Abort a transaction that was open for too long, and fence its producer (C12)."""
    transaction = shard.transactions.get(command.transactional_id)
    if transaction is None or transaction.state != State.ONGOING:
        return NOTHING
    if transaction.timeout_ms == NEVER_MS:
        return NOTHING
    decision = fence(shard, transaction, command.fresh_producer_id, now)
    return decision or Decision(effects=(Schedule(command.timer, now.tick_ms + AGAIN_MS),))


def expire(shard: TransactionTable, command: Expire, now: Now) -> Decision:
    """Delete an idle transactional ID (C13)."""
    transaction = shard.transactions.get(command.transactional_id)
    if transaction is None or not transaction.state.is_idle:
        return NOTHING
    # A wall clock that was moved since the start must not make an id look idle (T1).
    now_ms = min(now.wall_ms, now.tick_ms + shard.drift_ms)
    if now_ms - transaction.last_update_ms < command.idle_ms:
        return NOTHING
    return Decision(records=(tombstone(transaction.transactional_id),))


def begin(shard: TransactionTable, now: Now) -> Iterable[Effect]:
    """Yield the effects of a start: pending markers, and the remaining timeouts."""
    for transaction in shard.transactions.values():
        key = transaction.transactional_id
        if transaction.state.is_decided:
            yield WriteMarkers(key)
        elif transaction.state == State.ONGOING and transaction.timeout_ms != NEVER_MS:
            # The timeout gets neither longer nor negative if the wall clock was set meanwhile (T1).
            passed_ms = min(max(0, now.wall_ms - transaction.start_ms), transaction.timeout_ms)
            at = now.tick_ms + transaction.timeout_ms - passed_ms
            yield Schedule(timeout_timer(key), at)
