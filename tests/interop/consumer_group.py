"""One consumer group, spoken to over the wire, and its answers made comparable."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

from barnabas.protocol.messages.consumer_group_describe import (
    CONSUMER_GROUP_DESCRIBE,
    ConsumerGroupDescribeRequest,
)
from barnabas.protocol.messages.consumer_group_heartbeat import (
    CONSUMER_GROUP_HEARTBEAT,
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from barnabas.protocol.messages.consumer_protocol_subscription import (
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    ConsumerProtocolSubscription,
)
from barnabas.protocol.messages.consumer_protocol_subscription import (
    TopicPartition as OwnedPartitions,
)
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.delete_groups import DELETE_GROUPS, DeleteGroupsRequest
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from barnabas.protocol.messages.describe_groups import DESCRIBE_GROUPS, DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HEARTBEAT, HeartbeatRequest
from barnabas.protocol.messages.join_group import (
    JOIN_GROUP,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from barnabas.protocol.messages.leave_group import LEAVE_GROUP, LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import LIST_GROUPS, ListGroupsRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_commit import (
    OFFSET_COMMIT,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OFFSET_FETCH,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.sync_group import SYNC_GROUP, SyncGroupRequest
from barnabas.protocol.wire import ZERO_UUID
from tests.counterparts.wire_client import WireClient
from tests.requests import create_topic

JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
SIX, FOUR = "six", "four"
"""Topics by the number of their partitions."""


class Group:
    """One group, spoken to over one connection."""

    def __init__(self, client: WireClient, group_id: str, ids: dict[str, bytes]) -> None:
        self.group_id = group_id
        self.client = client
        self.ids = ids
        """Topic ids by name."""
        self.has: dict[str, list[TopicPartitions]] = {}
        """The partitions that each member last received."""

    def topics(self, name: str, partitions: list[int]) -> list[TopicPartitions]:
        return [TopicPartitions(self.ids[name], partitions)]

    def heartbeat(
        self,
        member: str,
        epoch: int,
        *,
        names: str | None = None,
        owned: Any = None,
        version: int = 1,
        **more: Any,
    ) -> Any:
        """A heartbeat; ``owned`` may be True for what the member was last told to own."""
        listed = self.has.get(member, []) if owned is True else owned
        request = ConsumerGroupHeartbeatRequest(
            group_id=more.pop("group_id", self.group_id),
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=None if names is None else names.split(),
            topic_partitions=listed,
            **more,
        )
        response = self.client.ask(CONSUMER_GROUP_HEARTBEAT, request, version)
        if response.assignment is not None:
            self.has[member] = response.assignment.topic_partitions
        return response

    def join(self, member: str, names: str | None = SIX, **more: Any) -> Any:
        options = {"rebalance_timeout_ms": 30_000, "owned": [], **more}
        return self.heartbeat(member, JOIN, names=names, **options)

    def join_classic(
        self,
        member: str,
        names: str = SIX,
        *,
        owned: dict[str, list[int]] | None = None,
        instance: str | None = None,
        protocols: str = "range",
        version: int = 9,
        protocol_type: str = "consumer",
    ) -> Any:
        partitions = [OwnedPartitions(name, those) for name, those in (owned or {}).items()]
        message = ConsumerProtocolSubscription(names.split(), None, partitions)
        data = CONSUMER_PROTOCOL_SUBSCRIPTION.encode(message, 1, bytearray(b"\0\1"))
        metadata = b"".join(data)
        request = JoinGroupRequest(
            self.group_id,
            30_000,
            30_000,
            member,
            instance,
            protocol_type,
            [JoinGroupRequestProtocol(each, metadata) for each in protocols.split()],
            "a reason",
        )
        return self.client.ask(JOIN_GROUP, request, version)

    def sync(self, member: str, generation: int, **more: Any) -> Any:
        request = SyncGroupRequest(
            self.group_id,
            generation,
            member,
            more.get("instance"),
            more.get("protocol_type", "consumer"),
            more.get("protocol", "range"),
        )
        return self.client.ask(SYNC_GROUP, request, 5)

    def heartbeat_classic(self, member: str, generation: int, instance: str | None = None) -> Any:
        request = HeartbeatRequest(self.group_id, generation, member, instance)
        return self.client.ask(HEARTBEAT, request, 4)

    def leave_classic(self, *members: tuple[str, str | None]) -> Any:
        request = LeaveGroupRequest(self.group_id, "", [MemberIdentity(*each) for each in members])
        return self.client.ask(LEAVE_GROUP, request, 5)

    def commit(self, member: str, epoch: int, partition: int = 0, version: int = 9) -> Any:
        topic = OffsetCommitRequestTopic(
            SIX, partitions=[OffsetCommitRequestPartition(partition, 5)]
        )
        request = OffsetCommitRequest(self.group_id, epoch, member, None, topics=[topic])
        return self.client.ask(OFFSET_COMMIT, request, version)

    def fetch(self, member: str | None, epoch: int) -> Any:
        topics = [OffsetFetchRequestTopics(SIX, partition_indexes=[0])]
        asked = OffsetFetchRequestGroup(self.group_id, member, epoch, topics)
        return self.client.ask(OFFSET_FETCH, OffsetFetchRequest(groups=[asked]), 9)

    def describe(self, *group_ids: str, operations: bool = False, version: int = 1) -> Any:
        request = ConsumerGroupDescribeRequest(list(group_ids) or [self.group_id], operations)
        return self.client.ask(CONSUMER_GROUP_DESCRIBE, request, version)

    def describe_classic(self) -> Any:
        return self.client.ask(DESCRIBE_GROUPS, DescribeGroupsRequest([self.group_id]), 6)

    def delete(self) -> Any:
        return self.client.ask(DELETE_GROUPS, DeleteGroupsRequest([self.group_id]), 2)

    def list(self, types: str = "") -> Any:
        response = self.client.ask(LIST_GROUPS, ListGroupsRequest([], types.split()), 5)
        response.groups = [each for each in response.groups if each.group_id == self.group_id]
        return response


def comparable(value: Any, name: str = "") -> Any:
    """Turn a response into plain data in which equal answers are equal."""
    if name in {"topic_id", "assignment_bytes"}:
        return value != b""
    if name == "partitions":
        return len(value)
    if name == "error_message":
        return value is not None
    if is_dataclass(value):
        return {
            each.name: comparable(getattr(value, each.name), each.name) for each in fields(value)
        }
    if isinstance(value, list):
        return sorted((comparable(each) for each in value), key=repr)
    if isinstance(value, bytes | memoryview):
        return len(value)
    return value


def until(ask: Callable[[], Any], done: Callable[[Any], bool], timeout_s: float = 60.0) -> Any:
    """Repeat a request until its response is as wanted; return the response."""
    deadline = time.monotonic() + timeout_s
    while not done(response := ask()):
        assert time.monotonic() < deadline, response
        time.sleep(0.1)
    return response


def wait_for_coordinator(client: WireClient) -> None:
    """Wait until groups are served: Apache Kafka loads each partition of theirs by itself."""
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
    until(
        lambda: client.ask(FIND_COORDINATOR, request, 6),
        lambda response: response.coordinators[0].error_code == 0,
    )
    for number in range(100):
        heartbeat = ConsumerGroupHeartbeatRequest(f"g{number}", "m", 1)
        until(
            lambda heartbeat=heartbeat: client.ask(CONSUMER_GROUP_HEARTBEAT, heartbeat, 1),
            lambda response: response.error_code == 69,
        )


# --------------------------------------------------------------------------------------- topics


def create(client: WireClient, name: str, partitions: int) -> bytes:
    """Create a topic and wait until its partitions exist; return its id."""
    topic_id = create_topic(client, name, partitions)
    _wait_for_partitions(client, name, partitions)
    return topic_id


def grow(client: WireClient, name: str, partitions: int) -> None:
    """Give a topic more partitions."""
    request = CreatePartitionsRequest([CreatePartitionsTopic(name, partitions, None)], 60_000)
    assert not client.ask(CREATE_PARTITIONS, request, 3).results[0].error_code
    _wait_for_partitions(client, name, partitions)


def delete(client: WireClient, name: str) -> None:
    """Delete a topic."""
    request = DeleteTopicsRequest([DeleteTopicState(name)], timeout_ms=60_000)
    assert not client.ask(DELETE_TOPICS, request, 6).responses[0].error_code


def _wait_for_partitions(client: WireClient, name: str, partitions: int) -> None:
    request = MetadataRequest([MetadataRequestTopic(ZERO_UUID, name)], False)
    until(
        lambda: client.ask(METADATA, request, 12).topics[0],
        lambda topic: (
            not topic.error_code
            and len(topic.partitions) == partitions
            and all(each.leader_id >= 0 for each in topic.partitions)
        ),
    )
