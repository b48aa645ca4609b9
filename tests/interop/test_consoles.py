"""The requests of AKHQ, kafbat's kafka-ui and Redpanda Console, page by page, without the consoles.

Each page is the requests that a console makes for it, and the fields that it needs from the
responses. They go out in the newest versions that the broker advertises, and in those of libraries
of Kafka 3.9's age.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.broker.testing.embedded import KAFKA_3_9
from barnabas.protocol.messages import api_for_key
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.protocol.messages.api_versions import API_VERSIONS, ApiVersionsRequest
from barnabas.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.describe_topic_partitions import TopicRequest as PartitionsOfTopic
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
)
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.records import Record, encode_batch
from tests.counterparts.wire_client import WireClient
from tests.interop.comparison import now_ms

pytestmark = pytest.mark.timeout(600)

TOPIC, BROKER = 2, 4
EARLIEST, LATEST = -2, -1
SECURITY_DISABLED = 54
TIMEOUT_MS = 60_000
RECORDS = 10
KAFKAS_BROKER_KEYS = 340
NOT_YET = {14, 15, 16}


class Console:
    """A console's connection: it speaks the newest version that both sides know."""

    def __init__(self, client: WireClient, newest: dict[str, int], name: str) -> None:
        self._client = client
        self._newest = newest
        self.topic = f"{name}-topic"
        self.topic_id = bytes(16)
        self.group = f"{name}-group"
        self.partitions = 2
        answer = client.ask(API_VERSIONS, ApiVersionsRequest(name, "1.0"), 3)
        assert answer.error_code == 0
        self.versions = {each.api_key: each for each in answer.api_keys}
        self.features = {each.name: each.max_version_level for each in answer.finalized_features}

    def ask(self, request: Any) -> Any:
        name = type(request).__name__.removesuffix("Request")
        key = next(key for key in self.versions if api_for_key(key).name == name)
        version = min(self.versions[key].max_version, self._newest.get(name, 99))
        return self._client.ask(api_for_key(key), request, version)

    @property
    def indexes(self) -> list[int]:
        return list(range(self.partitions))


def create_topic(console: Console) -> None:
    request = CreateTopicsRequest([CreatableTopic(console.topic, 2, -1)], TIMEOUT_MS)
    (created,) = console.ask(request).topics
    assert created.error_code == 0
    console.topic_id = created.topic_id
    records = [Record(offset, now_ms(), b"k", b"v") for offset in range(RECORDS)]
    data = PartitionProduceData(0, memoryview(encode_batch(records)))
    topic = TopicProduceData(console.topic, console.topic_id, [data])
    deadline = time.monotonic() + 60
    code = -1
    while code and time.monotonic() < deadline:  # Kafka answers a creation before it is led.
        response = console.ask(ProduceRequest(None, -1, TIMEOUT_MS, [topic]))
        code = response.responses[0].partition_responses[0].error_code
    assert code == 0


def brokers_page(console: Console) -> None:
    cluster = console.ask(DescribeClusterRequest(include_cluster_authorized_operations=True))
    (node,) = cluster.brokers
    assert cluster.controller_id == node.broker_id
    assert cluster.cluster_id
    assert cluster.cluster_authorized_operations > 0
    resource = DescribeConfigsResource(BROKER, str(node.broker_id), None)
    request = DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)
    (result,) = console.ask(request).results
    assert result.error_code == 0
    values = {each.name: each.value for each in result.configs}
    assert values["delete.topic.enable"] == "true"
    assert len(values) >= KAFKAS_BROKER_KEYS
    response = console.ask(DescribeLogDirsRequest(None))
    (directory,) = response.results
    assert (response.error_code, directory.error_code) == (0, 0)
    assert console.topic in {topic.name for topic in directory.topics}


