"""What a client can find out about groups: their coordinators, members and offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from barnabas.broker.cli.cluster_view import Cluster, Rejected, check
from barnabas.broker.cli.errors import CommandError
from barnabas.broker.cli.group_protocol import decode_assignment
from barnabas.broker.cli.offsets import TopicPartition, partition_text
from barnabas.broker.client.brokers import GROUP, MANY_KEYS_SINCE
from barnabas.broker.client.connection import Connection
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    Assignment,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListedGroup, ListGroupsRequest
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

OFFSET_FETCH_BY_NAME = 9
"""The last version of OffsetFetch that names topics; later ones answer with ids."""

CLASSIC, CONSUMER = "classic", "consumer"
"""The version of FindCoordinator that takes several keys; OffsetFetch came to it at that time."""

_DEAD = "Dead"
_NO_OFFSET = -1


@dataclass
class Member:
    """One member of a group."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    partitions: list[TopicPartition]


@dataclass
class GroupView:
    """One group; ``offsets`` are those it has committed."""

    group_id: str
    state: str
    type: str
    assignor: str
    epoch: int | None
    coordinator: int
    members: list[Member]
    offsets: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def owners(self) -> dict[TopicPartition, Member]:
        """Who reads what."""
        return {
            topic_partition: member
            for member in self.members
            for topic_partition in member.partitions
        }


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
    """Return the groups of all brokers, those of some states and types if any are given."""
    cluster.topics([])
    found: dict[str, ListedGroup] = {}
    for node_id in cluster.node_ids:
        request = ListGroupsRequest(list(states), list(types))
        response = cluster.node(node_id).ask(LIST_GROUPS, request)
        check("groups", response.error_code)
        found |= {group.group_id: group for group in response.groups}
    return [found[group_id] for group_id in sorted(found)]


def coordinators(cluster: Cluster, keys: Iterable[str], kind: int = GROUP) -> dict[str, int]:
    """Return the node id of the coordinator of groups, or other keys; raises Rejected."""
    if not cluster.any().speaks(FIND_COORDINATOR, MANY_KEYS_SINCE):
        what = "groups" if kind == GROUP else "transactions"
        raise CommandError(f"{what}: the broker speaks Kafka's protocol of before 3.0")
    found = {}
    for each in cluster.coordinators(kind, list(keys)):
        check(each.key, each.error_code, each.error_message)
        found[each.key] = each.node_id
    return found


def view_group(cluster: Cluster, group_id: str) -> GroupView:
    """Return all there is to know of a group; Rejected GROUP_ID_NOT_FOUND where it is not there."""
    node_id = coordinators(cluster, [group_id])[group_id]
    broker = cluster.node(node_id)
    view = _consumer_group(broker, group_id, node_id) or _classic_group(broker, group_id, node_id)
    view.offsets = committed_offsets(broker, group_id)
    if view.state == _DEAD and not view.offsets:
        raise Rejected(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
    return view


def _consumer_group(broker: Connection, group_id: str, node_id: int) -> GroupView | None:
    """Describe a group of the consumer protocol (KIP-848); None for any other."""
    if not broker.speaks(CONSUMER_GROUP_DESCRIBE, 0):
        return None
    request = ConsumerGroupDescribeRequest([group_id], False)
    (group,) = broker.ask(CONSUMER_GROUP_DESCRIBE, request).groups
    if group.error_code in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION}:
        return None
    check(group_id, group.error_code, group.error_message)
    members = [
        Member(
            each.member_id,
            each.instance_id,
            each.client_id,
            each.client_host,
            _places(each.assignment),
        )
        for each in group.members
    ]
    return GroupView(
        group_id,
        group.group_state,
        CONSUMER,
        group.assignor_name,
        group.group_epoch,
        node_id,
        members,
    )


def _places(assignment: Assignment) -> list[TopicPartition]:
    return sorted(
        (topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )


def _classic_group(broker: Connection, group_id: str, node_id: int) -> GroupView:
    """Describe a group of the classic protocol; one that is not there is in state Dead."""
    (group,) = broker.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([group_id], False)).groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return GroupView(group_id, _DEAD, CLASSIC, "", None, node_id, [])
    check(group_id, group.error_code, group.error_message)
    members = [
        Member(
            each.member_id,
            each.group_instance_id,
            each.client_id,
            each.client_host,
            decode_assignment(each.member_assignment),
        )
        for each in group.members
    ]
    return GroupView(
        group_id, group.group_state, CLASSIC, group.protocol_data, None, node_id, members
    )


def committed_offsets(broker: Connection, group_id: str) -> dict[TopicPartition, int]:
    """Return every offset that a group has committed; raises Rejected."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    (group,) = broker.ask(OFFSET_FETCH, request, OFFSET_FETCH_BY_NAME).groups
    if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return {}
    check(group_id, group.error_code)
    found: dict[TopicPartition, int] = {}
    for topic in group.topics:
        for each in topic.partitions:
            topic_partition = topic.name, each.partition_index
            check(partition_text(topic_partition), each.error_code)
            if each.committed_offset != _NO_OFFSET:
                found[topic_partition] = each.committed_offset
    return found


def by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Gather partitions by topic, in order."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(topic_partitions):
        found[topic].append(number)
    return found
