"""Requests that many tests send, in few words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

Place = tuple[str, int]
"""A topic and the index of a partition."""


class Asks(Protocol):
    """A connection of any of the blocking clients of the tests."""

    def ask(self, api: Any, request: Any, version: int) -> Any: ...


def create_topics_request(
    *names: str, partitions: int = 1, configs: Mapping[str, str] | None = None, **more: Any
) -> CreateTopicsRequest:
    """Return a request for topics with one replica and the same settings."""
    settings = [CreatableTopicConfig(*each) for each in (configs or {}).items()]
    topics = [CreatableTopic(name, partitions, 1, [], settings) for name in names]
    return CreateTopicsRequest(topics, **{"timeout_ms": 60_000, **more})


def create_topic(
    client: Asks, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
) -> bytes:
    """Create a topic with one replica; return its ID."""
    request = create_topics_request(name, partitions=partitions, configs=configs)
    (topic,) = client.ask(CREATE_TOPICS, request, 7).topics
    assert topic.error_code == 0, topic
    return bytes(topic.topic_id)


def alter_configs_request(
    kind: int, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """Return a request that changes settings of one resource: key, operation and value of each."""
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*each) for each in changes])
    return IncrementalAlterConfigsRequest([resource], validate_only)


def alter_configs(
    client: Asks, kind: int, name: str, *changes: tuple[str, int, str | None]
) -> None:
    """Change settings of one resource."""
    request = alter_configs_request(kind, name, *changes)
    (result,) = client.ask(INCREMENTAL_ALTER_CONFIGS, request, 1).responses
    assert result.error_code == 0, result


def delete_records_request(offsets: Mapping[Place, int]) -> DeleteRecordsRequest:
    """Return a request that deletes the records of partitions below the given offsets."""
    topics = [
        DeleteRecordsTopic(
            name, [DeleteRecordsPartition(index, offsets[name, index]) for index in indexes]
        )
        for name, indexes in _by_topic(offsets).items()
    ]
    return DeleteRecordsRequest(topics, 60_000)


def describe_producers_request(*places: Place) -> DescribeProducersRequest:
    """Return a request for the producers of partitions."""
    return DescribeProducersRequest([TopicRequest(*each) for each in _by_topic(places).items()])


def produce_request(
    batches: Mapping[Place, bytes | bytearray | memoryview],
    *,
    acks: int = -1,
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Return a request that appends one batch to each of some partitions."""
    topics = [
        TopicProduceData(
            name,
            partition_data=[
                PartitionProduceData(index, memoryview(batches[name, index])) for index in indexes
            ],
        )
        for name, indexes in _by_topic(batches).items()
    ]
    return ProduceRequest(transactional_id, acks, 30_000, topics)


def produced(response: Any) -> PartitionProduceResponse:
    """Return the result for the one partition of a response to Produce."""
    ((result,),) = [topic.partition_responses for topic in response.responses]
    return result


def codes_of(response: Any) -> list[int]:
    """Return the error code of each partition of a response."""
    return [each.error_code for topic in response.topics for each in topic.partitions]


def commit_request(
    group: str,
    offsets: Mapping[Place, int],
    generation: int = -1,
    member_id: str = "",
    metadata: str | None = "",
) -> OffsetCommitRequest:
    """Return a request that commits a group's offsets."""
    topics = [
        OffsetCommitRequestTopic(
            name,
            partitions=[
                OffsetCommitRequestPartition(index, offsets[name, index], -1, metadata)
                for index in indexes
            ],
        )
        for name, indexes in _by_topic(offsets).items()
    ]
    return OffsetCommitRequest(group, generation, member_id, topics=topics)


def fetch_offsets_request(
    *groups: str, of: Iterable[Place] | None = None, stable: bool = False
) -> OffsetFetchRequest:
    """Return a request for the committed offsets of groups: of some partitions, or of all."""
    topics = None
    if of is not None:
        topics = [
            OffsetFetchRequestTopics(name, partition_indexes=indexes)
            for name, indexes in _by_topic(of).items()
        ]
    asked = [OffsetFetchRequestGroup(group, topics=topics) for group in groups]
    return OffsetFetchRequest(groups=asked, require_stable=stable)


def add_partitions_request(
    key: str, producer: tuple[int, int], *places: Place
) -> AddPartitionsToTxnRequest:
    """Return a request of transaction protocol v1 with the producer's ID and epoch."""
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=key,
        v3_and_below_producer_id=producer[0],
        v3_and_below_producer_epoch=producer[1],
        v3_and_below_topics=[AddPartitionsToTxnTopic(*each) for each in _by_topic(places).items()],
    )


def added_codes(response: Any) -> list[int]:
    """Return the error code of each partition of the response to ``add_partitions_request``."""
    return [
        each.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]


def commit_in_transaction_request(
    key: str, group: str, producer: tuple[int, int], offsets: Mapping[Place, int], **more: Any
) -> TxnOffsetCommitRequest:
    """Return a request that commits a group's offsets in the transaction of a producer."""
    topics = [
        TxnOffsetCommitRequestTopic(
            name,
            [TxnOffsetCommitRequestPartition(index, offsets[name, index]) for index in indexes],
        )
        for name, indexes in _by_topic(offsets).items()
    ]
    return TxnOffsetCommitRequest(key, group, *producer, topics=topics, **more)


def _by_topic(places: Iterable[Place]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = defaultdict(list)
    for name, index in places:
        topics[name].append(index)
    return topics