def topics_page(console: Console) -> None:
    metadata = console.ask(MetadataRequest(None, allow_auto_topic_creation=False))
    names = [topic.name for topic in metadata.topics]
    assert console.topic in names
    assert all(topic.error_code == 0 for topic in metadata.topics)
    resources = [DescribeConfigsResource(TOPIC, name, ["cleanup.policy"]) for name in names]
    results = console.ask(DescribeConfigsRequest(resources)).results
    assert [result.resource_name for result in results] == names
    assert all(len(result.configs) == 1 for result in results)
    asked = [DescribableLogDirTopic(console.topic, console.indexes)]
    (directory,) = console.ask(DescribeLogDirsRequest(asked)).results
    (topic,) = directory.topics
    sizes = {each.partition_index: each.partition_size for each in topic.partitions}
    assert sizes[0] > 0 == sizes[1]


def topic_page(console: Console) -> None:
    described = console.ask(DescribeTopicPartitionsRequest([PartitionsOfTopic(console.topic)]))
    (topic,) = described.topics
    assert [partition.leader_id for partition in topic.partitions] == [1] * console.partitions
    assert [partition.isr_nodes for partition in topic.partitions] == [[1]] * console.partitions
    for timestamp, offset in ((EARLIEST, 0), (LATEST, RECORDS)):
        asked = [ListOffsetsPartition(0, -1, timestamp)]
        request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(console.topic, asked)])
        (partition,) = console.ask(request).topics[0].partitions
        assert (partition.error_code, partition.offset) == (0, offset)
    resource = DescribeConfigsResource(TOPIC, console.topic, None)
    request = DescribeConfigsRequest([resource], include_synonyms=True, include_documentation=True)
    (result,) = console.ask(request).results
    assert {"retention.ms", "cleanup.policy"} <= {each.name for each in result.configs}


def producers_page(console: Console) -> None:
    request = DescribeProducersRequest([TopicRequest(console.topic, console.indexes)])
    (topic,) = console.ask(request).topics
    assert [each.error_code for each in topic.partitions] == [0] * console.partitions


def topic_settings_page(console: Console) -> None:
    change = AlterableConfig("retention.ms", 0, "3600000")
    resource = AlterConfigsResource(TOPIC, console.topic, [change])
    (response,) = console.ask(IncrementalAlterConfigsRequest([resource])).responses
    assert response.error_code == 0
    grown = CreatePartitionsRequest([CreatePartitionsTopic(console.topic, 3, None)], TIMEOUT_MS)
    (result,) = console.ask(grown).results
    assert result.error_code == 0
    console.partitions = 3


def records_page(console: Console) -> None:
    topic = DeleteRecordsTopic(console.topic, [DeleteRecordsPartition(0, 4)])
    response = console.ask(DeleteRecordsRequest([topic], TIMEOUT_MS))
    (partition,) = response.topics[0].partitions
    assert (partition.error_code, partition.low_watermark) == (0, 4)


def find_coordinator(console: Console) -> None:
    """Send FindCoordinator until one exists: the first creates the groups' topic."""
    deadline = time.monotonic() + 60
    codes = NOT_YET
    while codes & NOT_YET and time.monotonic() < deadline:
        answer = console.ask(FindCoordinatorRequest(coordinator_keys=[console.group]))
        codes = {each.error_code for each in answer.coordinators}
        probe = console.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(console.group)]))
        codes |= {each.error_code for each in probe.groups} & NOT_YET
        time.sleep(0.05)
    assert codes == {0}


