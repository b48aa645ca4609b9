"""Metadata 0-13 and DescribeTopicPartitions 0: topics and the leaders of their partitions.

Version notes, Metadata: v0 takes an empty list of topics for "all", v1 and later null. v4 can
forbid auto-creation, before it is always allowed. Topic ids are returned from v10 and accepted from
v12. v8-v10 also report operations on the cluster (DescribeCluster has them since).
Better than Kafka on purpose: a topic that this request creates is in the same response, so the
client need not repeat it. In a cluster the request waits once for a requested topic or leader that
is unknown.
For a topic that a client may not describe the response has the same error, whether it exists or
not; among all topics it is omitted. Ids are no secret, as in Kafka: an unknown one and a denied one
have different errors.
Knowingly absent: nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from barnabas.broker.api.checks import DESCRIBE, TOPIC, TOPIC_DENIED, may_create
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.driver import Run
from barnabas.broker.api.waits import Turn
from barnabas.broker.cluster.metadata_refresh import Misses
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.handlers.cluster import operations_on_cluster
from barnabas.broker.handlers.leaders import Leaders
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.changes import REPEATED_MS
from barnabas.broker.metadata.topic import Topic
from barnabas.broker.metadata.topic_names import INTERNAL, name_problem
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import NOT_ASKED
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
    MetadataResponseTopic,
)
from barnabas.protocol.wire import ZERO_UUID

TOPICS_AT_ONCE = 1000
"""Maximum number of topics described at once; more are described in slices."""
TOPICS_PER_SLICE = 250
_UNKNOWN = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
AUTO_CREATE_MAX = 100
"""Topics one Metadata request may create; the client's next one continues from there."""


def refuse_metadata(
    request: MetadataRequest, code: ErrorCode, message: str | None
) -> MetadataResponse:
    """Return one error for every requested topic, and in v13 also at the top."""
    del message
    topics = [
        MetadataResponseTopic(error_code=code, name=wanted.name or "", topic_id=wanted.topic_id)
        for wanted in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=code)


@serves(METADATA, versions=(0, 13), refuse=refuse_metadata, in_slices=True)
def metadata(
    catalogue: Catalogue,
    brokers: Brokers,
    context: RequestContext,
    request: MetadataRequest,
) -> MetadataResponse | Run[MetadataResponse]:
    """Describe the cluster and the requested topics; create missing ones if requested."""
    wanted = request.topics
    leaders = Leaders(brokers, context)
    if wanted is None or (not wanted and context.api_version == 0):
        every = list(catalogue.topics.values())
        if len(every) > (TOPICS_AT_ONCE if context.access.is_open else TOPICS_PER_SLICE):
            return Run(_describe_all(catalogue, leaders, context, request, every))
        found = _found_of(leaders, context.access, request, every)
        return _metadata_response(catalogue, leaders, context, request, found)
    _check_topics_asked(wanted, context.api_version)
    to_create = _topics_to_create(catalogue, request, wanted)
    if len(wanted) > TOPICS_AT_ONCE or any(
        context.access.may_see(TOPIC, name) for name in to_create
    ):
        return Run(_create_then_describe(catalogue, brokers, context, request, to_create))
    described = _Described(catalogue, leaders, context.access, request)
    described.add(wanted)
    if brokers.misses is not None and _lack_something(described.topics):
        return Run(_refresh_then_describe(catalogue, brokers, brokers.misses, context, request, {}))
    return _metadata_response(catalogue, leaders, context, request, described.topics)


def _lack_something(topics: Iterable[MetadataResponseTopic]) -> bool:
    """Whether a topic or a leader is unknown to this broker."""
    return any(
        topic.error_code in _UNKNOWN
        or any(each.error_code == ErrorCode.LEADER_NOT_AVAILABLE for each in topic.partitions)
        for topic in topics
    )


