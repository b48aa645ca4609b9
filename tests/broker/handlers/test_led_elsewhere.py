"""Responses about partitions with another leader: they name it and its address."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.view import NO_NODE
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.delete_records import DELETE_RECORDS
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_log_dirs import (
    DESCRIBE_LOG_DIRS,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_producers import DESCRIBE_PRODUCERS
from barnabas.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    DescribeTopicPartitionsRequest,
)
from barnabas.protocol.messages.describe_topic_partitions import TopicRequest as DescribedTopic
from barnabas.protocol.messages.fetch import FETCH, FetchPartition
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OFFSET_FOR_LEADER_EPOCH,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.protocol.messages.produce import PRODUCE
from barnabas.protocol.messages.write_txn_markers import (
    WRITE_TXN_MARKERS,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.broker.data_plane import Named, Wire, batch, fetch_request, produce_request
from tests.broker.several import EPOCH, LISTENER, BrokerWithView, ScriptedView, node, topic_id
from tests.requests import codes_of, delete_records_request, describe_producers_request

NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER
OTHER = node(2, (LISTENER, "other.example", 9092), ("INTERNAL", "inside", 1), rack="r2")
TOPIC = Named("t", topic_id(1))
HERE, ELSEWHERE = 0, 1
"""Partitions of the topic."""


@pytest.fixture(scope="module")
def broker():
    view = ScriptedView(1, [node(1, rack="r1"), OTHER], {2: 2})
    with BrokerWithView(view, {"t": 2, "__consumer_offsets": 3, "__transaction_state": 3}) as found:
        assert found.log("t", HERE) is not None
        assert found.log("t", ELSEWHERE) is None
        yield found


@pytest.fixture
def scripted(broker):
    """The view, put back as it was."""
    leaders, nodes = dict(broker.view.leaders), list(broker.view.nodes)
    yield broker.view
    broker.view.leaders = leaders
    broker.call(lambda: broker.view.in_service(*nodes))


def leaders(response):
    (topic,) = response.topics
    return [
        (ErrorCode(each.error_code), each.leader_id, each.leader_epoch, each.isr_nodes)
        for each in topic.partitions
    ]


class TestMetadata:
    @pytest.mark.parametrize("version", [7, 12, 13])
    def test_brokers_and_leaders(self, broker, wire, version):
        response = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), version)
        assert [(each.node_id, each.host, each.port, each.rack) for each in response.brokers] == [
            (1, *broker.address, "r1"),
            (2, "other.example", 9092, "r2"),
        ]
        assert response.controller_id == 1
        own = broker.log("t", HERE).leader_epoch
        assert leaders(response) == [(0, 1, own, [1]), (0, 2, EPOCH, [2])]

    @pytest.mark.parametrize(
        ("version", "code"),
        [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)],
    )
    def test_a_broker_without_this_listener(self, broker, wire, scripted, version, code):
        hidden = node(2, ("INTERNAL", "inside", 1))
        broker.call(lambda: scripted.in_service(node(1), hidden))
        response = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), version)
        assert [each.node_id for each in response.brokers] == [1]
        here, elsewhere = response.topics[0].partitions
        assert (here.error_code, here.leader_id) == (0, 1)
        assert (elsewhere.error_code, elsewhere.leader_id) == (code, NO_NODE)
        assert (elsewhere.replica_nodes, elsewhere.isr_nodes) == ([2], [2])

    def test_a_leader_that_is_not_in_service(self, broker, wire, scripted):
        broker.call(lambda: scripted.in_service(node(1)))
        response = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), 12)
        away = (ErrorCode.LEADER_NOT_AVAILABLE, NO_NODE, EPOCH, [])
        assert leaders(response)[ELSEWHERE] == away
        broker.call(lambda: scripted.in_service(node(1), OTHER))
        response = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), 12)
        assert leaders(response)[ELSEWHERE] == (0, 2, EPOCH, [2])

    def test_no_leader_at_all(self, broker, wire, scripted):
        broker.call(lambda: scripted.led_by(2, NO_NODE))
        response = wire.ask(METADATA, MetadataRequest([MetadataRequestTopic(name="t")]), 12)
        elsewhere = response.topics[0].partitions[ELSEWHERE]
        assert elsewhere.error_code == ErrorCode.LEADER_NOT_AVAILABLE
        assert elsewhere.leader_id == NO_NODE
        assert (len(elsewhere.replica_nodes), elsewhere.isr_nodes) == (1, [])

    def test_unknown_controller_is_replaced_by_this_broker(self, broker, wire, scripted):
        """The broker names itself without a known controller: each broker accepts changes."""

        def told():
            return [
                wire.ask(METADATA, MetadataRequest([]), 12).controller_id,
                wire.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(), 2).controller_id,
            ]

        for controller_id in (OTHER.node_id, 9, NO_NODE):
            scripted.controller_id = controller_id
            try:
                expected = controller_id if controller_id == OTHER.node_id else 1
                assert told() == [expected, expected]
            finally:
                del scripted.controller_id

    def test_describe_topic_partitions(self, broker, wire, scripted):
        request = DescribeTopicPartitionsRequest([DescribedTopic("t")], 10)
        own = broker.log("t", HERE).leader_epoch
        response = wire.ask(DESCRIBE_TOPIC_PARTITIONS, request, 0)
        assert leaders(response) == [(0, 1, own, [1]), (0, 2, EPOCH, [2])]
        broker.call(lambda: scripted.in_service(node(1), node(2, ("INTERNAL", "inside", 1))))
        response = wire.ask(DESCRIBE_TOPIC_PARTITIONS, request, 0)
        unreachable = (ErrorCode.LISTENER_NOT_FOUND, NO_NODE, EPOCH, [2])
        assert leaders(response)[ELSEWHERE] == unreachable

    def test_describe_cluster(self, broker, wire):
        response = wire.ask(DESCRIBE_CLUSTER, DescribeClusterRequest(), 2)
        assert response.controller_id == 1
        assert [(each.broker_id, each.host, each.rack) for each in response.brokers] == [
            (1, broker.address[0], "r1"),
            (2, "other.example", "r2"),
        ]


class TestProduce:
    @pytest.mark.parametrize("version", range(3, 14))
    def test_of_another_leader(self, wire, version):
        request = produce_request(version, TOPIC, (HERE, batch(b"a")), (ELSEWHERE, batch(b"b")))
        response = wire.ask(PRODUCE, request, version)
        here, elsewhere = response.responses[0].partition_responses
        assert here.error_code == 0
        assert (elsewhere.error_code, elsewhere.base_offset) == (NOT_LEADER, -1)
        named = elsewhere.current_leader
        endpoints = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
        if version < 10:
            assert (named, endpoints) == (None, [])
        else:
            assert (named.leader_id, named.leader_epoch) == (2, EPOCH)
            assert endpoints == [(2, "other.example", 9092)]
            assert response.node_endpoints[0].rack == "r2"

    def test_again_on_the_same_connection(self, wire):
        """A request like the last one takes a shorter way through the broker."""
        for _ in range(4):
            assert wire.produce(TOPIC, batch(b"a"), HERE, 12).error_code == 0
            assert wire.produce(TOPIC, batch(b"a"), ELSEWHERE, 12).error_code == NOT_LEADER

    def test_a_leader_that_cannot_be_reached(self, broker, wire, scripted):
        hidden = node(2, ("INTERNAL", "inside", 1))
        broker.call(lambda: scripted.in_service(node(1), hidden))
        response = wire.ask(PRODUCE, produce_request(12, TOPIC, (ELSEWHERE, batch())), 12)
        (result,) = response.responses[0].partition_responses
        assert result.current_leader.leader_id == 2
        assert response.node_endpoints == []

    def test_many_batches(self, wire):
        batches = [(number % 2, batch(b"%d" % number)) for number in range(450)]
        response = wire.ask(PRODUCE, produce_request(12, TOPIC, *batches), 12)
        results = response.responses[0].partition_responses
        assert [each.error_code for each in results] == [0, NOT_LEADER] * 225
        assert [each.node_id for each in response.node_endpoints] == [2]

    def test_without_an_answer(self, broker):
        with Wire(broker.address) as wire:
            request = produce_request(12, TOPIC, (ELSEWHERE, batch()), acks=0)
            wire.send(PRODUCE, request, 12, answered=False)
            assert wire.hung_up()


class TestFetch:
    @pytest.mark.parametrize("version", range(4, 19))
    def test_of_another_leader(self, wire, version):
        """Answered at once: there is something to tell."""
        asked = (TOPIC, (HERE, 0), (ELSEWHERE, 0))
        response = wire.fetch(asked, version=version, max_wait_ms=60_000, min_bytes=1 << 20)
        here, elsewhere = response.responses[0].partitions
        assert here.error_code == 0
        assert (elsewhere.error_code, elsewhere.high_watermark) == (NOT_LEADER, -1)
        endpoints = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
        if version < 16:
            assert (elsewhere.current_leader, endpoints) == (None, [])
        else:
            named = elsewhere.current_leader
            assert (named.leader_id, named.leader_epoch) == (2, EPOCH)
            assert endpoints == [(2, "other.example", 9092)]

    def test_each_leader_epoch_gets_not_leader(self, wire):
        for epoch in (-1, 0, EPOCH, EPOCH + 1):
            asked = FetchPartition(ELSEWHERE, current_leader_epoch=epoch)
            response = wire.fetch((TOPIC, asked), version=12)
            assert response.responses[0].partitions[0].error_code == NOT_LEADER

    def test_an_old_epoch_of_this_broker(self, broker, wire):
        """Kafka does the same: the response names the leader, here the broker itself."""
        asked = FetchPartition(HERE, current_leader_epoch=0)
        response = wire.fetch((TOPIC, asked), version=16)
        (partition,) = response.responses[0].partitions
        assert partition.error_code == ErrorCode.FENCED_LEADER_EPOCH
        own = broker.log("t", HERE).leader_epoch
        assert partition.current_leader.leader_id == 1
        assert partition.current_leader.leader_epoch == own
        (endpoint,) = response.node_endpoints
        assert (endpoint.node_id, endpoint.host, endpoint.port) == (1, *broker.address)

    def test_in_a_session(self, wire):
        request = fetch_request(16, (TOPIC, (HERE, 0), (ELSEWHERE, 0)), session=(0, 0))
        session_id = wire.ask(FETCH, request, 16).session_id
        request = fetch_request(16, session=(session_id, 1))
        response = wire.ask(FETCH, request, 16)
        told = [
            (each.partition_index, each.error_code)
            for topic in response.responses
            for each in topic.partitions
        ]
        assert (ELSEWHERE, NOT_LEADER) in told
        assert [each.node_id for each in response.node_endpoints] == [2]

    def test_very_many_partitions(self, wire):
        """Read and answered in slices."""
        unknown = [(each, 0) for each in range(2, 2100)]
        asked = (TOPIC, (HERE, 0), (ELSEWHERE, 0), *unknown)
        response = wire.fetch(asked, version=16)
        assert response.responses[0].partitions[1].error_code == NOT_LEADER
        assert [each.node_id for each in response.node_endpoints] == [2]


class TestOthers:
    def test_list_offsets(self, wire):
        assert wire.list_offset("t", -1, HERE)[0] == 0
        assert wire.list_offset("t", -1, ELSEWHERE) == (NOT_LEADER, -1, -1, -1)

    def test_offset_for_leader_epoch(self, wire):
        asked = [OffsetForLeaderPartition(each, -1, 1) for each in (HERE, ELSEWHERE)]
        request = OffsetForLeaderEpochRequest(-1, [OffsetForLeaderTopic("t", asked)])
        response = wire.ask(OFFSET_FOR_LEADER_EPOCH, request, 4)
        assert [each.error_code for each in response.topics[0].partitions] == [0, NOT_LEADER]

    def test_delete_records(self, wire):
        request = delete_records_request({("t", HERE): 0, ("t", ELSEWHERE): 0})
        response = wire.ask(DELETE_RECORDS, request, 2)
        found = [(each.error_code, each.low_watermark) for each in response.topics[0].partitions]
        assert found == [(0, 0), (NOT_LEADER, -1)]

    def test_describe_producers(self, wire):
        request = describe_producers_request(("t", HERE), ("t", ELSEWHERE))
        assert codes_of(wire.ask(DESCRIBE_PRODUCERS, request, 0)) == [0, NOT_LEADER]

    def test_write_txn_markers(self, wire):
        topics = [WritableTxnMarkerTopic("t", [ELSEWHERE])]
        marker = WritableTxnMarker(1, 0, transaction_result=False, topics=topics)
        response = wire.ask(WRITE_TXN_MARKERS, WriteTxnMarkersRequest([marker]), 1)
        assert response.markers[0].topics[0].partitions[0].error_code == NOT_LEADER

    def test_describe_log_dirs(self, wire):
        """Each broker speaks of its own disk."""
        response = wire.ask(DESCRIBE_LOG_DIRS, DescribeLogDirsRequest(None), 4)
        described = {each.name: each.partitions for each in response.results[0].topics}
        assert [each.partition_index for each in described["t"]] == [HERE]

    @pytest.mark.parametrize(("kind", "first_id"), [(0, 3), (1, 6)])
    def test_find_coordinator(self, broker, wire, scripted, kind, first_id):
        """The coordinator is the leader of the partition that Kafka's hash of the key selects."""
        key = "b"  # 98 by Java's hash.
        partition_id = first_id + 98 % 3
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        (found,) = wire.ask(FIND_COORDINATOR, request, 4).coordinators
        assert (found.error_code, found.node_id, found.port) == (0, 1, broker.address[1])
        broker.call(lambda: scripted.led_by(partition_id, 2))
        (found,) = wire.ask(FIND_COORDINATOR, request, 4).coordinators
        assert (found.node_id, found.host, found.port) == (2, "other.example", 9092)
        broker.call(lambda: scripted.led_by(partition_id, 3))
        (found,) = wire.ask(FIND_COORDINATOR, request, 4).coordinators
        assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
