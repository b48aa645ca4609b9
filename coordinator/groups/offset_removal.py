"""Offsets that go: with their group, after the retention time, with their topic.

All tombstones of one decision are one batch: what is gone is gone as a whole, and after a restart
too (O7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from coordinator.decision import Decision, Now, Record
from coordinator.groups.commands import DeleteGroup, ExpireOffsets, TopicsDeleted, TopicsImage
from coordinator.groups.family import ANY_GROUP, Family
from coordinator.groups.group import CLASSIC, CONSUMERS, Group
from coordinator.groups.offset_table import BY_RETENTION, CommittedOffset, tombstone
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.groups.shard import GroupShard

STABLE: Final = "Stable"

Rule: TypeAlias = Callable[[str, CommittedOffset], bool]
"""Says of a topic's committed offset whether it goes."""


def delete_group(shard: GroupShard, command: DeleteGroup, _now: Now) -> Decision:
    """Remove an empty group and everything it has committed."""
    group = shard.groups.get(command.group_id)
    if group is None and not shard.offsets.of_group(command.group_id):
        return Decision(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and not group.is_empty:
        return Decision(ErrorCode.NON_EMPTY_GROUP)
    records = [*_tombstones(shard, command.group_id, lambda _topic, _committed: True)]
    if group is not None:
        records += group.tombstones()
    return Decision(ErrorCode.NONE, tuple(records))


def topics_deleted(shard: GroupShard, command: TopicsDeleted, _now: Now) -> Decision:
    """Remove the offsets of topics that are gone (A2)."""

    def goes(topic: str, committed: CommittedOffset) -> bool:
        return _is_gone(topic, committed, command.topics)

    return Decision(records=tuple(_tombstones(shard, command.group_id, goes)))


def expire(shard: GroupShard, command: ExpireOffsets, now: Now) -> Decision:
    """Remove what was not used for the retention time, and an empty group with its last offset."""
    group = shard.groups.get(command.group_id)
    retention_ms = shard.config.offsets_retention_ms

    def goes(topic: str, committed: CommittedOffset) -> bool:
        if _is_gone(topic, committed, command.topics):
            return True
        unused_since_ms = _unused_since_ms(group, topic, committed)
        if unused_since_ms is None:
            return False
        if committed.expire_ms != BY_RETENTION:
            return now.wall_ms >= committed.expire_ms
        return now.wall_ms - unused_since_ms >= retention_ms

    records = [*_tombstones(shard, command.group_id, goes)]
    if group is not None and group.is_empty and len(records) == _count(shard, command.group_id):
        records += group.tombstones()
    return Decision(records=tuple(records))


def _unused_since_ms(group: Group | None, topic: str, committed: CommittedOffset) -> int | None:
    """Since when Kafka takes an offset for unused; None: it is used, or may be (KIP-211)."""
    if group is None:
        return committed.commit_ms
    if group.is_subscribed(topic):
        return None
    if group.type_name != CLASSIC:
        return committed.commit_ms
    if group.is_empty:
        # Apache Kafka looks at the first alone, and drops what an operator has just set for a group
        # that was empty for long.
        empty_since_ms = group.empty_since_ms() if group.protocol_type else -1
        return max(empty_since_ms, committed.commit_ms)
    # What members read is known only of consumers, and only between rebalances.
    known = group.protocol_type == CONSUMERS and group.state_name == STABLE
    return committed.commit_ms if known else None


def _is_gone(topic: str, committed: CommittedOffset, image: TopicsImage) -> bool:
    """Whether the topic was deleted; another one of the same name may be there now."""
    topic_id = image.topic_id(topic)
    return topic_id is None or not committed.is_of(topic_id)


def _tombstones(shard: GroupShard, group_id: str, goes: Rule) -> Iterator[Record]:
    for topic, partitions in shard.offsets.of_group(group_id).items():
        for index, committed in partitions.items():
            if goes(topic, committed):
                yield tombstone(group_id, topic, index)


def _count(shard: GroupShard, group_id: str) -> int:
    return sum(map(len, shard.offsets.of_group(group_id).values()))


OFFSET_REMOVAL: Final = Family(
    deciders={
        (DeleteGroup, ANY_GROUP): delete_group,
        (TopicsDeleted, ANY_GROUP): topics_deleted,
        (ExpireOffsets, ANY_GROUP): expire,
    }
)