def _check_topics_asked(wanted: list[MetadataRequestTopic], version: int) -> None:
    """Raise KafkaError for a topic without a name where that is not allowed."""
    by_id_allowed = version >= 12
    for topic in wanted:
        has_id = topic.topic_id != ZERO_UUID
        if (has_id and not by_id_allowed) or (topic.name is None and not has_id):
            raise KafkaError(ErrorCode.INVALID_REQUEST)


async def _create_then_describe(
    catalogue: Catalogue,
    brokers: Brokers,
    context: RequestContext,
    request: MetadataRequest,
    names: Iterable[str],
) -> MetadataResponse:
    """Create topics with the broker's defaults, then describe them, with the error of each."""
    failed: dict[str, ErrorCode] = {}
    access, room = context.access, AUTO_CREATE_MAX
    until_s = catalogue.changes.time_in(REPEATED_MS)
    for number, name in enumerate(names, 1):
        if number % TOPICS_PER_SLICE == 0:
            await next_turn()
        if not (room and access.may_see(TOPIC, name) and may_create(access, name)):
            continue
        room -= 1
        try:
            count = catalogue.configs.broker_config.num_partitions
            await catalogue.ensure_topic(name, count, {}, until_s)
        except KafkaError as error:
            # For a topic that does not exist yet Kafka returns unknown: clients repeat the request.
            if error.code != ErrorCode.REQUEST_TIMED_OUT:
                failed[name] = error.code
    leaders = Leaders(brokers, context)
    topics = await _described_in_slices(catalogue, leaders, context, request, failed)
    if brokers.misses is not None and _lack_something(topics):
        misses = brokers.misses
        return await _refresh_then_describe(catalogue, brokers, misses, context, request, failed)
    return _metadata_response(catalogue, leaders, context, request, topics)


async def _refresh_then_describe(
    catalogue: Catalogue,
    brokers: Brokers,
    misses: Misses,
    context: RequestContext,
    request: MetadataRequest,
    failed: Mapping[str, ErrorCode],
) -> MetadataResponse:
    """Poll the cluster, then describe the topics."""
    await misses.wait_for_poll()
    leaders = Leaders(brokers, context)
    topics = await _described_in_slices(catalogue, leaders, context, request, failed)
    return _metadata_response(catalogue, leaders, context, request, topics)


async def _described_in_slices(
    catalogue: Catalogue,
    leaders: Leaders,
    context: RequestContext,
    request: MetadataRequest,
    failed: Mapping[str, ErrorCode],
) -> list[MetadataResponseTopic]:
    """Describe the requested topics; ``failed`` has the errors of those to create."""
    wanted = request.topics or []
    described = _Described(catalogue, leaders, context.access, request, failed)
    for start in range(0, len(wanted), TOPICS_PER_SLICE):
        described.add(wanted[start : start + TOPICS_PER_SLICE])
        await Turn()
    return described.topics


async def _describe_all(
    catalogue: Catalogue,
    leaders: Leaders,
    context: RequestContext,
    request: MetadataRequest,
    every: list[Topic],
) -> MetadataResponse:
    """Describe all topics of the moment of the request."""
    topics: list[MetadataResponseTopic] = []
    for start in range(0, len(every), TOPICS_PER_SLICE):
        some = every[start : start + TOPICS_PER_SLICE]
        topics += _found_of(leaders, context.access, request, some)
        await Turn()
    return _metadata_response(catalogue, leaders, context, request, topics)


def _topics_to_create(
    catalogue: Catalogue, request: MetadataRequest, wanted: list[MetadataRequestTopic]
) -> list[str]:
    """Return the missing names that this request would create."""
    if not _creates(catalogue, request):
        return []
    missing = {
        topic.name
        for topic in wanted
        if topic.name is not None
        and topic.topic_id == ZERO_UUID
        and topic.name not in catalogue.topics
    }
    # Internal topics are made by the coordinator that needs them, with partitions of its choice.
    return sorted(name for name in missing if name not in INTERNAL and name_problem(name) is None)


