"""Metadata, DescribeTopicPartitions and DescribeCluster, as measured on Apache Kafka 4.3.0.

tests/interop/test_like_kafka.py compares permitted operations and cursors with Apache Kafka's.
"""

import pytest

from barnabas.broker.config.broker_config import BrokerConfig
from barnabas.broker.handlers.metadata import AUTO_CREATE_MAX
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.describe_cluster import DESCRIBE_CLUSTER, DescribeClusterRequest
from barnabas.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from barnabas.protocol.wire import ZERO_UUID
from tests.broker.harness import CLUSTER_ID, NODE_ID, Administration

NONE = ErrorCode.NONE
UNKNOWN_ID = bytes([7] * 16)
VERSIONS = range(14)


def named(*names):
    return [MetadataRequestTopic(ZERO_UUID, name) for name in names]


async def metadata(administration, topics, version=12, *, create=False, **flags):
    request = MetadataRequest(topics, create, **flags)
    return await administration.ask(METADATA, request, version)


def codes(response):
    return {topic.name or topic.topic_id: ErrorCode(topic.error_code) for topic in response.topics}


class TestMetadata:
    @pytest.mark.parametrize("version", VERSIONS)
    async def test_every_version_describes(self, administration, version):
        topic = await administration.catalogue.create_topic("x.y", 2, {})
        response = await metadata(administration, named("x.y"), version)
        (broker,) = response.brokers
        assert (broker.node_id, broker.host, broker.port) == (NODE_ID, "dialled.example", 4711)
        assert broker.rack is None
        if version >= 1:
            assert response.controller_id == NODE_ID
        if version >= 2:
            assert response.cluster_id == CLUSTER_ID
        (found,) = response.topics
        assert (found.error_code, found.name, found.is_internal) == (NONE, "x.y", False)
        assert [each.partition_index for each in found.partitions] == [0, 1]
        for partition in found.partitions:
            assert (partition.error_code, partition.leader_id) == (NONE, NODE_ID)
            assert partition.replica_nodes == partition.isr_nodes == [NODE_ID]
            assert partition.offline_replicas == []
            epoch = administration.logs.leader_epoch
            assert partition.leader_epoch == (epoch if version >= 7 else -1)
        assert found.topic_id == (topic.topic_id if version >= 10 else ZERO_UUID)
        assert response.error_code == NONE

    @pytest.mark.parametrize("version", VERSIONS)
    async def test_all_topics_and_none(self, administration, version):
        await administration.catalogue.create_topic("a", 1, {})
        await administration.catalogue.create_topic("b", 1, {})
        everything = await metadata(administration, [] if version == 0 else None, version)
        assert codes(everything) == {"a": NONE, "b": NONE}
        if version > 0:
            assert (await metadata(administration, [], version)).topics == []

    @pytest.mark.parametrize("version", VERSIONS)
    async def test_missing_topics_are_created_for_the_asking(self, administration, version):
        response = await metadata(administration, named("new"), version, create=True)
        assert codes(response) == {"new": NONE}
        assert len(response.topics[0].partitions) == 1
        assert "new" in administration.catalogue.topics

    @pytest.mark.parametrize("version", range(4, 14))
    async def test_unless_the_client_forbids_it(self, administration, version):
        response = await metadata(administration, named("new"), version, create=False)
        assert codes(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert response.topics[0].partitions == []
        assert administration.catalogue.topics == {}

    async def test_or_the_broker_does(self):
        administration = Administration(config=BrokerConfig(auto_create_topics_enable=False))
        response = await metadata(administration, named("new"), create=True)
        assert codes(response) == {"new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        assert administration.catalogue.topics == {}
        administration.stop()

    async def test_created_with_the_brokers_number_of_partitions(self):
        administration = Administration(config=BrokerConfig(num_partitions=3))
        response = await metadata(administration, named("new"), create=True)
        assert len(response.topics[0].partitions) == 3
        administration.stop()

    @pytest.mark.parametrize("create", [True, False])
    async def test_illegal_names(self, administration, create):
        response = await metadata(administration, named("a b", "", "ok"), create=create)
        illegal = ErrorCode.INVALID_TOPIC_EXCEPTION
        found = {topic.name: topic.error_code for topic in response.topics}
        expected = NONE if create else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert found == {"a b": illegal, "": illegal, "ok": expected}

    async def test_a_name_that_collides_is_not_created(self, administration):
        await administration.catalogue.create_topic("x.y", 1, {})
        response = await metadata(administration, named("x_y", "x.y"), create=True)
        assert codes(response) == {"x_y": ErrorCode.INVALID_TOPIC_EXCEPTION, "x.y": NONE}

    async def test_internal_topics_are_marked_and_not_created(self, administration):
        response = await metadata(administration, named("__consumer_offsets"), create=True)
        (topic,) = response.topics
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert topic.is_internal
        assert administration.catalogue.topics == {}

    async def test_one_request_creates_only_so_many(self, administration):
        names = [f"t{number:04}" for number in range(AUTO_CREATE_MAX + 5)]
        first = await metadata(administration, named(*names), create=True)
        assert len(administration.catalogue.topics) == AUTO_CREATE_MAX
        left = [name for name, code in codes(first).items() if code != NONE]
        assert len(left) == 5
        second = await metadata(administration, named(*names), create=True)
        assert set(codes(second).values()) == {NONE}

    async def test_growth_and_a_new_topic_of_the_name_are_seen(self, administration):
        catalogue = administration.catalogue

        async def indexes():
            (topic,) = (await metadata(administration, named("a"))).topics
            return topic.topic_id, [each.partition_index for each in topic.partitions]

        first = await catalogue.create_topic("a", 2, {})
        assert await indexes() == (first.topic_id, [0, 1])
        await catalogue.create_partitions("a", 4)
        assert await indexes() == (first.topic_id, [0, 1, 2, 3])
        await catalogue.delete_topic(first.topic_id)
        second = await catalogue.create_topic("a", 1, {})
        assert await indexes() == (second.topic_id, [0])

    async def test_a_topic_asked_for_twice_is_described_once(self, administration):
        topic = await administration.catalogue.create_topic("a", 1, {})
        asked = [*named("a", "a"), MetadataRequestTopic(topic.topic_id, None)]
        assert len((await metadata(administration, asked)).topics) == 1

    @pytest.mark.parametrize("version", [12, 13])
    async def test_by_id(self, administration, version):
        topic = await administration.catalogue.create_topic("a", 1, {})
        asked = [
            MetadataRequestTopic(topic.topic_id, None),
            MetadataRequestTopic(UNKNOWN_ID, None),
        ]
        response = await metadata(administration, asked, version, create=True)
        assert codes(response) == {"a": NONE, UNKNOWN_ID: ErrorCode.UNKNOWN_TOPIC_ID}
        assert response.topics[1].name is None
        assert response.topics[0].topic_id == topic.topic_id

    @pytest.mark.parametrize(
        ("version", "topic"),
        [
            (10, MetadataRequestTopic(UNKNOWN_ID, "a")),
            (11, MetadataRequestTopic(UNKNOWN_ID, "a")),
            (12, MetadataRequestTopic(ZERO_UUID, None)),
        ],
    )
    async def test_topics_that_may_not_be_named_so(self, administration, version, topic):
        response = await metadata(administration, [topic], version)
        assert [each.error_code for each in response.topics] == [ErrorCode.INVALID_REQUEST]
        assert (response.brokers, response.controller_id) == ([], -1)

    async def test_the_rack(self):
        administration = Administration(config=BrokerConfig(broker_rack="r1"))
        response = await metadata(administration, [])
        assert response.brokers[0].rack == "r1"
        administration.stop()


async def describe(administration, names=(), limit=2000, cursor=None):
    request = DescribeTopicPartitionsRequest(
        [TopicRequest(name) for name in names], limit, cursor and Cursor(*cursor)
    )
    return await administration.ask(DESCRIBE_TOPIC_PARTITIONS, request, 0)


def pages(response):
    topics = [
        (topic.name, [each.partition_index for each in topic.partitions])
        for topic in response.topics
    ]
    cursor = response.next_cursor
    return topics, cursor and (cursor.topic_name, cursor.partition_index)


class TestDescribeTopicPartitions:
    @pytest.fixture
    async def administration(self, administration):
        for name in ("m1", "m2"):
            await administration.catalogue.create_topic(name, 3, {})
        return administration

    async def test_topics_come_in_order_once_with_empty_elr(self, administration):
        response = await describe(administration, ["m2", "m1", "m2"])
        assert pages(response) == ([("m1", [0, 1, 2]), ("m2", [0, 1, 2])], None)
        for topic in response.topics:
            assert topic.topic_id == administration.catalogue.topics[topic.name].topic_id
            assert topic.topic_authorized_operations == 3576
            for partition in topic.partitions:
                assert partition.eligible_leader_replicas == []
                assert partition.last_known_elr == []
                assert partition.leader_id == NODE_ID
                assert partition.leader_epoch == administration.logs.leader_epoch
                assert partition.replica_nodes == partition.isr_nodes == [NODE_ID]

    @pytest.mark.parametrize(
        ("limit", "cursor", "expected"),
        [
            (4, None, ([("m1", [0, 1, 2]), ("m2", [0])], ("m2", 1))),
            (4, ("m2", 1), ([("m2", [1, 2])], None)),
            (4, ("m2", 9), ([("m2", [])], None)),
            (3, None, ([("m1", [0, 1, 2])], ("m2", 0))),
            (6, None, ([("m1", [0, 1, 2]), ("m2", [0, 1, 2])], None)),
            (0, None, ([("m1", [0])], ("m1", 1))),
            (-1, None, ([("m1", [0])], ("m1", 1))),
        ],
    )
    @pytest.mark.parametrize("names", [["m2", "m1"], []])
    async def test_pages(self, administration, names, limit, cursor, expected):
        assert pages(await describe(administration, names, limit, cursor)) == expected

    async def test_cursor_of_a_deleted_topic_continues_after_it(self, administration):
        response = await describe(administration, [], 2, ("m15", 0))
        assert pages(response) == ([("m2", [0, 1])], ("m2", 2))

    async def test_a_bad_cursor_among_all_topics(self, administration):
        response = await describe(administration, [], 4, ("m1", -1))
        found = [(topic.name, topic.error_code) for topic in response.topics]
        assert found == [("m1", ErrorCode.INVALID_REQUEST)]

    async def test_missing_and_illegal_names(self, administration):
        response = await describe(administration, ["zz", "b d", "", "m1"])
        found = {topic.name: topic.error_code for topic in response.topics}
        illegal = ErrorCode.INVALID_TOPIC_EXCEPTION
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert found == {"zz": unknown, "b d": illegal, "": illegal, "m1": NONE}
        assert "zz" not in administration.catalogue.topics

    async def test_the_brokers_own_limit(self):
        config = BrokerConfig(max_request_partition_size_limit=2)
        administration = Administration(config=config)
        await administration.catalogue.create_topic("m1", 3, {})
        assert pages(await describe(administration)) == ([("m1", [0, 1])], ("m1", 2))
        administration.stop()


class TestDescribeCluster:
    @pytest.mark.parametrize("version", range(3))
    @pytest.mark.parametrize(("asked", "operations"), [(True, 8096), (False, -(2**31))])
    async def test_every_version(self, administration, version, asked, operations):
        request = DescribeClusterRequest(include_cluster_authorized_operations=asked)
        response = await administration.ask(DESCRIBE_CLUSTER, request, version)
        assert (response.error_code, response.error_message) == (NONE, None)
        assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, NODE_ID)
        assert response.cluster_authorized_operations == operations
        (broker,) = response.brokers
        assert (broker.broker_id, broker.host, broker.port) == (NODE_ID, "dialled.example", 4711)
        assert (broker.rack, broker.is_fenced) == (None, False)

    @pytest.mark.parametrize(
        ("endpoint_type", "code"),
        [
            (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
            (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        ],
    )
    async def test_other_endpoints(self, administration, endpoint_type, code):
        request = DescribeClusterRequest(endpoint_type=endpoint_type)
        response = await administration.ask(DESCRIBE_CLUSTER, request, 1)
        assert response.error_code == code
        assert (response.brokers, response.endpoint_type) == ([], 1)
        assert response.error_message
