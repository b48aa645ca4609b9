"""Group coordinators, members and offsets, as a client can query them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from barnabas.broker.admin.exchange import (
    Partition,
    Rejected,
    TopicPartition,
    check,
    gathered,
    partition_text,
)
from barnabas.broker.admin.offsets import EARLIEST, LATEST, Offsets, offsets_at
from barnabas.broker.cli.cluster_view import Cluster
from barnabas.broker.cli.records.group_protocol import decode_assignment
from barnabas.broker.client.brokers import GROUP
from barnabas.broker.client.connection import Connection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    Assignment,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

OFFSET_FETCH_BY_NAME = 9
"""The last version of OffsetFetch that names topics; later ones answer with ids."""

CLASSIC, CONSUMER = "classic", "consumer"

_DEAD = "Dead"
_NO_OFFSET = -1


@dataclass(frozen=True)
class TopicPartitions:
    """Partitions of one topic."""

    topic: str
    partitions: list[int]


@dataclass(frozen=True)
class Member:
    """A member of a group, with the partitions that it reads."""

    member: str
    instance: str | None
    client: str
    host: str
    partitions: list[TopicPartitions]

    @property
    def partition_count(self) -> int:
        """Number of its partitions."""
        return sum(len(each.partitions) for each in self.partitions)


@dataclass(frozen=True)
class GroupPartition:
    """A partition with a committed offset or an assigned member, and its lag.

    ``lag`` is ``None`` without a committed offset, or if the partition does not exist.
    """

    topic: str
    partition: int
    committed_offset: int | None
    start_offset: int | None
    end_offset: int | None
    lag: int | None
    member: str | None


@dataclass(frozen=True)
class GroupDescription:
    """A group; its lag is the sum of the known lags, or ``None`` without a known one."""

    group: str
    state: str
    type: str
    coordinator: int
    assignor: str | None
    epoch: int | None
    lag: int | None = None
    partitions: list[GroupPartition] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)


class GroupView(NamedTuple):
    """A group as its coordinator knows it, without partitions, and the offsets of the group."""

    group: GroupDescription
    offsets: Offsets


@dataclass(frozen=True)
class ListedGroup:
    """A group in a list."""

    group: str
    state: str
    type: str
    protocol_type: str

    @property
    def protocol_text(self) -> str | None:
        """Type of the group's protocol, or ``None`` if the group has never had members."""
        return self.protocol_type or None


GROUP_STATES: Final = (
    "Stable",
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "NotReady",
    "Dead",
)
GROUP_TYPES: Final = ("classic", "consumer", "share", "streams")


def list_groups(cluster: Cluster, states: Sequence[str], types: Sequence[str]) -> list[ListedGroup]:
    """Return the groups of all brokers, filtered by state and type."""
    cluster.topics([])
    found: dict[str, ListedGroup] = {}
    for node_id in cluster.node_ids:
        request = ListGroupsRequest(list(states), list(types))
        response = cluster.node(node_id).ask(LIST_GROUPS, request)
        check("groups", response.error_code)
        for each in response.groups:
            listed = ListedGroup(
                each.group_id, each.group_state, each.group_type, each.protocol_type
            )
            found[each.group_id] = listed
    return [found[group_id] for group_id in sorted(found)]


def describe_group(cluster: Cluster, group_id: str) -> GroupDescription:
    """Return a group with its lag; Rejected GROUP_ID_NOT_FOUND if it does not exist."""
    group, offsets = view_group(cluster, group_id)
    owners = {
        (each.topic, number): member.member
        for member in group.members
        for each in member.partitions
        for number in each.partitions
    }
    keys = sorted({*offsets, *owners})
    led = led_partitions(cluster, keys)
    starts = cluster.run(offsets_at(led, EARLIEST))
    ends = cluster.run(offsets_at(led, LATEST))
    partitions = []
    for key in keys:
        committed, end = offsets.get(key), ends.get(key)
        lag = None if committed is None or end is None else max(end - committed, 0)
        partitions.append(
            GroupPartition(*key, committed, starts.get(key), end, lag, owners.get(key))
        )
    lags = [each.lag for each in partitions if each.lag is not None]
    return replace(group, lag=sum(lags) if lags else None, partitions=partitions)


