"""What every kind of group is to the rest of the coordinator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from barnabas.coordinator.decision import Effect, Now, Record
from barnabas.protocol.errors import ErrorCode

CLASSIC = "classic"
CONSUMER = "consumer"
CONSUMERS = "consumer"
"""The protocol type of groups whose members say which topics they read."""


class Identity(NamedTuple):
    """Who claims to act for a group: -1, "" and None where the client did not say."""

    member_id: str = ""
    generation: int = -1
    """Generation of a classic group, member epoch of a consumer group."""
    instance_id: str | None = None
    api_version: int = 0
    transactional: bool = False
    """TxnOffsetCommit: its rules differ in a few places (KIP-447)."""


class Group(Protocol):
    """A classic group or a consumer group."""

    group_id: str

    @property
    def members(self) -> Mapping[str, object]:
        """Its members by id."""

    @property
    def type_name(self) -> str:
        """CLASSIC or CONSUMER."""

    @property
    def protocol_type(self) -> str:
        """What the group is for: consumers say "consumer"; empty where no member ever said."""

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    def refuse_commit(self, identity: Identity) -> ErrorCode:
        """Why this member may not commit offsets; NONE if it may."""

    def refuse_partition(self, identity: Identity, topic_id: bytes, partition: int) -> ErrorCode:
        """Why it may not commit this partition, though ``refuse_commit`` let it pass; else NONE.

        A member of a consumer group that has not heard of its newest epoch may still commit what
        it has owned without a break since the epoch it names (KIP-1251).
        """

    def commit_effects(self, identity: Identity, now: Now) -> tuple[Effect, ...]:
        """What an accepted commit causes: a classic member's session starts again."""

    def refuse_fetch(self, identity: Identity) -> ErrorCode:
        """Why this member may not fetch offsets; NONE if it may."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may read this topic now: its offsets are in use."""

    def empty_since_ms(self) -> int:
        """Wall time since when it has been empty; -1: not known, or it is not."""

    def tombstones(self) -> tuple[Record, ...]:
        """The records that remove the group, its offsets not included."""