def _creates(catalogue: Catalogue, request: MetadataRequest) -> bool:
    """Return whether both the request and the configuration allow the creation of topics."""
    enabled = catalogue.configs.broker_config.auto_create_topics_enable
    return request.allow_auto_topic_creation and enabled


class _Described:
    """Topics described in the order of the request, each once.

    A topic that is named with an id is looked up by the id alone.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        leaders: Leaders,
        access: Access,
        request: MetadataRequest,
        failed: Mapping[str, ErrorCode] = MappingProxyType({}),
    ) -> None:
        self._catalogue = catalogue
        self._leaders = leaders
        self._access = access
        self._request = request
        self._failed = failed
        self._topics: dict[str | bytes, MetadataResponseTopic] = {}

    @property
    def topics(self) -> list[MetadataResponseTopic]:
        return list(self._topics.values())

    def add(self, wanted: Iterable[MetadataRequestTopic]) -> None:
        for each in wanted:
            if each.topic_id != ZERO_UUID:
                self._add_by_id(each.topic_id)
            else:
                self._add_by_name(each.name or "")

    def _add_by_id(self, topic_id: bytes) -> None:
        topic = self._catalogue.topic_by_id(topic_id)
        if topic is not None and self._access.may(DESCRIBE, TOPIC, topic.name):
            self._add_found(topic)
            return
        code = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else TOPIC_DENIED
        self._topics[topic_id] = MetadataResponseTopic(
            error_code=code,
            name=None,
            topic_id=topic_id,
        )

    def _add_by_name(self, name: str) -> None:
        if not self._access.may(DESCRIBE, TOPIC, name):
            self._topics[name] = MetadataResponseTopic(error_code=TOPIC_DENIED, name=name)
            return
        topic = self._catalogue.topic(name)
        if topic is not None:
            self._add_found(topic)
            return
        self._topics[name] = MetadataResponseTopic(
            error_code=self._failed.get(name) or self._missing_error(name),
            name=name,
            is_internal=name in INTERNAL,
            topic_authorized_operations=_operations_on_topic(self._access, self._request, name),
        )

    def _add_found(self, topic: Topic) -> None:
        if topic.name not in self._topics:
            described = _topic_found(self._leaders, self._access, self._request, topic)
            self._topics[topic.name] = described

    def _missing_error(self, name: str) -> ErrorCode:
        """Return the error for a missing topic, which is a denial if the client cannot create
        it.
        """
        if _creates(self._catalogue, self._request) and not may_create(self._access, name):
            return TOPIC_DENIED
        return missing_topic_error(name)


def missing_topic_error(name: str) -> ErrorCode:
    """Return the error for a missing topic: invalid or unknown."""
    if name_problem(name) is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _operations_on_topic(access: Access, request: MetadataRequest, name: str) -> int:
    """Return the client's permissions on a topic, if requested."""
    if not request.include_topic_authorized_operations:
        return NOT_ASKED
    return access.operations_on(TOPIC, name)


def _found_of(
    leaders: Leaders, access: Access, request: MetadataRequest, topics: Iterable[Topic]
) -> list[MetadataResponseTopic]:
    """Describe those topics of all that the client may describe."""
    return [
        _topic_found(leaders, access, request, topic)
        for topic in topics
        if access.may_see(TOPIC, topic.name)
    ]


def _topic_found(
    leaders: Leaders, access: Access, request: MetadataRequest, topic: Topic
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=leaders.described(topic),
        topic_authorized_operations=_operations_on_topic(access, request, topic.name),
    )


def _metadata_response(
    catalogue: Catalogue,
    leaders: Leaders,
    context: RequestContext,
    request: MetadataRequest,
    topics: list[MetadataResponseTopic],
) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(*each) for each in leaders.brokers],
        cluster_id=catalogue.cluster_id,
        controller_id=leaders.controller_id,
        topics=topics,
        cluster_authorized_operations=operations_on_cluster(
            context, wanted=request.include_cluster_authorized_operations
        ),
    )


