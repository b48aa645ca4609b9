"""What has happened to transactions since the start, in plain integers that metrics look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.transactions.commands import Command, InitProducer, TimerExpired
from barnabas.coordinator.transactions.state import State, Transaction

if TYPE_CHECKING:
    from barnabas.coordinator.decision import Decision
    from barnabas.coordinator.transactions.transaction_table import TransactionTable

BY_CLIENT: Final = "client"
BY_TIMEOUT: Final = "timeout"
BY_FENCING: Final = "fenced"
"""Whose doing an abort was: the producer's, its timeout's, a new instance's or an operator's."""


class TransactionCounts:
    """Counters of one coordinator; all only grow."""

    __slots__ = (
        "aborted",
        "begun",
        "committed",
        "markers_delayed",
        "markers_written",
        "requests_given_up",
        "requests_held",
    )

    def __init__(self) -> None:
        self.begun = 0
        self.committed = 0
        self.aborted = {BY_CLIENT: 0, BY_TIMEOUT: 0, BY_FENCING: 0}
        self.requests_held = 0
        """How often a request waited for the transition in flight."""
        self.requests_given_up = 0
        """How often it waited in vain: it is answered CONCURRENT_TRANSACTIONS then."""
        self.markers_written = 0
        self.markers_delayed = 0
        """How often a marker could not be written, and is tried again."""

    def moves(self, known: TransactionTable, decision: Decision, command: Command) -> None:
        """Count a transition that is about to happen; the abort of nothing (KIP-890) is none."""
        after: Transaction | None = decision.records[-1].meaning
        if after is None:
            return
        before = known.transactions.get(after.transactional_id)
        was_open = before is not None and before.state == State.ONGOING
        if after.state == State.ONGOING and not was_open:
            self.begun += 1
        elif after.state == State.PREPARE_COMMIT:
            self.committed += 1
        elif after.state == State.PREPARE_ABORT and was_open:
            self.aborted[_reason(command)] += 1


def _reason(command: Command) -> str:
    if isinstance(command, TimerExpired):
        return BY_TIMEOUT
    return BY_FENCING if isinstance(command, InitProducer) else BY_CLIENT
