"""Replicas while brokers are fenced: as many as configured, those of fenced brokers offline."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.view import NO_NODE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.alter_partition_reassignments import (
    ALTER_PARTITION_REASSIGNMENTS,
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    LIST_PARTITION_REASSIGNMENTS,
    ListPartitionReassignmentsRequest,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.broker.console.asking import HTTP
from tests.broker.http.test_server import get_json
from tests.broker.scripted_moves import OneOfThree
from tests.broker.several import LISTENER, ScriptedView, node

NONE = ErrorCode.NONE
SECOND, THIRD = (node(each, (LISTENER, f"host-{each}", 9092)) for each in (2, 3))
SINCE_OFFLINE_REPLICAS = 5
HERE, THERE, NOWHERE = 0, 1, 2
"""Partitions of the topic, by where their leader is."""


@pytest.fixture(scope="module")
def broker():
    """Broker 1 of three, the third of which is fenced."""
    view = ScriptedView(1, [node(1), SECOND], {2: 2, 3: NO_NODE})
    view.fenced = [THIRD]
    settings = {"default.replication.factor": "3", **HTTP}
    with OneOfThree(view, {"t": 3}, **settings) as found:
        yield found


def shown(response):
    (topic,) = response.topics
    return [
        (each.leader_id, sorted(each.replica_nodes), sorted(each.isr_nodes), each.offline_replicas)
        for each in topic.partitions
    ]


def metadata(wire, version):
    return wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), version)


EXPECTED = [
    (1, [1, 2, 3], [1, 2], [3]),
    (2, [1, 2, 3], [1, 2], [3]),
    (NO_NODE, [1, 2, 3], [], [3]),
]


@pytest.mark.parametrize("version", [5, 6, 12, 13])
def test_metadata_shows_the_configured_replication_factor(broker, wire, version):
    response = metadata(wire, version)
    assert [each.node_id for each in response.brokers] == [1, 2], "in service"
    assert shown(response) == EXPECTED
    assert [each.replica_nodes[0] for each in response.topics[0].partitions][:NOWHERE] == [1, 2]


@pytest.mark.parametrize("version", [1, 4])
def test_older_metadata_has_no_offline_replicas(broker, wire, version):
    assert shown(metadata(wire, version)) == [(*each[:3], []) for each in EXPECTED]


def test_oldest_metadata_names_brokers_in_service_only(broker, wire):
    """Clients of that time look up each replica among the brokers."""
    in_service = [(leader, [1, 2], isr, []) for leader, _, isr, _ in EXPECTED]
    assert shown(metadata(wire, 0)) == in_service


def test_describe_topic_partitions_shows_the_same(broker, wire):
    request = DescribeTopicPartitionsRequest([TopicRequest("t")])
    response = wire.ask(DESCRIBE_TOPIC_PARTITIONS, request, 0)
    assert shown(response) == EXPECTED


async def test_console_shows_the_same_of_partitions_led_here(broker):
    address = broker.server.http.address
    _, topic = await get_json(address, "/api/v1/topics/t")
    assert topic["replicas"] == 3
    _, partitions = await get_json(address, "/api/v1/topics/t/partitions")
    (here,) = partitions["items"]
    assert here["leader"] == here["replicas"][0] == 1
    assert (sorted(here["replicas"]), sorted(here["in_sync"])) == ([1, 2, 3], [1, 2])


def test_a_client_that_cannot_reach_a_broker_sees_its_replicas_offline(broker, wire):
    hidden = node(2, ("INTERNAL", "inside", 1))
    broker.call(lambda: broker.view.in_service(node(1), hidden))
    try:
        here, there, _ = shown(metadata(wire, 12))
    finally:
        broker.call(lambda: broker.view.in_service(node(1), SECOND))
    assert (here[:3], sorted(here[3])) == ((1, [1, 2, 3], [1, 2]), [2, 3])
    assert (there[:3], sorted(there[3])) == ((NO_NODE, [1, 2, 3], [1, 2]), [2, 3])


def test_a_reassignment_may_name_fenced_replicas(broker, wire):
    def alter(*replicas):
        asked = [ReassignableTopic("t", [ReassignablePartition(HERE, list(replicas))])]
        request = AlterPartitionReassignmentsRequest(60_000, False, asked)
        response = wire.ask(ALTER_PARTITION_REASSIGNMENTS, request, 1)
        (found,) = response.responses[0].partitions
        return found.error_code

    assert alter(2, 1) == ErrorCode.INVALID_REPLICATION_FACTOR, (
        "it is 3, whichever brokers are fenced"
    )
    assert alter(3, 1, 2) == NONE
    assert broker.moves.asked_to_pin[-1] == {1: 3}, "it leads once it is in service"
    assert alter(2, 3, 1) == NONE
    response = wire.ask(LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(), 0)
    (ongoing,) = response.topics[0].partitions
    assert sorted(ongoing.replicas) == [1, 2, 3]
    assert (ongoing.adding_replicas, ongoing.removing_replicas) == ([], [])
    assert alter(1, 2, 3) == NONE


def test_a_new_topic_may_name_fenced_replicas(broker, wire):
    def create(name, *replicas):
        assignments = [CreatableReplicaAssignment(0, list(replicas))]
        request = CreateTopicsRequest([CreatableTopic(name, -1, -1, assignments)], 60_000)
        return wire.ask(CREATE_TOPICS, request, 7).topics[0]

    assert create("placed", 1, 3, 2).error_code == NONE
    assert create("to-be-placed", 3, 1, 2).error_code == NONE
    refused = create("nowhere", 3)
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "[3] are fenced" in refused.error_message


def test_describe_cluster_lists_fenced_brokers_on_request(broker, wire):
    def listed(*, fenced):
        request = DescribeClusterRequest(include_fenced_brokers=fenced)
        response = wire.ask(DESCRIBE_CLUSTER, request, 2)
        return [(each.broker_id, each.is_fenced) for each in response.brokers]

    assert listed(fenced=False) == [(1, False), (2, False)]
    assert listed(fenced=True) == [(1, False), (2, False), (3, True)]
