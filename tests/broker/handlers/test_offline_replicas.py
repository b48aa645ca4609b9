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
from barnabas.testing import Cluster
from tests.broker.console.asking import HTTP
from tests.broker.http.test_server import get_json
from tests.broker.moves import STAYS, Held, RecordedMoves, frozen, unled
from tests.waiting import wait_until

NONE = ErrorCode.NONE
SINCE_OFFLINE_REPLICAS = 5
HERE, THERE, NOWHERE = 0, 1, 2
"""Partitions of the topic, by where their leader is."""


@pytest.fixture(scope="module")
def broker(world):
    """Broker 0 of three, the third of which is fenced."""
    settings = {"default.replication.factor": "3", **HTTP, **STAYS}
    with Cluster(brokers=3, config=settings) as cluster:
        cluster.create_topic("t", 3)
        for index, number in ((HERE, 0), (THERE, 1), (NOWHERE, 0)):
            cluster.move("t", index, to=number)
        with frozen(cluster):
            unled(cluster, "t", NOWHERE)
            cluster.kill(2)
            found = cluster.brokers[0]
            wait_until(lambda: len(found.server.view.fenced) == 1)
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
    (0, [0, 1, 2], [0, 1], [2]),
    (1, [0, 1, 2], [0, 1], [2]),
    (NO_NODE, [0, 1, 2], [], [2]),
]


@pytest.mark.parametrize("version", [5, 6, 12, 13])
def test_metadata_shows_the_configured_replication_factor(broker, wire, version):
    response = metadata(wire, version)
    assert [each.node_id for each in response.brokers] == [0, 1], "in service"
    assert shown(response) == EXPECTED
    assert [each.replica_nodes[0] for each in response.topics[0].partitions][:NOWHERE] == [0, 1]


@pytest.mark.parametrize("version", [1, 4])
def test_older_metadata_has_no_offline_replicas(broker, wire, version):
    assert shown(metadata(wire, version)) == [(*each[:3], []) for each in EXPECTED]


def test_oldest_metadata_names_brokers_in_service_only(broker, wire):
    """Clients of that time look up each replica among the brokers."""
    in_service = [(leader, [0, 1], isr, []) for leader, _, isr, _ in EXPECTED]
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
    assert here["leader"] == here["replicas"][0] == 0
    assert (sorted(here["replicas"]), sorted(here["in_sync"])) == ([0, 1, 2], [0, 1])


def test_a_client_that_cannot_reach_a_broker_sees_its_replicas_offline(broker, wire, monkeypatch):
    """The other broker has no address at the listener of the client."""
    looks = Held(monkeypatch, broker.server._member._membership, "poll_once")
    wait_until(lambda: looks.calls)
    view = broker.server.view
    first, second = view.nodes
    hidden = second._replace(endpoints={"INTERNAL": ("inside", 1)})
    monkeypatch.setattr(view, "nodes", [first, hidden])
    here, there, _ = shown(metadata(wire, 12))
    looks.release()
    assert (here[:3], sorted(here[3])) == ((0, [0, 1, 2], [0, 1]), [1, 2])
    assert (there[:3], sorted(there[3])) == ((NO_NODE, [0, 1, 2], [0, 1]), [1, 2])


def test_a_reassignment_may_name_fenced_replicas(broker, wire, monkeypatch):
    moves = RecordedMoves(broker, monkeypatch)

    def alter(*replicas):
        asked = [ReassignableTopic("t", [ReassignablePartition(HERE, list(replicas))])]
        request = AlterPartitionReassignmentsRequest(60_000, False, asked)
        response = wire.ask(ALTER_PARTITION_REASSIGNMENTS, request, 1)
        (found,) = response.responses[0].partitions
        return found.error_code

    assert alter(1, 0) == ErrorCode.INVALID_REPLICATION_FACTOR, (
        "it is 3, whichever brokers are fenced"
    )
    assert alter(2, 0, 1) == NONE
    assert moves.asked_to_pin[-1] == {1: 2}, "it leads once it is in service"
    assert alter(1, 2, 0) == NONE
    response = wire.ask(LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest(), 0)
    (ongoing,) = response.topics[0].partitions
    assert sorted(ongoing.replicas) == [0, 1, 2]
    assert (ongoing.adding_replicas, ongoing.removing_replicas) == ([], [])
    assert alter(0, 1, 2) == NONE


def test_a_new_topic_may_name_fenced_replicas(broker, wire):
    def create(name, *replicas):
        assignments = [CreatableReplicaAssignment(0, list(replicas))]
        request = CreateTopicsRequest([CreatableTopic(name, -1, -1, assignments)], 60_000)
        return wire.ask(CREATE_TOPICS, request, 7).topics[0]

    assert create("placed", 0, 2, 1).error_code == NONE
    assert create("to-be-placed", 2, 0, 1).error_code == NONE
    refused = create("nowhere", 2)
    assert refused.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "[2] are fenced" in refused.error_message


def test_describe_cluster_lists_fenced_brokers_on_request(broker, wire):
    def listed(*, fenced):
        request = DescribeClusterRequest(include_fenced_brokers=fenced)
        response = wire.ask(DESCRIBE_CLUSTER, request, 2)
        return [(each.broker_id, each.is_fenced) for each in response.brokers]

    assert listed(fenced=False) == [(0, False), (1, False)]
    assert listed(fenced=True) == [(0, False), (1, False), (2, True)]
