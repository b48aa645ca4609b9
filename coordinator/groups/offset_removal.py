"""Removal of offsets: with their group, after the retention time, with their topic.

All tombstones of one decision are one batch: offsets are removed as a whole, and after a restart
too (O7). A sweep leaves offsets that would make the batch long to the next sweep.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from barnabas.coordinator.decision import Decision, LongDecision, Now, Record
from barnabas.coordinator.groups.commands import (
    DeleteGroup,
    ExpireOffsets,
    TopicsDeleted,
    TopicsImage,
)
from barnabas.coordinator.groups.family import ANY_GROUP, Family
from barnabas.coordinator.groups.group import CLASSIC, CONSUMERS, Group
from barnabas.coordinator.groups.offset_records import tombstone
from barnabas.coordinator.groups.offset_table import BY_RETENTION, MANY, CommittedOffset
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

STABLE: Final = "Stable"
SWEPT_MAX: Final = 10_000
"""Offsets of a group that one sweep removes."""
PLACES_PER_STEP: Final = 500
"""Number of offsets checked before others may get a turn: about a millisecond's work."""

Steps: TypeAlias = Generator[None, None, LongDecision]


def delete_group(shard: GroupTable, command: DeleteGroup, _now: Now) -> Decision:
    """Remove an empty group and everything it has committed."""
    steps = _delete_group(shard, command.group_id)
    return _decided(shard, command.group_id, steps, is_long=command.is_one_of_many)


def _delete_group(shard: GroupTable, group_id: str) -> Steps:
    yield  # Of very many groups, each begins when it is its turn.
    group = shard.groups.get(group_id)
    if group is None and not shard.offsets.knows(group_id):
        return LongDecision(ErrorCode.GROUP_ID_NOT_FOUND)
    if group is not None and not group.is_empty:
        return LongDecision(ErrorCode.NON_EMPTY_GROUP)
    doomed: list[tuple[str, int]] = []
    for number, offset_key in enumerate(shard.offsets.offset_keys_of(group_id), start=1):
        if number % PLACES_PER_STEP == 0:
            yield
        doomed.append(offset_key)
    return LongDecision(ErrorCode.NONE, _Removal(group_id, doomed, group))


def topics_deleted(shard: GroupTable, command: TopicsDeleted, _now: Now) -> Decision:
    """Remove the offsets of deleted topics (A2)."""
    return _decided(shard, command.group_id, _remove_gone(shard, command))


def _remove_gone(shard: GroupTable, command: TopicsDeleted) -> Steps:
    group_id = command.group_id
    doomed: list[tuple[str, int]] = []
    for number, offset_key in enumerate(shard.offsets.offset_keys_of(group_id), start=1):
        if number % PLACES_PER_STEP == 0:
            yield
        commits = shard.offsets.commits_at(group_id, *offset_key)
        if commits and _is_gone(offset_key[0], commits, command.topics):
            doomed.append(offset_key)
            if len(doomed) == SWEPT_MAX:
                break
    return LongDecision(None, _Removal(group_id, doomed))


def expire(shard: GroupTable, command: ExpireOffsets, now: Now) -> Decision:
    """Remove offsets after their retention time, and an empty group with its last offset."""
    return _decided(shard, command.group_id, _remove_expired(shard, command, now))


def _remove_expired(shard: GroupTable, command: ExpireOffsets, now: Now) -> Steps:
    group_id = command.group_id
    group = shard.groups.get(group_id)
    retention_ms = shard.config.offsets_retention_ms
    doomed: list[tuple[str, int]] = []
    is_all = True
    for number, offset_key in enumerate(shard.offsets.offset_keys_of(group_id), start=1):
        if number % PLACES_PER_STEP == 0:
            yield
        topic, partition = offset_key
        commits = shard.offsets.commits_at(group_id, topic, partition)
        goes = bool(commits) and (
            _is_gone(topic, commits, command.topics)
            or (
                not shard.offsets.is_pending(group_id, topic, partition)
                and _is_expired(group, topic, commits[0], now.wall_ms, retention_ms)
            )
        )
        if not goes or len(doomed) == SWEPT_MAX:
            is_all = False
        else:
            doomed.append(offset_key)
        if len(doomed) == SWEPT_MAX and not is_all:
            break
    empty = group if is_all and group is not None and group.is_empty else None
    return LongDecision(None, _Removal(group_id, doomed, empty))


class _Removal:
    """The tombstones of a group's offsets, and of the group itself if it is removed as well."""

    def __init__(
        self, group_id: str, offset_keys: list[tuple[str, int]], group: Group | None = None
    ) -> None:
        self._group_id = group_id
        self._places = offset_keys
        self._rest = () if group is None else group.tombstones()

    def __iter__(self) -> Iterator[Record]:
        for offset_key in self._places:
            yield tombstone(self._group_id, *offset_key)
        yield from self._rest


def _decided(shard: GroupTable, group_id: str, steps: Steps, *, is_long: bool = False) -> Decision:
    """Decide at once, or in steps if there are many offsets.

    Between the steps no command for the group runs, and only markers are applied. A marker never
    adds a commit for a new partition, so each partition is checked once.
    """
    if is_long or shard.offsets.count(group_id) > MANY:
        return Decision(steps=steps)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            decision: LongDecision = done.value
            return Decision(decision.response, tuple(decision.records))


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
    """Return the time since which an offset is unused, or None if it may be in use (KIP-211)."""
    if group is None:
        return committed.commit_ms
    if group.is_subscribed(topic):
        return None
    if group.type_name != CLASSIC:
        return committed.commit_ms
    if group.is_empty:
        # Apache Kafka only uses the first, and drops offsets that an operator has just set for a
        # group that was empty for long.
        empty_since_ms = group.empty_since_ms() if group.protocol_type else -1
        return max(empty_since_ms, committed.commit_ms)
    # Members' topics are known only of consumers, and only between rebalances.
    known = group.protocol_type == CONSUMERS and group.state_name == STABLE
    return committed.commit_ms if known else None


def _is_gone(topic: str, commits: list[CommittedOffset], image: TopicsImage) -> bool:
    """Return whether the topic was deleted; a new topic may have its name."""
    topic_id = image.topic_id(topic)
    return topic_id is None or not any(committed.is_of(topic_id) for committed in commits)


OFFSET_REMOVAL: Final = Family(
    deciders={
        (DeleteGroup, ANY_GROUP): delete_group,
        (TopicsDeleted, ANY_GROUP): topics_deleted,
        (ExpireOffsets, ANY_GROUP): expire,
    }
)
