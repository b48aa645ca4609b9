"""The interface of every kind of group to the rest of the coordinator."""

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
    """Claimed identity of a member: -1, "" and None for fields that the client omitted."""

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
        """Members by ID."""

    @property
    def type_name(self) -> str:
        """CLASSIC or CONSUMER."""

    @property
    def protocol_type(self) -> str:
        """Protocol type: "consumer" for consumers; empty if no member has ever set it."""

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""

    def refuse_commit(self, identity: Identity) -> ErrorCode:
        """Return the error of an offset commit by this member, or NONE if it may commit."""

    def refuse_partition(self, identity: Identity, topic_id: bytes, partition: int) -> ErrorCode:
        """Return the error of a commit of this partition that ``refuse_commit`` let pass, or NONE.

        A member of a consumer group with an older epoch may still commit partitions that it has
        owned without a break since the epoch it names (KIP-1251).
        """

    def commit_effects(self, identity: Identity, now: Now) -> tuple[Effect, ...]:
        """Return the effects of an accepted commit: a classic member's session starts again."""

    def refuse_fetch(self, identity: Identity) -> ErrorCode:
        """Return the error of an offset fetch by this member, or NONE if it may fetch."""

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may read this topic now: its offsets are in use."""

    def empty_since_ms(self) -> int:
        """Wall time at which the group became empty, or -1 if unknown or not empty."""

    def tombstones(self) -> tuple[Record, ...]:
        """Return the records that remove the group, its offsets not included."""
