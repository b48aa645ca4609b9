"""A consumer group as its records describe it, and the little about it that is not in records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from barnabas.coordinator.decision import Effect, Now, Record
from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.member import NO_PARTITIONS, Member, Partitions
from barnabas.coordinator.groups.group import CONSUMER, Identity
from barnabas.protocol.errors import ErrorCode

FIRST_EPOCH: Final = 1
"""A group begins at epoch 1 with an (empty) assignment of epoch 1, as of Kafka 4.3."""
NO_ASSIGNMENT: Final = -1
COMMITS_WITH_EPOCH_SINCE: Final = 9
"""OffsetCommit's first version whose errors members of this protocol understand."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Topics that a regular expression matched at its last evaluation."""

    topics: frozenset[str] = frozenset()
    version: int = -1
    timestamp_ms: int = -1


class ConsumerGroup:
    """One group; only the appliers and changers of this folder touch it."""

    def __init__(self, group_id: str) -> None:
        """Make a group that has no members yet."""
        self.group_id = group_id
        self.epoch = FIRST_EPOCH
        self.metadata_hash = 0
        self.assignment_epoch = FIRST_EPOCH
        self.assignment_timestamp_ms = 0
        self.members: dict[str, Member] = {}
        self.targets: dict[str, Partitions] = {}
        self.resolved: dict[str, Resolved] = {}
        self.has_partition_metadata = False
        """Whether Kafka before 4.1 left a record here that has to be removed."""

        # Found from the members.
        self.static_members: dict[str, str] = {}
        self._owners: dict[tuple[bytes, int], str] = {}

        # Volatile.
        self.topics_seen: int | None = None
        """The state of all topics that ``metadata_hash`` was last compared with."""
        self.topics_matched: int | None = None
        """The state of all topics that the regular expressions were last compared with."""
        self.topics_shown: TopicsImage | None = None
        """Topics visible to the last member that needed them; no regular expression matches
        others."""
        self.expected_to_join: set[str] = set()
        """Members of the classic protocol that must join again."""

    # ------------------------------------------------------------------------- Group (group.py)

    @property
    def type_name(self) -> str:
        """Type of the group in ListGroups."""
        return CONSUMER

    @property
    def protocol_type(self) -> str:
        """Protocol type, always that of consumers."""
        return "consumer"

    @property
    def state_name(self) -> str:
        """Kafka's name of the state."""
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def is_empty(self) -> bool:
        """Whether it has no members."""
        return not self.members

    def refuse_commit(self, identity: Identity) -> ErrorCode:
        """Return the error of a commit, or NONE if ``refuse_partition`` decides the rest."""
        if identity.generation < 0 and not self.members:
            return ErrorCode.NONE  # An administrator, or a consumer that assigns itself.
        unnamed = not identity.member_id and identity.instance_id is None
        if identity.transactional and identity.generation == NO_ASSIGNMENT and unnamed:
            return ErrorCode.NONE
        member = self.members.get(identity.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if self._is_too_old_to_commit(identity, member):
            return ErrorCode.UNSUPPORTED_VERSION
        return _stale(member) if identity.generation > member.member_epoch else ErrorCode.NONE

    def _is_too_old_to_commit(self, identity: Identity, member: Member) -> bool:
        too_old = identity.api_version < COMMITS_WITH_EPOCH_SINCE
        return too_old and not identity.transactional and member.classic is None

    def refuse_partition(self, identity: Identity, topic_id: bytes, partition: int) -> ErrorCode:
        """Return the error of a commit by a member with an older epoch (KIP-1251), or NONE.

        It may commit if it has owned the partition without a break since the epoch it names.
        """
        member = self.members.get(identity.member_id)
        if member is None or identity.generation >= member.member_epoch:
            return ErrorCode.NONE
        since = member.owned_since(topic_id, partition)
        if since is None or identity.generation < since:
            return _stale(member)
        return ErrorCode.NONE

    def commit_effects(self, _identity: Identity, _now: Now) -> tuple[Effect, ...]:
        """Return no effects: only heartbeats keep members of these groups."""
        return ()

    def refuse_fetch(self, identity: Identity) -> ErrorCode:
        """Return the error of an offset fetch by this member, or NONE if it may fetch."""
        if not identity.member_id and identity.generation < 0:
            return ErrorCode.NONE
        member = self.members.get(identity.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if identity.generation == member.member_epoch else _stale(member)

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member may read this topic now."""
        return any(topic in names for names in self._subscriptions())

    def empty_since_ms(self) -> int:
        """Return -1, unknown: offsets of these groups expire by the time of their commit."""
        return -1

    def tombstones(self) -> tuple[Record, ...]:
        """Return the records that remove the group, its offsets not included."""
        return records.group_tombstones(self.group_id, self.members, self.resolved)

    # --------------------------------------------------------------------------------- looking

    def static_member(self, instance_id: str | None) -> Member | None:
        """Return the member that holds an instance id."""
        member_id = None if instance_id is None else self.static_members.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def target_of(self, member: Member) -> Partitions:
        """Return the newest assignment of a member, or of the member that it replaces."""
        holder = member.member_id
        if member.instance_id is not None:
            holder = self.static_members.get(member.instance_id, holder)
        return self.targets.get(holder, NO_PARTITIONS)

    def is_owned(self, topic_id: bytes, partition: int) -> bool:
        """Return whether a member owns a partition or has not confirmed its revocation."""
        return (topic_id, partition) in self._owners

    def subscription_of(self, member: Member) -> frozenset[str]:
        """Return all topics of a member's subscription, by name or by regular expression."""
        if not member.topic_regex or member.topic_regex not in self.resolved:
            return member.topic_names
        found = self.resolved[member.topic_regex].topics
        return member.topic_names | found if member.topic_names else found

    def _subscriptions(self) -> Iterator[frozenset[str]]:
        for member in self.members.values():
            yield member.topic_names
        for resolved in self.resolved.values():
            yield resolved.topics

    def subscribed_topics(self, members: Collection[Member]) -> set[str]:
        """Return the topics to which any of ``members`` subscribes."""
        names = {self.subscription_of(member) for member in members}
        return set().union(*names)

    def regexes(self) -> set[str]:
        """Return the regular expressions that members subscribe by."""
        return {member.topic_regex for member in self.members.values() if member.topic_regex}

    def preferred_assignor(self, members: Collection[Member], default: str) -> str:
        """Return the assignor that most members name; in a tie the first by name."""
        votes = Counter(member.assignor for member in members if member.assignor)
        return min(votes, key=lambda name: (-votes[name], name), default=default)

    def others(self, *member_ids: str) -> list[Member]:
        """Return all members except these."""
        return [member for member in self.members.values() if member.member_id not in member_ids]

    # ------------------------------------------------------------------------ applying records

    def put(self, member: Member) -> None:
        """Store a new state of a member."""
        before = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if before is not None:
            self._release(before)
            self._forget_instance(before)
        for owned in _each(member):
            self._owners[owned] = member.member_id
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member, if it exists."""
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        self._forget_instance(member)
        self.expected_to_join.discard(member_id)

    def change(self, member_id: str, update: Callable[[Member], Member]) -> None:
        """Store a part of a member's state."""
        self.put(update(self.members.get(member_id) or Member(member_id)))

    def _forget_instance(self, member: Member) -> None:
        instance_id = member.instance_id
        if instance_id is not None and self.static_members.get(instance_id) == member.member_id:
            del self.static_members[instance_id]

    def _release(self, member: Member) -> None:
        for owned in _each(member):
            if self._owners.get(owned) == member.member_id:
                del self._owners[owned]


def _stale(member: Member) -> ErrorCode:
    """Return the error for an epoch that is not the member's, as its protocol defines it."""
    if member.classic is None:
        return ErrorCode.STALE_MEMBER_EPOCH
    return ErrorCode.ILLEGAL_GENERATION


def _each(member: Member) -> Iterator[tuple[bytes, int]]:
    for owned in (member.assigned, member.revoking):
        for topic_id, partitions in owned.items():
            for partition in partitions:
                yield topic_id, partition