def led_partitions(cluster: Cluster, wanted: Collection[TopicPartition]) -> list[Partition]:
    """Return the existing partitions with a leader."""
    names, found = sorted({topic for topic, _ in wanted}), []
    for topic in cluster.topics(names) if names else []:
        if topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            check(topic.name or "", topic.error_code)
        found += [
            Partition(topic.name or "", each.partition_index, each.leader_id)
            for each in topic.partitions
            if (topic.name, each.partition_index) in wanted and each.leader_id >= 0
        ]
    return found


def view_group(cluster: Cluster, group_id: str) -> GroupView:
    """Return a group's members and offsets; Rejected GROUP_ID_NOT_FOUND if it does not exist."""
    node_id = cluster.coordinator_ids(GROUP, [group_id])[group_id]
    broker = cluster.node(node_id)
    group = _consumer_group(broker, group_id, node_id) or _classic_group(broker, group_id, node_id)
    offsets = committed_offsets(broker, group_id)
    if group.state == _DEAD and not offsets:
        raise Rejected(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    group.members.sort(key=lambda each: each.member)
    return GroupView(group, offsets)


def _consumer_group(broker: Connection, group_id: str, node_id: int) -> GroupDescription | None:
    """Describe a group of the consumer protocol (KIP-848), or return ``None`` for any other."""
    if not broker.speaks(CONSUMER_GROUP_DESCRIBE, 0):
        return None
    request = ConsumerGroupDescribeRequest([group_id], False)
    (group,) = broker.ask(CONSUMER_GROUP_DESCRIBE, request).groups
    if group.error_code in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
        return None
    check(group_id, group.error_code, group.error_message)
    members = [
        Member(m.member_id, m.instance_id, m.client_id, m.client_host, _assigned(m.assignment))
        for m in group.members
    ]
    assignor = group.assignor_name or None
    about = group_id, group.group_state, CONSUMER, node_id, assignor, group.group_epoch
    return GroupDescription(*about, members=members)


def _assigned(assignment: Assignment) -> list[TopicPartitions]:
    found = [(each.topic_name, each.partitions) for each in assignment.topic_partitions]
    return by_topic((topic, number) for topic, numbers in found for number in numbers)


def _classic_group(broker: Connection, group_id: str, node_id: int) -> GroupDescription:
    """Describe a group of the classic protocol; one that does not exist is in state Dead."""
    (group,) = broker.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([group_id], False)).groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return GroupDescription(group_id, _DEAD, CLASSIC, node_id, None, None)
    check(group_id, group.error_code, group.error_message)
    members = [
        Member(m.member_id, m.group_instance_id, m.client_id, m.client_host,
               by_topic(decode_assignment(m.member_assignment)))
        for m in group.members
    ]  # fmt: skip
    about = group_id, group.group_state, CLASSIC, node_id, group.protocol_data or None, None
    return GroupDescription(*about, members=members)


def committed_offsets(broker: Connection, group_id: str) -> Offsets:
    """Return every offset that a group has committed; raises Rejected."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    (group,) = broker.ask(OFFSET_FETCH, request, OFFSET_FETCH_BY_NAME).groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    check(group_id, group.error_code)
    found: Offsets = {}
    for topic in group.topics:
        for each in topic.partitions:
            topic_partition = topic.name, each.partition_index
            check(partition_text(topic_partition), each.error_code)
            if each.committed_offset != _NO_OFFSET:
                found[topic_partition] = each.committed_offset
    return found


def by_topic(topic_partitions: Iterable[TopicPartition]) -> list[TopicPartitions]:
    """Return partitions by topic, in order."""
    return [TopicPartitions(*each) for each in gathered(sorted(topic_partitions)).items()]
