"""Metadata 0-13 and DescribeTopicPartitions 0: which topics there are and who leads them.

Version notes, Metadata: v0 takes an empty list of topics for "all", v1 and later null; v4 can
forbid auto-creation, before it is always allowed; topic ids are answered from v10 and may be asked
for from v12; v8-v10 also report operations on the cluster (DescribeCluster has them since).
Better than Kafka on purpose: a topic that this request creates is in that
same answer, so the client need not ask again.
Knowingly absent: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from barnabas.broker.api.dispatch import Parked, RequestContext, serves
from barnabas.broker.handlers.cluster import operations_on_cluster
from barnabas.broker.runtime.host import Host
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.operations import EVERY_BIT, NOT_ASKED, ResourceType
from barnabas.broker.topics.catalogue import Catalogue
from barnabas.broker.topics.topic import Topic
from barnabas.broker.topics.topic_names import INTERNAL, name_problem
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_topic_partitions import (
    DESCRIBE_TOPIC_PARTITIONS,
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from barnabas.protocol.messages.metadata import (
    METADATA,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.protocol.wire import ZERO_UUID
from barnabas.storage.metastore.interface import Identity

TOPICS_AT_ONCE = 1000
"""More are described in slices."""
TOPICS_PER_SLICE = 250
AUTO_CREATE_MAX = 100
"""Topics one Metadata request may create; the client's next one goes on from there."""


def refuse_metadata(
    request: MetadataRequest, code: ErrorCode, message: str | None
) -> MetadataResponse:
    """Report one error for every topic asked for; v13 also has a place of its own for it."""
    del message
    topics = [
        MetadataResponseTopic(error_code=code, name=asked.name or "", topic_id=asked.topic_id)
        for asked in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


@serves(METADATA, versions=(0, 13), refuse=refuse_metadata, sliced=True)
def metadata(
    catalogue: Catalogue,
    identity: Identity,
    host: Host,
    context: RequestContext,
    request: MetadataRequest,
) -> MetadataResponse | Parked[MetadataResponse]:
    """Describe the cluster and the topics asked for, creating missing ones if that is wanted."""
    asked = request.topics
    answer: Parked[MetadataResponse] = Parked()
    if asked is None or (not asked and context.api_version == 0):
        every = list(catalogue.topics.values())
        if len(every) > TOPICS_AT_ONCE:
            host.spawn(
                _answer_all(catalogue, identity, context, request, every, answer), "metadata"
            )
            return answer
        found = [_topic_found(identity, request, topic) for topic in every]
        return _metadata_response(catalogue, identity, context, request, found)
    _check_topics_asked(asked, context.api_version)
    to_create = _topics_to_create(catalogue, request, asked)
    if to_create or len(asked) > TOPICS_AT_ONCE:
        host.spawn(
            _create_then_answer(catalogue, identity, context, request, to_create, answer),
            "metadata",
        )
        return answer
    described = _Described(catalogue, identity, request)
    described.add(asked)
    return _metadata_response(catalogue, identity, context, request, described.topics)


def _check_topics_asked(asked: list[MetadataRequestTopic], version: int) -> None:
    """Raise KafkaError for a topic without a name where that is not allowed."""
    by_id_allowed = version >= 12
    for topic in asked:
        has_id = topic.topic_id != ZERO_UUID
        if (has_id and not by_id_allowed) or (topic.name is None and not has_id):
            raise KafkaError(ErrorCode.INVALID_REQUEST)


async def _create_then_answer(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: MetadataRequest,
    names: Iterable[str],
    answer: Parked[MetadataResponse],
) -> None:
    """Create topics with the broker's defaults, then answer, telling what went wrong with which."""
    failed: dict[str, ErrorCode] = {}
    for name in names:
        try:
            await catalogue.create_topic(name, catalogue.configs.broker_config.num_partitions, {})
        except KafkaError as error:
            failed[name] = error.code
    asked = request.topics or []
    described = _Described(catalogue, identity, request, failed)
    for start in range(0, len(asked), TOPICS_PER_SLICE):
        described.add(asked[start : start + TOPICS_PER_SLICE])
        await next_turn()
    answer.complete(_metadata_response(catalogue, identity, context, request, described.topics))


async def _answer_all(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: MetadataRequest,
    every: list[Topic],
    answer: Parked[MetadataResponse],
) -> None:
    """Describe the topics there were when they were asked for."""
    topics: list[MetadataResponseTopic] = []
    for start in range(0, len(every), TOPICS_PER_SLICE):
        some = every[start : start + TOPICS_PER_SLICE]
        topics += [_topic_found(identity, request, topic) for topic in some]
        await next_turn()
    answer.complete(_metadata_response(catalogue, identity, context, request, topics))


def _topics_to_create(
    catalogue: Catalogue, request: MetadataRequest, asked: list[MetadataRequestTopic]
) -> list[str]:
    """Return the names that are missing and may be created for the asking."""
    missing = {
        topic.name
        for topic in asked
        if topic.name is not None
        and topic.topic_id == ZERO_UUID
        and topic.name not in catalogue.topics
    }
    if not missing or not request.allow_auto_topic_creation:
        return []
    if not catalogue.configs.broker_config.auto_create_topics_enable:
        return []
    # Internal topics are made by the coordinator that needs them, with partitions of its choice.
    wanted = (name for name in missing if name not in INTERNAL and name_problem(name) is None)
    return sorted(wanted)[:AUTO_CREATE_MAX]


class _Described:
    """Topics that are described as they were asked for, each once.

    One that is named with an id is looked up by the id alone.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        identity: Identity,
        request: MetadataRequest,
        failed: Mapping[str, ErrorCode] = MappingProxyType({}),
    ) -> None:
        self._catalogue = catalogue
        self._identity = identity
        self._request = request
        self._failed = failed
        self._topics: dict[str | bytes, MetadataResponseTopic] = {}

    @property
    def topics(self) -> list[MetadataResponseTopic]:
        return list(self._topics.values())

    def add(self, asked: Iterable[MetadataRequestTopic]) -> None:
        catalogue, request, topics = self._catalogue, self._request, self._topics
        for each in asked:
            name, by_id = each.name or "", each.topic_id != ZERO_UUID
            topic = catalogue.topic_by_id(each.topic_id) if by_id else catalogue.topic(name)
            if topic is not None:
                if topic.name not in topics:
                    topics[topic.name] = _topic_found(self._identity, request, topic)
            elif by_id:
                topics[each.topic_id] = MetadataResponseTopic(
                    error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=each.topic_id
                )
            else:
                topics[name] = MetadataResponseTopic(
                    error_code=self._failed.get(name, missing_topic_error(name)),
                    name=name,
                    is_internal=name in INTERNAL,
                    topic_authorized_operations=_operations_on_topic(request),
                )


def missing_topic_error(name: str) -> ErrorCode:
    """Return what to say of a topic that is not there: illegal, or just unknown."""
    if name_problem(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _operations_on_topic(request: MetadataRequest) -> int:
    return (
        EVERY_BIT[ResourceType.TOPIC] if request.include_topic_authorized_operations else NOT_ASKED
    )


def _topic_found(
    identity: Identity, request: MetadataRequest, topic: Topic
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=_partitions_described(topic, identity.node_id),
        topic_authorized_operations=_operations_on_topic(request),
    )


def _partitions_described(topic: Topic, node_id: int) -> list[MetadataResponsePartition]:
    """Return what Metadata says of a topic's partitions, made once: only growth ever changes it.

    The leader is this broker, and its epoch stays until the next start.
    """
    node = [node_id]
    for partition in topic.partitions[len(topic.described) :]:
        topic.described.append(
            MetadataResponsePartition(
                error_code=ErrorCode.NONE,
                partition_index=partition.index,
                leader_id=node_id,
                leader_epoch=partition.log.leader_epoch,
                replica_nodes=node,
                isr_nodes=node,
            )
        )
    return list(topic.described)  # The answer may be encoded while this grows.


def _metadata_response(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: MetadataRequest,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    host, port = context.endpoint
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(
                node_id=identity.node_id,
                host=host,
                port=port,
                rack=catalogue.configs.broker_config.broker_rack,
            )
        ],
        cluster_id=identity.cluster_id,
        controller_id=identity.node_id,
        topics=topics,
        cluster_authorized_operations=operations_on_cluster(
            context, asked=request.include_cluster_authorized_operations
        ),
    )


# ------------------------------------------------------------------------ DescribeTopicPartitions


def refuse_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str | None
) -> DescribeTopicPartitionsResponse:
    """Report one error for every topic asked for, or for the cursor's where that is all of them."""
    del message
    names = [topic.name for topic in request.topics]
    if not names and request.cursor is not None:
        names = [request.cursor.topic_name]
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=name) for name in names]
    )


