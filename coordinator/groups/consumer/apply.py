"""Taking in the records and the volatile changes of consumer groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.group import NO_ASSIGNMENT, ConsumerGroup, Resolved
from barnabas.protocol.messages.consumer_group_current_member_assignment_record import (
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD,
)
from barnabas.protocol.messages.consumer_group_member_metadata_record import (
    CONSUMER_GROUP_MEMBER_METADATA_RECORD,
)
from barnabas.protocol.messages.consumer_group_metadata_record import CONSUMER_GROUP_METADATA_RECORD
from barnabas.protocol.messages.consumer_group_partition_metadata_record import (
    CONSUMER_GROUP_PARTITION_METADATA_RECORD,
)
from barnabas.protocol.messages.consumer_group_regular_expression_record import (
    CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD,
)
from barnabas.protocol.messages.consumer_group_target_assignment_member_record import (
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD,
)
from barnabas.protocol.messages.consumer_group_target_assignment_metadata_record import (
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

Apply = Callable[[ConsumerGroup, Any, Any], None]

# ------------------------------------------------------------------------------------- records


def _applied(apply: Apply) -> Callable[[GroupTable, Record, int], None]:
    """Return a function that finds or creates the group first; without one it ignores tombstones.

    A classic group of this name has been removed by its own tombstone before.
    """

    def applier(shard: GroupTable, record: Record, _offset: int) -> None:
        group = shard.groups.get(record.key.group_id)
        if not isinstance(group, ConsumerGroup):
            if record.value is None:
                return
            group = ConsumerGroup(record.key.group_id)
            shard.groups[group.group_id] = group
        apply(group, record.key, record.value)

    return applier


def _apply_epoch(group: ConsumerGroup, _key: Any, value: Any) -> None:  # noqa: ANN401
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash


def _apply_partition_metadata(group: ConsumerGroup, _key: Any, value: Any) -> None:  # noqa: ANN401
    group.has_partition_metadata = value is not None


def _apply_member(group: ConsumerGroup, key: Any, value: Any) -> None:  # noqa: ANN401
    if value is None:
        group.remove(key.member_id)
    else:
        group.change(key.member_id, lambda member: records.with_metadata(member, value))


def _apply_current(group: ConsumerGroup, key: Any, value: Any) -> None:  # noqa: ANN401
    if value is not None:
        group.change(key.member_id, lambda member: records.with_assignment(member, value))
    elif key.member_id in group.members:
        group.change(key.member_id, records.without_assignment)


def _apply_target(group: ConsumerGroup, key: Any, value: Any) -> None:  # noqa: ANN401
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = records.target_partitions(value)


def _apply_assignment(group: ConsumerGroup, _key: Any, value: Any) -> None:  # noqa: ANN401
    if value is None:
        group.assignment_epoch, group.assignment_timestamp_ms = NO_ASSIGNMENT, 0
    else:
        group.assignment_epoch = value.assignment_epoch
        group.assignment_timestamp_ms = value.assignment_timestamp


def _apply_regex(group: ConsumerGroup, key: Any, value: Any) -> None:  # noqa: ANN401
    if value is None:
        group.resolved.pop(key.regular_expression, None)
    else:
        found = Resolved(frozenset(value.topics), value.version, value.timestamp)
        group.resolved[key.regular_expression] = found


def _apply_group(shard: GroupTable, record: Record, offset: int) -> None:
    """Apply the group's epoch; a tombstone deletes the group."""
    if record.value is not None:
        _applied(_apply_epoch)(shard, record, offset)
        shard.on_generation(record.key.group_id, record.value.epoch)
    elif isinstance(shard.groups.get(record.key.group_id), ConsumerGroup):
        del shard.groups[record.key.group_id]


APPLIERS: Final = {
    CONSUMER_GROUP_METADATA_RECORD.key_type: _apply_group,
    CONSUMER_GROUP_PARTITION_METADATA_RECORD.key_type: _applied(_apply_partition_metadata),
    CONSUMER_GROUP_MEMBER_METADATA_RECORD.key_type: _applied(_apply_member),
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD.key_type: _applied(_apply_current),
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD.key_type: _applied(_apply_target),
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD.key_type: _applied(_apply_assignment),
    CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD.key_type: _applied(_apply_regex),
}

# ------------------------------------------------------------------------------------- changes


@dataclass(frozen=True, slots=True)
class TopicsSeen:
    """The group's metadata hash is that of these topics."""

    group_id: str
    version: int


@dataclass(frozen=True, slots=True)
class TopicsMatched:
    """The group's regular expressions are resolved against these topics."""

    group_id: str
    version: int


@dataclass(frozen=True, slots=True)
class TopicsShown:
    """The group's regular expressions are to be resolved against event a member sees."""

    group_id: str
    topics: TopicsImage


@dataclass(frozen=True, slots=True)
class JoinExpected:
    """A member of the classic protocol must join again, or has done so."""

    group_id: str
    member_id: str
    expected: bool


def _changed(change: Callable[[ConsumerGroup, Any], None]) -> Callable[[GroupTable, Any], None]:
    """Return a function that finds the group first; a missing group needs no change."""

    def changer(shard: GroupTable, event: Any) -> None:  # noqa: ANN401
        group = shard.groups.get(event.group_id)
        if isinstance(group, ConsumerGroup):
            change(group, event)

    return changer


def _topics_seen(group: ConsumerGroup, event: TopicsSeen) -> None:
    group.topics_seen = event.version


def _topics_matched(group: ConsumerGroup, event: TopicsMatched) -> None:
    group.topics_matched = event.version


def _topics_shown(group: ConsumerGroup, event: TopicsShown) -> None:
    group.topics_shown = event.topics


def _join_expected(group: ConsumerGroup, event: JoinExpected) -> None:
    if event.expected and event.member_id in group.members:
        group.expected_to_join.add(event.member_id)
    else:
        group.expected_to_join.discard(event.member_id)


CHANGERS: Final[Mapping[type, Callable[[GroupTable, Any], None]]] = {
    TopicsSeen: _changed(_topics_seen),
    TopicsMatched: _changed(_topics_matched),
    TopicsShown: _changed(_topics_shown),
    JoinExpected: _changed(_join_expected),
}
