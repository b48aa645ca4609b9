"""The records of consumer groups (KIP-848), made and read; Kafka's key types 3 to 8 and 16."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Record
from barnabas.coordinator.groups.consumer.member import (
    NO_EPOCH,
    NOTHING_OWNED,
    ClassicPart,
    Member,
    MemberState,
    Owned,
    Partitions,
)
from barnabas.protocol.messages import consumer_group_current_member_assignment_record as current
from barnabas.protocol.messages import consumer_group_member_metadata_record as metadata
from barnabas.protocol.messages import consumer_group_target_assignment_member_record as target
from barnabas.protocol.messages.consumer_group_metadata_record import (
    CONSUMER_GROUP_METADATA_RECORD,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from barnabas.protocol.messages.consumer_group_partition_metadata_record import (
    CONSUMER_GROUP_PARTITION_METADATA_RECORD,
    ConsumerGroupPartitionMetadataKey,
)
from barnabas.protocol.messages.consumer_group_regular_expression_record import (
    CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from barnabas.protocol.messages.consumer_group_target_assignment_metadata_record import (
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.consumer.group import Resolved

# ------------------------------------------------------------------------------------- making


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """Return the record of the group's epoch with the hash of its topics' metadata."""
    value = ConsumerGroupMetadataValue(epoch, metadata_hash)
    return Record(CONSUMER_GROUP_METADATA_RECORD, ConsumerGroupMetadataKey(group_id), value)


def member_record(group_id: str, member: Member) -> Record:
    """Return the record of a member's subscription."""
    classic = None
    if member.classic is not None:
        protocols = [metadata.ClassicProtocol(*each) for each in member.classic.protocols]
        classic = metadata.ClassicMemberMetadata(member.classic.session_timeout_ms, protocols)
    value = metadata.ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    key = metadata.ConsumerGroupMemberMetadataKey(group_id, member.member_id)
    return Record(metadata.CONSUMER_GROUP_MEMBER_METADATA_RECORD, key, value)


def target_record(group_id: str, member_id: str, partitions: Partitions) -> Record:
    """Return the record of a member's target assignment."""
    topics = [target.TopicPartition(each, sorted(partitions[each])) for each in sorted(partitions)]
    key = target.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    value = target.ConsumerGroupTargetAssignmentMemberValue(topics)
    return Record(target.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD, key, value)


def assignment_record(group_id: str, epoch: int, timestamp_ms: int) -> Record:
    """Return the record of the epoch of all targets."""
    return Record(
        CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD,
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def current_record(group_id: str, member: Member) -> Record:
    """Return the record of a member's present assignment."""
    value = current.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_epoch,
        state=member.state,
        assigned_partitions=_owned_topics(member.assigned),
        partitions_pending_revocation=_owned_topics(member.revoking),
    )
    key = current.ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id)
    return Record(current.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD, key, value)


def _owned_topics(owned: Owned) -> list[current.TopicPartitions]:
    topics = []
    for topic_id in sorted(owned):
        partitions = sorted(owned[topic_id])
        epochs = [owned[topic_id][partition] for partition in partitions]
        topics.append(current.TopicPartitions(topic_id, partitions, epochs))
    return topics


def regex_record(group_id: str, regex: str, resolved: Resolved) -> Record:
    """Return the record of the topics that match a regular expression."""
    return Record(
        CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD,
        ConsumerGroupRegularExpressionKey(group_id, regex),
        ConsumerGroupRegularExpressionValue(
            sorted(resolved.topics), resolved.version, resolved.timestamp_ms
        ),
    )


# --------------------------------------------------------------------------------- tombstones


def current_tombstone(group_id: str, member_id: str) -> Record:
    """Return the record that deletes the partitions that a member owns."""
    key = current.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id)
    return Record(current.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD, key, None)


def target_tombstone(group_id: str, member_id: str) -> Record:
    """Return the record that deletes the target of a member."""
    key = target.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id)
    return Record(target.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD, key, None)


def member_tombstone(group_id: str, member_id: str) -> Record:
    """Return the tombstone of a member."""
    key = metadata.ConsumerGroupMemberMetadataKey(group_id, member_id)
    return Record(metadata.CONSUMER_GROUP_MEMBER_METADATA_RECORD, key, None)


def member_tombstones(group_id: str, member_id: str) -> tuple[Record, ...]:
    """Return the records that delete a member, in the order that Kafka's replay needs."""
    return (
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    )


def regex_tombstone(group_id: str, regex: str) -> Record:
    """Return the tombstone of a regular expression without subscribers."""
    key = ConsumerGroupRegularExpressionKey(group_id, regex)
    return Record(CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD, key, None)


def partition_metadata_tombstone(group_id: str) -> Record:
    """Return the tombstone of a record that Kafka before 4.1 wrote."""
    key = ConsumerGroupPartitionMetadataKey(group_id)
    return Record(CONSUMER_GROUP_PARTITION_METADATA_RECORD, key, None)


def group_tombstones(
    group_id: str, member_ids: Iterable[str], regexes: Iterable[str]
) -> tuple[Record, ...]:
    """Return the records that delete a group, in the order that Kafka's replay needs."""
    members = list(member_ids)
    assignment = ConsumerGroupTargetAssignmentMetadataKey(group_id)
    return (
        *(current_tombstone(group_id, each) for each in members),
        *(target_tombstone(group_id, each) for each in members),
        Record(CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD, assignment, None),
        *(member_tombstone(group_id, each) for each in members),
        *(regex_tombstone(group_id, each) for each in regexes),
        partition_metadata_tombstone(group_id),
        Record(CONSUMER_GROUP_METADATA_RECORD, ConsumerGroupMetadataKey(group_id), None),
    )


# ------------------------------------------------------------------------------------ reading


def with_metadata(member: Member, value: metadata.ConsumerGroupMemberMetadataValue) -> Member:
    """Return the member with the fields of its metadata record."""
    classic = None
    if value.classic_member_metadata is not None:
        found = value.classic_member_metadata
        protocols = tuple((each.name, bytes(each.metadata)) for each in found.supported_protocols)
        classic = ClassicPart(found.session_timeout_ms, protocols)
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        topic_names=frozenset(value.subscribed_topic_names),
        topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        assignor=value.server_assignor,
        classic=classic,
    )


def with_assignment(
    member: Member, value: current.ConsumerGroupCurrentMemberAssignmentValue
) -> Member:
    """Return the member with the fields of its assignment record."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_owned(value.assigned_partitions, value.member_epoch),
        revoking=_owned(value.partitions_pending_revocation, value.member_epoch),
    )


def without_assignment(member: Member) -> Member:
    """Return the member after the tombstone of its assignment."""
    return replace(
        member,
        member_epoch=NO_EPOCH,
        previous_epoch=NO_EPOCH,
        assigned=NOTHING_OWNED,
        revoking=NOTHING_OWNED,
    )


def _owned(topics: list[current.TopicPartitions], member_epoch: int) -> Owned:
    """Return the partitions with their epochs, or the member's: Kafka before 4.3 wrote none."""
    owned = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def target_partitions(value: target.ConsumerGroupTargetAssignmentMemberValue) -> Partitions:
    """Return the partitions of a target record."""
    return {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
