"""A classic group as its record in ``__consumer_offsets`` has it, both ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.classic.group import CONSUMER_PROTOCOL, ClassicGroup, Member
from barnabas.coordinator.groups.classic.states import State
from barnabas.coordinator.groups.group import CLASSIC
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages.consumer_protocol_subscription import CONSUMER_PROTOCOL_SUBSCRIPTION
from barnabas.protocol.messages.group_metadata_record import (
    GROUP_METADATA_RECORD,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.group_table import GroupTable

VALUE_VERSION: Final = 3
"""Version of the value that Apache Kafka 4.3.0 writes; older brokers read it too."""
NOT_KNOWN: Final = -1


def group_record(group: ClassicGroup) -> Record:
    """Return the record of a group that is Empty or Stable."""
    assert group.state in {State.EMPTY, State.STABLE}
    members = [
        MemberMetadata(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol_name),
            member.assignment,
        )
        for member in group.members.values()
    ]
    value = GroupMetadataValue(
        group.protocol_type,
        group.generation,
        group.protocol_name,
        group.leader_id,
        group.state_since_ms,
        members,
    )
    return Record(GROUP_METADATA_RECORD, GroupMetadataKey(group.group_id), value, VALUE_VERSION)


def put(shard: GroupTable, group: ClassicGroup) -> None:
    """Put a group into the table, and report a changed generation."""
    before = shard.groups.get(group.group_id)
    shard.groups[group.group_id] = group
    if group.generation != (before.generation if isinstance(before, ClassicGroup) else 0):
        shard.on_generation(group.group_id, group.generation)


def apply_group_metadata(shard: GroupTable, record: Record, offset: int) -> None:
    """Replace a group by its record's content; state that is not stored follows by a change."""
    del offset
    group_id = record.key.group
    if record.value is not None:
        put(shard, group_of(record))
        return
    group = shard.groups.get(group_id)
    if group is not None and group.type_name == CLASSIC:
        del shard.groups[group_id]


def group_of(record: Record) -> ClassicGroup:
    """Return the group that a record describes, as after a start."""
    value: GroupMetadataValue = record.value
    group = ClassicGroup(
        record.key.group,
        State.STABLE if value.members else State.EMPTY,
        state_since_ms=value.current_state_timestamp,
        generation=value.generation,
        protocol_type=value.protocol_type,
        protocol_name=value.protocol,
        leader_id=value.leader,
        stored=record,
    )
    protocol = value.protocol or ""
    for stored in value.members:
        rebalance_timeout_ms = stored.rebalance_timeout
        if rebalance_timeout_ms == NOT_KNOWN:  # Written before Kafka 0.10.1.
            rebalance_timeout_ms = stored.session_timeout
        member = Member(
            stored.member_id,
            stored.group_instance_id,
            stored.client_id,
            stored.client_host,
            rebalance_timeout_ms,
            stored.session_timeout,
            ((protocol, stored.subscription),),
            stored.assignment,
        )
        group.members[member.member_id] = member
        if member.instance_id is not None:
            group.static_members[member.instance_id] = member.member_id
    if value.members:
        group.supporters[protocol] = len(value.members)
    group.topics = subscribed_topics(group)
    return group


def subscribed_topics(group: ClassicGroup) -> frozenset[str] | None:
    """Return the topics that the members read, or None if their metadata does not name them."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        return None
    topics: set[str] = set()
    for said in {member.metadata(group.protocol_name) for member in group.members.values()}:
        metadata = memoryview(said)
        try:
            # Two bytes of version; every version starts like version 0.
            subscription, end = CONSUMER_PROTOCOL_SUBSCRIPTION.decode_part(metadata, 2, 0)
        except Malformed:
            return None
        if end > len(metadata):
            return None
        topics.update(subscription.topics)
    return frozenset(topics)
