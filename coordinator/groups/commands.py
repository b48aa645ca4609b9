"""What clients and timers want of the group coordinator: one command for one group.

A command carries the decoded request, or its part for this group, and everything the machine may
not find out by itself: who asks, new member ids, what topics there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeAlias

from barnabas.coordinator.decision import Timer, TransactionalProducer
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest


class Caller(NamedTuple):
    """Who sent a request, and how."""

    client_id: str
    client_host: str
    api_version: int


class TopicsImage(Protocol):
    """The topics that exist now, as the machine may see them. Read-only."""

    def version(self) -> int:
        """Another number whenever a topic has come, gone or got partitions."""

    def names(self) -> Iterable[str]:
        """All topics."""

    def topic_id(self, name: str) -> bytes | None:
        """A topic's 16-byte id; None: there is no such topic."""

    def name(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: there is none."""

    def partition_count(self, name: str) -> int:
        """How many partitions a topic has; 0 if it does not exist."""


class NoTopics:
    """What is seen of topics where none are shown."""

    def version(self) -> int:
        """Nothing ever changes."""
        return 0

    def names(self) -> Iterable[str]:
        """No topics."""
        return ()

    def topic_id(self, _name: str) -> bytes | None:
        """There is no such topic."""
        return None

    def name(self, _topic_id: bytes) -> str | None:
        """There is none with this id."""
        return None

    def partition_count(self, _name: str) -> int:
        """It does not exist."""
        return 0


NO_TOPICS: Final[TopicsImage] = NoTopics()


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A member of a classic group wants to be in the next generation."""

    caller: Caller
    request: JoinGroupRequest
    ticket: int
    new_member_id: str
    """For a member that has none: client id and a random UUID. Empty for the others."""
    topics: TopicsImage = NO_TOPICS
    """For a classic member of a consumer group: the coordinator assigns."""

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class SyncGroup:
    """A member of a classic group brings (the leader) or asks for its assignment."""

    caller: Caller
    request: SyncGroupRequest
    ticket: int
    topics: TopicsImage = NO_TOPICS

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member of a classic group is alive."""

    caller: Caller
    request: HeartbeatRequest

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Members of a group leave it."""

    caller: Caller
    request: LeaveGroupRequest
    topics: TopicsImage = NO_TOPICS

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    """A member of a consumer group joins, is alive, reports what it owns, or leaves (KIP-848)."""

    caller: Caller
    request: ConsumerGroupHeartbeatRequest
    new_member_id: str
    topics: TopicsImage

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """Offsets of one group; topics carry names and ids here, whatever the client sent."""

    caller: Caller
    request: OffsetCommitRequest

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class LongOffsetCommit:
    """Offsets of one group, so many that deciding takes long: all are committed, or none.

    The response is a list of one for each part, or the ErrorCode that holds for all of them.
    """

    caller: Caller
    parts: tuple[OffsetCommitRequest, ...]
    """At least one; they differ in their topics alone."""

    @property
    def group_id(self) -> str:
        """The group."""
        return self.parts[0].group_id


@dataclass(frozen=True, slots=True)
class TransactionalOffsetCommit:
    """Offsets of one group as part of a producer's transaction (KIP-447)."""

    caller: Caller
    request: OffsetCommitRequest
    """TxnOffsetCommit, in the words of OffsetCommit."""
    producer: TransactionalProducer

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """Ask for committed offsets of one group; topics carry names here."""

    caller: Caller
    request: OffsetFetchRequestGroup
    require_stable: bool
    topics: TopicsImage
    is_one_of_many: bool = False
    """Whether other groups asked for along with it make much work together: done in steps."""

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """Forget committed offsets of one group."""

    caller: Caller
    request: OffsetDeleteRequest

    @property
    def group_id(self) -> str:
        """The group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Remove an empty group with its offsets. The response is an ErrorCode."""

    group_id: str
    is_one_of_many: bool = False
    """As in OffsetFetch."""


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """Drop what has not been used for the retention time; an empty group goes with its last offset.

    Asked from time to time for every group.
    """

    group_id: str
    topics: TopicsImage


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Topics were deleted: the offsets of those that are not there any more go too."""

    group_id: str
    topics: TopicsImage


@dataclass(frozen=True, slots=True)
class TimerExpired:
    """A timer that was scheduled has come."""

    timer: Timer
    topics: TopicsImage

    @property
    def group_id(self) -> str:
        """The group."""
        return self.timer.key


Command: TypeAlias = (
    JoinGroup
    | SyncGroup
    | Heartbeat
    | LeaveGroup
    | ConsumerGroupHeartbeat
    | OffsetCommit
    | LongOffsetCommit
    | TransactionalOffsetCommit
    | OffsetFetch
    | OffsetDelete
    | DeleteGroup
    | ExpireOffsets
    | TopicsDeleted
    | TimerExpired
)
