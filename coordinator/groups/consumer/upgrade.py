"""Change of a group from the classic protocol to the consumer protocol, without stopping (KIP-848).

The first member that joins with the new protocol converts the group. The others stay members, with
their partitions, and continue with the old protocol; the coordinator uses it with them
(classic_members.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Answer, Cancel, Now, Timer
from barnabas.coordinator.groups.classic.group import JOIN, SYNC, ClassicGroup
from barnabas.coordinator.groups.classic.group import Member as ClassicMember
from barnabas.coordinator.groups.classic.responses import join_error
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.consumer import embedded, records, timers
from barnabas.coordinator.groups.consumer.draft import Draft
from barnabas.coordinator.groups.consumer.group import FIRST_EPOCH, ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ClassicPart, Member, names_of, same_epoch
from barnabas.coordinator.groups.consumer.refusals import Refusal
from barnabas.coordinator.groups.consumer.target import metadata_hash
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

UPGRADES: Final = frozenset({"upgrade", "bidirectional"})
"""The policies that allow it."""
CONSUMERS: Final = "consumer"


def upgraded(
    shard: GroupTable, classic: ClassicGroup, topics: TopicsImage, now: Now
) -> Draft | Refusal:
    """Return a draft that converts a classic group with members to a consumer group."""
    refusal = _refusal(classic, shard.config)
    if refusal is not None:
        return refusal
    group = ConsumerGroup(classic.group_id)
    group.epoch = group.assignment_epoch = _epoch(classic)
    for member in classic.members.values():
        converted = _converted(group, classic, member, topics)
        if isinstance(converted, Refusal):
            return converted
        group.targets[member.member_id] = names_of(converted.assigned)
        group.put(converted)
    group.metadata_hash = metadata_hash(group.subscribed_topics(group.members.values()), topics)
    draft = Draft(shard, group, topics, now)
    draft.needs_assignment = classic.state is not State.STABLE or not _is_complete(group, topics)
    _call_everybody_off(draft, classic)
    draft.add(classic.tombstones())
    _write(draft)
    for new_member in group.members.values():
        draft.effects.append(timers.session(group.group_id, new_member, shard.config, now))
    return draft


def _refusal(classic: ClassicGroup, config: GroupConfig) -> Refusal | None:
    if config.consumer_migration_policy not in UPGRADES:
        return _no("group.consumer.migration.policy does not allow it")
    if classic.protocol_type != CONSUMERS:
        return _no("its members are no consumers")
    if len(classic.members) > config.consumer_max_size:
        return _no("it has more members than group.consumer.max.size")
    return None


def _no(reason: str) -> Refusal:
    words = f"the classic group cannot become a consumer group: {reason}"
    return Refusal(ErrorCode.GROUP_ID_NOT_FOUND, words)


def _epoch(classic: ClassicGroup) -> int:
    """Return the generation as an epoch, at least 1: a group in its first rebalance has 0."""
    return max(classic.generation, FIRST_EPOCH)


def _is_complete(group: ConsumerGroup, topics: TopicsImage) -> bool:
    """Return whether the leader's assignment has all present partitions.

    If so, a static member that returns with the new protocol causes no rebalance.
    """
    return all(
        group.is_owned(topic_id, partition)
        for name in group.subscribed_topics(group.members.values())
        if (topic_id := topics.topic_id(name)) is not None
        for partition in range(topics.partition_count(name))
    )


def _converted(
    group: ConsumerGroup, classic: ClassicGroup, member: ClassicMember, topics: TopicsImage
) -> Member | Refusal:
    """Return a member with its leader's assignment, without partitions of another member."""
    protocol = classic.protocol_name or member.protocols[0][0]
    subscribed = embedded.subscription(member.metadata(protocol), topics)
    given = embedded.given(member.assignment, topics)
    if subscribed is None or given is None:
        return _no("what its members tell each other is malformed")
    if given.user_data:
        return _no("its assignor keeps data of its own, which would be lost")
    generation = _epoch(classic)
    owned = {
        topic_id: frozenset(each for each in those if not group.is_owned(topic_id, each))
        for topic_id, those in given.partitions.items()
    }
    return Member(
        member.member_id,
        member_epoch=generation,
        previous_epoch=generation,
        instance_id=member.instance_id,
        rack_id=subscribed.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        topic_names=subscribed.topic_names,
        assigned=same_epoch({each: those for each, those in owned.items() if those}, generation),
        classic=ClassicPart(member.session_timeout_ms, member.protocols),
    )


def _call_everybody_off(draft: Draft, classic: ClassicGroup) -> None:
    """Send an error to all members that wait in a rebalance, so that they join again."""
    code = ErrorCode.REBALANCE_IN_PROGRESS
    for member_id, ticket in classic.joining.items():
        draft.effects.append(Answer(ticket, join_error(code, member_id)))
    for ticket in classic.syncing.values():
        draft.effects.append(Answer(ticket, SyncGroupResponse(error_code=code)))
    for name in (JOIN, SYNC):
        draft.effects.append(Cancel(Timer(classic.group_id, name)))


def _write(draft: Draft) -> None:
    """Add all records of the group to the draft, in Kafka's order."""
    group, group_id = draft.group, draft.group.group_id
    members = group.members.values()
    draft.add(records.member_record(group_id, member) for member in members)
    draft.records.append(records.epoch_record(group_id, group.epoch, group.metadata_hash))
    draft.add(
        records.target_record(group_id, member_id, target)
        for member_id, target in group.targets.items()
    )
    draft.records.append(records.assignment_record(group_id, group.assignment_epoch, 0))
    draft.add(records.current_record(group_id, member) for member in members)