def groups_page(console: Console) -> None:
    find_coordinator(console)
    offset = OffsetCommitRequestPartition(0, 7, committed_metadata="by hand")
    topic = OffsetCommitRequestTopic(console.topic, console.topic_id, [offset])
    response = console.ask(OffsetCommitRequest(console.group, topics=[topic]))
    assert response.topics[0].partitions[0].error_code == 0
    listed = console.ask(ListGroupsRequest())
    assert listed.error_code == 0
    assert console.group in {each.group_id for each in listed.groups}
    (group,) = console.ask(DescribeGroupsRequest([console.group])).groups
    assert (group.error_code, group.group_state, group.members) == (0, "Empty", [])
    assert committed(console) == {(0, 7)}
    asked = OffsetDeleteRequestTopic(console.topic, [OffsetDeleteRequestPartition(0)])
    deleted = console.ask(OffsetDeleteRequest(console.group, [asked]))
    assert (deleted.error_code, deleted.topics[0].partitions[0].error_code) == (0, 0)
    assert committed(console) == set()
    response = console.ask(OffsetCommitRequest(console.group, topics=[topic]))
    assert response.topics[0].partitions[0].error_code == 0
    (result,) = console.ask(DeleteGroupsRequest([console.group])).results
    assert result.error_code == 0
    assert console.group not in {each.group_id for each in console.ask(ListGroupsRequest()).groups}


def committed(console: Console) -> set[tuple[int, int]]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(console.group, topics=None)])
    (group,) = console.ask(request).groups
    assert group.error_code == 0
    return {
        (partition.partition_index, partition.committed_offset)
        for topic in group.topics
        for partition in topic.partitions
    }


def reassignments_page(console: Console) -> None:
    assert console.ask(ListPartitionReassignmentsRequest(topics=None)).topics == []
    throttled = AlterableConfig("leader.replication.throttled.replicas", 0, "0:1")
    resource = AlterConfigsResource(TOPIC, console.topic, [throttled])
    (response,) = console.ask(IncrementalAlterConfigsRequest([resource])).responses
    assert response.error_code == 0
    topic = ReassignableTopic(console.topic, [ReassignablePartition(0, [1])])
    moved = console.ask(AlterPartitionReassignmentsRequest(topics=[topic]))
    assert (moved.error_code, moved.responses[0].partitions[0].error_code) == (0, 0)


def security_pages(console: Console) -> None:
    rules = console.ask(DescribeAclsRequest(1, None, 1, None, None, 1, 1))
    assert (rules.error_code, rules.resources) == (SECURITY_DISABLED, [])
    quotas = console.ask(DescribeClientQuotasRequest([], strict=False))
    assert (quotas.error_code, quotas.entries) == (0, [])
    users = console.ask(DescribeUserScramCredentialsRequest(None))
    assert (users.error_code, users.results) == (0, [])


def delete_topic(console: Console) -> None:
    state = DeleteTopicState(console.topic, bytes(16))
    request = DeleteTopicsRequest([state], [console.topic], TIMEOUT_MS)
    (response,) = console.ask(request).responses
    assert response.error_code == 0


Page = Callable[[Console], None]
PAGES: dict[str, tuple[Page, ...]] = {
    "akhq": (brokers_page, topics_page, topic_page, groups_page, security_pages),
    "kafbat": (
        brokers_page,
        topics_page,
        topic_page,
        producers_page,
        topic_settings_page,
        records_page,
        groups_page,
        security_pages,
    ),
    "redpanda": (
        brokers_page,
        topics_page,
        topic_page,
        topic_settings_page,
        records_page,
        groups_page,
        reassignments_page,
        security_pages,
    ),
}

# Redpanda Console shows a page only if ApiVersions has what it needs.
NEEDED_BY_REDPANDA = {8, 15, 16, 21, 32, 42, 44, 45, 46, 47, 48, 50, 51}


@pytest.mark.parametrize("age", ["newest", "older"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_what_it_needs(broker, name, age):
    with WireClient(broker) as client:
        console = Console(client, KAFKA_3_9 if age == "older" else {}, f"{name}-{age}")
        create_topic(console)
        for page in PAGES[name]:
            page(console)
        delete_topic(console)


def test_features_are_switched_on_by_what_is_advertised(broker):
    with WireClient(broker) as client:
        console = Console(client, {}, "features")
    assert console.versions.keys() >= NEEDED_BY_REDPANDA
    # kafbat's kafka-ui takes the cluster's version from this level.
    assert console.features["metadata.version"] == 30