@serves(DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0), refuse=refuse_describe_topic_partitions)
def describe_topic_partitions(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, a bounded number of partitions at a time.

    Never creates a topic. ``next_cursor`` says where the next request goes on.
    """
    names = _names_from_cursor(catalogue, request)
    limit = catalogue.configs.broker_config.max_request_partition_size_limit
    remaining = max(1, min(limit, request.response_partition_limit))
    cursor = request.cursor
    response = DescribeTopicPartitionsResponse()
    for name in names:
        if remaining == 0:
            response.next_cursor = Cursor(name, 0)
            break
        topic = catalogue.topic(name)
        if topic is None:
            response.topics.append(_missing_topic(name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        described = _described_topic(identity, topic, first, remaining)
        response.topics.append(described)
        remaining -= len(described.partitions)
        following = first + len(described.partitions)
        if following < len(topic.partitions):
            response.next_cursor = Cursor(name, following)
            break
    return response


def _names_from_cursor(catalogue: Catalogue, request: DescribeTopicPartitionsRequest) -> list[str]:
    """Return the names to describe, sorted, those before the cursor left out."""
    cursor = request.cursor
    names = sorted({topic.name for topic in request.topics} or catalogue.topics)
    if cursor is None:
        return names
    names = [name for name in names if name >= cursor.topic_name]
    # Among all topics, the cursor's may have been deleted meanwhile; among named ones it must be.
    if cursor.partition_index < 0 or (request.topics and names[:1] != [cursor.topic_name]):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return names


def _missing_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing_topic_error(name),
        name=name,
        is_internal=name in INTERNAL,
        topic_authorized_operations=EVERY_BIT[ResourceType.TOPIC],
    )


def _described_topic(
    identity: Identity, topic: Topic, first: int, limit: int
) -> DescribeTopicPartitionsResponseTopic:
    node = [identity.node_id]
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=ErrorCode.NONE,
                partition_index=partition.index,
                leader_id=identity.node_id,
                leader_epoch=partition.log.leader_epoch,
                replica_nodes=node,
                isr_nodes=node,
                # Empty, never null: Java clients fail on the null that the schema allows.
                eligible_leader_replicas=[],
                last_known_elr=[],
            )
            for partition in topic.partitions[first : first + limit]
        ],
        topic_authorized_operations=EVERY_BIT[ResourceType.TOPIC],
    )
