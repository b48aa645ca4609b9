"""A consumer group as ConsumerGroupDescribe shows it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.coordinator.groups.commands import TopicsImage
from barnabas.coordinator.groups.config import GroupConfig
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import NO_PARTITIONS, Member, Partitions, names_of
from barnabas.coordinator.groups.consumer.target import assignor_of
from barnabas.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedGroup,
    TopicPartitions,
)
from barnabas.protocol.messages.consumer_group_describe import Member as DescribedMember

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


def describe(group: ConsumerGroup, config: GroupConfig, topics: TopicsImage) -> DescribedGroup:
    """Return the group with all its members."""
    members = list(group.members.values())
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor_of(group, members, config.consumer_assignors),
        members=[_member(group, member, topics) for member in members],
    )


def _member(group: ConsumerGroup, member: Member, topics: TopicsImage) -> DescribedMember:
    target = group.targets.get(member.member_id, NO_PARTITIONS)
    return DescribedMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_listed([names_of(member.assigned), names_of(member.revoking)], topics),
        target_assignment=_listed([target], topics),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _listed(parts: Iterable[Partitions], topics: TopicsImage) -> Assignment:
    """Partitions with the names of their topics; those of deleted topics are left out."""
    together: dict[bytes, set[int]] = {}
    for part in parts:
        for topic_id, partitions in part.items():
            together.setdefault(topic_id, set()).update(partitions)
    listed = []
    for topic_id in sorted(together):
        name = topics.name(topic_id)
        if name is not None:
            listed.append(TopicPartitions(topic_id, name, sorted(together[topic_id])))
    return Assignment(listed)