# ------------------------------------------------------------------------ DescribeTopicPartitions


def refuse_describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, code: ErrorCode, message: str | None
) -> DescribeTopicPartitionsResponse:
    """Return one error for every requested topic, or for the cursor's topic."""
    del message
    names = [topic.name for topic in request.topics]
    if not names and request.cursor is not None:
        names = [request.cursor.topic_name]
    return DescribeTopicPartitionsResponse(
        topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=name) for name in names]
    )


@serves(
    DESCRIBE_TOPIC_PARTITIONS,
    versions=(0, 0),
    refuse=refuse_describe_topic_partitions,
    in_slices=True,
)
async def describe_topic_partitions(
    catalogue: Catalogue,
    brokers: Brokers,
    context: RequestContext,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse:
    """Describe topics in the order of their names, a bounded number of partitions at a time.

    Never creates a topic. ``next_cursor`` is the start of the next request.
    """
    names = _names_from_cursor(catalogue, request)
    limit = catalogue.configs.broker_config.max_request_partition_size_limit
    remaining = max(1, min(limit, request.response_partition_limit))
    cursor, access = request.cursor, context.access
    leaders = Leaders(brokers, context)
    response = DescribeTopicPartitionsResponse()
    denied: list[DescribeTopicPartitionsResponseTopic] = []
    for number, name in enumerate(names, 1):
        if number % TOPICS_PER_SLICE == 0:
            await Turn()
        if not access.may_see(TOPIC, name):
            if request.topics:
                denied.append(_denied_topic(access, name))
            continue
        topic = catalogue.topic(name)
        if topic is None and not request.topics:
            continue  # Deleted meanwhile.
        if remaining == 0:
            response.next_cursor = Cursor(name, 0)
            break
        if topic is None:
            response.topics.append(_missing_topic(access, name))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        described = _described_topic(leaders, access, topic, first, remaining)
        response.topics.append(described)
        remaining -= len(described.partitions)
        following = first + len(described.partitions)
        if following < len(topic.partitions):
            response.next_cursor = Cursor(name, following)
            break
    response.topics += denied
    return response


def _names_from_cursor(catalogue: Catalogue, request: DescribeTopicPartitionsRequest) -> list[str]:
    """Return the sorted names to describe from the cursor on."""
    cursor = request.cursor
    names = sorted({topic.name for topic in request.topics} or catalogue.topics)
    if cursor is None:
        return names
    names = [name for name in names if name >= cursor.topic_name]
    # Among all topics, the cursor's may have been deleted meanwhile; among named ones it must be.
    if cursor.partition_index < 0 or (request.topics and names[:1] != [cursor.topic_name]):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    return names


def _denied_topic(access: Access, name: str) -> DescribeTopicPartitionsResponseTopic:
    access.may(DESCRIBE, TOPIC, name)  # For the audit log: the request names it.
    return DescribeTopicPartitionsResponseTopic(error_code=TOPIC_DENIED, name=name)


def _missing_topic(access: Access, name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=missing_topic_error(name),
        name=name,
        is_internal=name in INTERNAL,
        topic_authorized_operations=access.operations_on(TOPIC, name),
    )


def _described_topic(
    leaders: Leaders, access: Access, topic: Topic, first: int, limit: int
) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                error_code=each.error_code,
                partition_index=each.partition_index,
                leader_id=each.leader_id,
                leader_epoch=each.leader_epoch,
                replica_nodes=each.replica_nodes,
                isr_nodes=each.isr_nodes,
                # Empty, never null: Java clients fail on the null that the schema allows.
                eligible_leader_replicas=[],
                last_known_elr=[],
                offline_replicas=each.offline_replicas,
            )
            for each in leaders.described(topic, first, limit)
        ],
        topic_authorized_operations=access.operations_on(TOPIC, topic.name),
    )
