"""Commands of clients and timers to the group coordinator: one command for one group.

A command has the decoded request, or its part for this group, and everything that the machine
cannot determine by itself: the caller, new member ids, the existing topics.
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
    """The sender of a request, and the request's version."""

    client_id: str
    client_host: str
    api_version: int


class TopicsImage(Protocol):
    """The topics that exist now, as the machine may see them. Read-only."""

    def version(self) -> int:
        """Return a number that changes when a topic is created, deleted or extended."""

    def names(self) -> Iterable[str]:
        """Return the names of all topics."""

    def topic_id(self, name: str) -> bytes | None:
        """Return a topic's 16-byte id, or None if the topic does not exist."""

    def name(self, topic_id: bytes) -> str | None:
        """Return the topic with this id, or None if it does not exist."""

    def partition_count(self, name: str) -> int:
        """Return the number of a topic's partitions, or 0 if it does not exist."""


class NoTopics:
    """An image without topics."""

    def version(self) -> int:
        """Return the only version."""
        return 0

    def names(self) -> Iterable[str]:
        """Return no names."""
        return ()

    def topic_id(self, _name: str) -> bytes | None:
        """Return None for every topic."""
        return None

    def name(self, _topic_id: bytes) -> str | None:
        """Return None for every topic."""
        return None

    def partition_count(self, _name: str) -> int:
        """Return 0 for every topic."""
        return 0


NO_TOPICS: Final[TopicsImage] = NoTopics()


@dataclass(frozen=True, slots=True)
class JoinGroup:
    """A member of a classic group wants to be in the next generation."""

    caller: Caller
    request: JoinGroupRequest
    ticket: int
    new_member_id: str
    """For a member without an id: client id and a random UUID. Empty for the others."""
    topics: TopicsImage = NO_TOPICS
    """Topics that the coordinator assigns to a classic member of a consumer group."""

    @property
    def group_id(self) -> str:
        """ID of the group."""
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
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member of a classic group is alive."""

    caller: Caller
    request: HeartbeatRequest

    @property
    def group_id(self) -> str:
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    """Members of a group leave it."""

    caller: Caller
    request: LeaveGroupRequest
    topics: TopicsImage = NO_TOPICS

    @property
    def group_id(self) -> str:
        """ID of the group."""
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
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """Offsets of one group; topics have names and ids here, regardless of the request's version."""

    caller: Caller
    request: OffsetCommitRequest

    @property
    def group_id(self) -> str:
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class LongOffsetCommit:
    """Commit of many offsets of one group, decided in slices: all are committed, or none.

    The response is a list of one for each part, or the ErrorCode that holds for all of them.
    """

    caller: Caller
    parts: tuple[OffsetCommitRequest, ...]
    """At least one commit; they differ in their topics alone."""

    @property
    def group_id(self) -> str:
        """ID of the group."""
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
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """Fetch committed offsets of one group; topics have names here."""

    caller: Caller
    request: OffsetFetchRequestGroup
    require_stable: bool
    topics: TopicsImage
    is_one_of_many: bool = False
    """Whether the request's groups together are much work: done in steps."""

    @property
    def group_id(self) -> str:
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    """Forget committed offsets of one group."""

    caller: Caller
    request: OffsetDeleteRequest

    @property
    def group_id(self) -> str:
        """ID of the group."""
        return self.request.group_id


@dataclass(frozen=True, slots=True)
class DeleteGroup:
    """Remove an empty group with its offsets. The response is an ErrorCode."""

    group_id: str
    is_one_of_many: bool = False
    """See OffsetFetch."""


@dataclass(frozen=True, slots=True)
class ExpireOffsets:
    """Remove offsets that were unused for the retention time; an empty group is deleted with its
    last offset.

    The coordinator sends it periodically for every group.
    """

    group_id: str
    topics: TopicsImage


@dataclass(frozen=True, slots=True)
class TopicsDeleted:
    """Deletion of topics, by which their committed offsets are deleted too."""

    group_id: str
    topics: TopicsImage


@dataclass(frozen=True, slots=True)
class TimerExpired:
    """Expiry of a scheduled timer."""

    timer: Timer
    topics: TopicsImage

    @property
    def group_id(self) -> str:
        """ID of the group."""
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
