"""A member of a consumer group: what it asked for, and what it owns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import Final, TypeAlias

Partitions: TypeAlias = Mapping[bytes, frozenset[int]]
"""Partitions by topic id."""
Owned: TypeAlias = Mapping[bytes, Mapping[int, int]]
"""Owned partitions by topic id, each with the assignment epoch since which the member has owned it
without interruption."""

NO_PARTITIONS: Final[Partitions] = MappingProxyType({})
NOTHING_OWNED: Final[Owned] = MappingProxyType({})

JOINING: Final = 0
LEAVING: Final = -1
LEAVING_FOR_A_WHILE: Final = -2
"""A static member that means to come back: it keeps its place and its partitions."""
NO_EPOCH: Final = -1


class MemberState(IntEnum):
    """Progress of a member towards its target assignment; numbers as in Kafka's records."""

    STABLE = 0
    """The member has everything of its epoch."""
    UNREVOKED_PARTITIONS = 1
    """The member must revoke partitions and has not confirmed it."""
    UNRELEASED_PARTITIONS = 2
    """The member waits for partitions that others have not released."""
    UNKNOWN = 127
    """State written by a later version that has more states."""

    @classmethod
    def _missing_(cls, value: object) -> MemberState:
        del value
        return cls.UNKNOWN


@dataclass(frozen=True, slots=True)
class ClassicPart:
    """State of a member of the classic protocol."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    """Names of its assignors, each with its subscription as bytes; the first one counts here."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member; it is replaced, never changed."""

    member_id: str
    member_epoch: int = JOINING
    previous_epoch: int = NO_EPOCH
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    topic_regex: str | None = ""
    assignor: str | None = None
    assigned: Owned = field(default_factory=dict)
    revoking: Owned = field(default_factory=dict)
    classic: ClassicPart | None = None

    @property
    def has_left_for_a_while(self) -> bool:
        """Whether it is a static member that has left for a while."""
        return self.member_epoch == LEAVING_FOR_A_WHILE

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether it owns everything that the target assignment of ``epoch`` contains for it."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def owned_since(self, topic_id: bytes, partition: int) -> int | None:
        """Return the epoch since which it owns a partition, or None if it does not own it."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        return self.revoking.get(topic_id, {}).get(partition) if epoch is None else epoch


def same_epoch(partitions: Partitions, epoch: int) -> Owned:
    """Return ``partitions`` as owned since ``epoch``."""
    return {topic_id: dict.fromkeys(sorted(those), epoch) for topic_id, those in partitions.items()}


def names_of(partitions: Owned) -> Partitions:
    """Return the partitions without their epochs."""
    return {topic_id: frozenset(those) for topic_id, those in partitions.items()}
