"""The state machine of one partition of ``__transaction_state``: which code decides what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from barnabas.coordinator.decision import Decision, Effect, Now
from barnabas.coordinator.transactions import end, initialize, partitions, timeouts
from barnabas.coordinator.transactions.commands import (
    AddPartitions,
    Command,
    EndTransaction,
    Expire,
    InitProducer,
    MarkersWritten,
    TimerExpired,
    VerifyPartitions,
)
from barnabas.coordinator.transactions.transaction_table import TransactionTable

_DECIDERS: Final[dict[type, Callable[[TransactionTable, Any, Now], Decision]]] = {
    InitProducer: initialize.initialize,
    AddPartitions: partitions.add,
    VerifyPartitions: partitions.verify,
    EndTransaction: end.end,
    MarkersWritten: end.complete,
    TimerExpired: timeouts.time_is_over,
    Expire: timeouts.expire,
}


class TransactionShard(TransactionTable):
    """Transactional ids whose hash falls to one partition."""

    def decide(self, command: Command, now: Now) -> Decision:
        """Return the decision on a command; changes nothing."""
        return _DECIDERS[type(command)](self, command, now)

    def begin(self, now: Now) -> tuple[Effect, ...]:
        """Return the effects after a start."""
        self.drift_ms = now.wall_ms - now.tick_ms
        return tuple(timeouts.begin(self, now))
