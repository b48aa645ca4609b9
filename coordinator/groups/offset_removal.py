"""Offsets that go: with their group, after the retention time, with their topic.

All tombstones of one decision are one batch: what is gone is gone as a whole, and after a restart
too (O7). A sweep leaves to the next one what would make that batch long.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from coordinator.decision import Decision, Now
from coordinator.groups.commands import DeleteGroup, ExpireOffsets, TopicsDeleted, TopicsImage
from coordinator.groups.family import ANY_GROUP, Family
from coordinator.groups.group import CLASSIC, CONSUMERS, Group
from coordinator.groups.offset_table import BY_RETENTION, CommittedOffset, tombstone
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from coordinator.groups.shard import GroupShard

STABLE: Final = "Stable"
SWEPT_MAX: Final = 10_000
"""Offsets of a group that one sweep removes."""


def delete_group(shard: GroupShard, command: DeleteGroup, _now: Now) -> Decision:
    """Remove an empty group and everything it has committed."""
    group = shard.groups.get(command.group_id)
    if group is None and not shard.offsets.knows(command.group_id):
        return Decision(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and not group.is_empty:
        return Decision(ErrorCode.NON_EMPTY_GROUP)
    commits = shard.offsets.commits_of(command.group_id)
    records = [tombstone(command.group_id, *place) for place in commits]
    if group is not None:
        records += group.tombstones()
    return Decision(ErrorCode.NONE, tuple(records))


def topics_deleted(shard: GroupShard, command: TopicsDeleted, _now: Now) -> Decision:
    """Remove the offsets of topics that are gone (A2)."""
    records = (
        tombstone(command.group_id, topic, partition)
        for (topic, partition), commits in shard.offsets.commits_of(command.group_id).items()
        if _is_gone(topic, commits, command.topics)
    )
    return Decision(records=tuple(islice(records, SWEPT_MAX)))


def expire(shard: GroupShard, command: ExpireOffsets, now: Now) -> Decision:
    """Remove what was not used for the retention time, and an empty group with its last offset."""
    group_id = command.group_id
    group = shard.groups.get(group_id)
    retention_ms = shard.config.offsets_retention_ms
    everything = shard.offsets.commits_of(group_id)
    expired = (
        tombstone(group_id, topic, partition)
        for (topic, partition), commits in everything.items()
        if _is_gone(topic, commits, command.topics)
        or (
            not shard.offsets.is_pending(group_id, topic, partition)
            and _is_expired(group, topic, commits[0], now.wall_ms, retention_ms)
        )
    )
    records = [*islice(expired, SWEPT_MAX)]
    if group is not None and group.is_empty and len(records) == len(everything):
        records += group.tombstones()
    return Decision(records=tuple(records))


def _is_expired(
    group: Group | None, topic: str, committed: CommittedOffset, now_ms: int, retention_ms: int
) -> bool:
    unused_since_ms = _unused_since_ms(group, topic, committed)
    if unused_since_ms is None:
        return False
    if committed.expire_ms != BY_RETENTION:
        return now_ms >= committed.expire_ms
    return now_ms - unused_since_ms >= retention_ms


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


def _is_gone(topic: str, commits: list[CommittedOffset], image: TopicsImage) -> bool:
    """Whether the topic was deleted; another one of the same name may be there now."""
    topic_id = image.topic_id(topic)
    return topic_id is None or not any(committed.is_of(topic_id) for committed in commits)


OFFSET_REMOVAL: Final = Family(
    deciders={
        (DeleteGroup, ANY_GROUP): delete_group,
        (TopicsDeleted, ANY_GROUP): topics_deleted,
        (ExpireOffsets, ANY_GROUP): expire,
    }
)
