"""The target assignment of a group: the partitions that each member is to own in the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.assignors import ASSIGNORS
from barnabas.coordinator.groups.consumer.assignors.specification import Subscriber
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import NO_PARTITIONS, Member, Partitions

HASH_BYTES: Final = 8


def metadata_hash(names: Iterable[str], topics: TopicsImage) -> int:
    """Return a hash that changes when a topic is created, deleted or extended; 0 without any.

    Kafka has an XXH3 hash in this place. The record's form is the same, the number is Barnabas's: a
    group that moves from one broker to the other gets a new epoch once.
    """
    digest = blake2b(digest_size=HASH_BYTES)
    found = False
    for name in sorted(names):
        topic_id = topics.topic_id(name)
        if topic_id is not None:
            found = True
            digest.update(topic_id)
            digest.update(topics.partition_count(name).to_bytes(4, "big"))
    return int.from_bytes(digest.digest(), "big", signed=True) if found else 0


class TopicIds:
    """Ids of subscribed topics, looked up once for all members with the same subscription."""

    def __init__(self, topics: TopicsImage) -> None:
        """Look up topics in ``topics``."""
        self._topics = topics
        self._known: dict[frozenset[str], frozenset[bytes]] = {}

    def of(self, names: frozenset[str]) -> frozenset[bytes]:
        """Return the IDs of the named topics that exist."""
        found = self._known.get(names)
        if found is None:
            ids = map(self._topics.topic_id, names)
            found = self._known[names] = frozenset(each for each in ids if each is not None)
        return found


@dataclass(frozen=True, slots=True)
class Change:
    """Changes of a group by the present command that affect an assignment."""

    member: Member | None = None
    """The new member, or the member in its new state, or None for no change."""
    replaced_id: str = ""
    """The member whose instance id and place it takes."""

    def members_of(self, group: ConsumerGroup) -> list[Member]:
        """Return the members of the group after the request."""
        if self.member is None:
            return list(group.members.values())
        return [*group.others(self.member.member_id, self.replaced_id), self.member]


def assign(
    group: ConsumerGroup, change: Change, assignor: str, topics: TopicsImage
) -> dict[str, Partitions]:
    """Run an assignor; the result has an entry for each member, even an empty one."""
    ids = TopicIds(topics)
    subscribers = {}
    for member in change.members_of(group):
        holder = member.member_id
        if change.member is member and change.replaced_id:
            holder = change.replaced_id
        subscribers[member.member_id] = Subscriber(
            ids.of(group.subscription_of(member)),
            member.instance_id,
            group.targets.get(holder, NO_PARTITIONS),
        )

    def partition_count(topic_id: bytes) -> int:
        name = topics.name(topic_id)
        return 0 if name is None else topics.partition_count(name)

    return ASSIGNORS[assignor](subscribers, partition_count)


def changed_targets(
    group: ConsumerGroup, targets: dict[str, Partitions], epoch: int, now_ms: int
) -> list[Record]:
    """Return the records of a new target assignment: the changed targets and the epoch."""
    changed = [
        records.target_record(group.group_id, member_id, target)
        for member_id, target in targets.items()
        if group.targets.get(member_id) != target
    ]
    return [*changed, records.assignment_record(group.group_id, epoch, now_ms)]


def assignor_of(group: ConsumerGroup, members: list[Member], offered: tuple[str, ...]) -> str:
    """Return the assignor that most members name among ``offered``, else the default."""
    wanted = group.preferred_assignor([each for each in members if each.assignor in offered], "")
    return wanted or offered[0]
