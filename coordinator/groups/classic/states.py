"""The states of a classic group, and which may follow which."""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import Final


class State(Enum):
    """Named as Kafka names them; a group that was removed has no state (Kafka says Dead)."""

    EMPTY = "Empty"
    """The group has no members; it may have offsets, and ids of members yet to join."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """The coordinator waits for JoinGroup requests of the members."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """The generation is complete; the coordinator waits for its leader's assignments."""
    STABLE = "Stable"
    """Every member has an assignment."""


PREVIOUS: Final = MappingProxyType(
    {
        State.EMPTY: frozenset({State.PREPARING_REBALANCE}),
        State.PREPARING_REBALANCE: frozenset(
            {State.EMPTY, State.COMPLETING_REBALANCE, State.STABLE}
        ),
        State.COMPLETING_REBALANCE: frozenset({State.PREPARING_REBALANCE}),
        State.STABLE: frozenset({State.COMPLETING_REBALANCE}),
    }
)
"""States that each state may follow."""
