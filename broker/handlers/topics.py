"""CreateTopics 2-7, DeleteTopics 1-6, CreatePartitions 0-3.

Version notes. CreateTopics: v5 answers with counts and settings, v7 with the topic's id.
DeleteTopics: v6 takes ids as well as names; before v3 there was no error for "deletion is switched
off". CreatePartitions: nothing changed but the encoding.
Replication factors and assignments by hand: see placement.py.
A client that may neither create, delete, alter nor describe a topic does not learn if it exists.
A topic in the way of a new one ("a.b", "a_b") is named, as by Kafka, only to clients that may
describe it.
Stricter than Kafka: names in one request that collide are refused here, too, and internal topics
never grow, since the number of their partitions says where the coordinator of a key is.
Partitions that are created or deleted count against the client's quota (KIP-599).
``timeout_ms`` counts if the MetaStore can be unavailable; otherwise a change is complete with its
response.
"""

from __future__ import annotations

from collections import Counter

from barnabas.broker.api.checks import (
    ALTER,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE_CONFIGS,
    TOPIC,
    TOPIC_DENIED,
    denied,
    may_create,
)
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.cluster.moves import Moves
from barnabas.broker.cluster.serving.brokers import Brokers
from barnabas.broker.cluster.serving.placement import USE_DEFAULT, Placement, check_sizes
from barnabas.broker.config.topic_values import describe_topic
from barnabas.broker.handlers.mutations import Mutations
from barnabas.broker.metadata.catalogue import (
    PARTITIONS_PER_CHANGE_MAX,
    Catalogue,
    CollidingName,
    new_topic_id,
)
from barnabas.broker.metadata.topic import Topic
from barnabas.broker.runtime.turns import next_turn
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.create_partitions import (
    CREATE_PARTITIONS,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.protocol.messages.delete_topics import (
    DELETE_TOPICS,
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from barnabas.protocol.wire import ZERO_UUID

TOPICS_PER_TURN = 100
"""Topics that are processed before the loop may get a turn."""
NOT_TOLD = -1


# ----------------------------------------------------------------------------------- CreateTopics


@serves(CREATE_TOPICS, versions=(2, 7), in_slices=True)
async def create_topics(
    catalogue: Catalogue,
    brokers: Brokers,
    moves: Moves | None,
    context: RequestContext,
    request: CreateTopicsRequest,
) -> CreateTopicsResponse:
    """Create topics one by one; each succeeds or fails by itself."""
    named = {topic.name: topic for topic in request.topics}
    given = Counter(topic.name for topic in request.topics)
    total = sum(max(topic.num_partitions, len(topic.assignments)) for topic in request.topics)
    mutations = Mutations(context, strict_since=6)
    placement = Placement(brokers, moves)
    until_s = catalogue.changes.time_in(request.timeout_ms)
    results = []
    for name, topic in named.items():
        try:
            _check_given_once(given[name])
            if not may_create(context.access, name):
                raise denied(TOPIC_DENIED, CREATE, TOPIC, name)
            _check_total(total)
            result = await _create_topic(
                catalogue, placement, topic, None if request.validate_only else mutations, until_s
            )
            if not context.access.may_see(TOPIC, name, DESCRIBE_CONFIGS):
                _hide_configs(result)
        except KafkaError as error:
            result = CreatableTopicResult(
                name=name, error_code=error.code, error_message=_text(context.access, name, error)
            )
        results.append(result)
        if len(results) % TOPICS_PER_TURN == 0:
            await next_turn()
    return CreateTopicsResponse(throttle_time_ms=mutations.throttle_time_ms, topics=results)


async def _create_topic(
    catalogue: Catalogue,
    placement: Placement,
    wanted: CreatableTopic,
    mutations: Mutations | None,
    until_s: float,
) -> CreatableTopicResult:
    """Create one topic, or only check it without ``mutations``; raises KafkaError."""
    # The last one of a key given twice counts, as in Kafka.
    given = {config.name: config.value for config in wanted.configs}
    broker_config = catalogue.configs.broker_config
    catalogue.check_new_name(wanted.name)
    partition_count = _partition_count(catalogue, placement, wanted)
    configs = placement.configs_with(_factor(wanted), given, broker_config)
    catalogue.check_new_topic(wanted.name, partition_count, configs)
    topic_id = new_topic_id()
    if mutations is not None:
        mutations.count(partition_count)
        topic = await catalogue.create_topic(wanted.name, partition_count, configs, until_s)
        topic_id = topic.topic_id
        leaders = {each.partition_index: each.broker_ids[0] for each in wanted.assignments}
        await catalogue.changes.in_time(placement.place(topic.partitions, leaders), until_s)
    own = {name: text for name, text in configs.items() if text is not None}
    return CreatableTopicResult(
        name=wanted.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=partition_count,
        replication_factor=placement.factor_of(own, broker_config),
        configs=[
            CreatableTopicConfigs(entry.name, entry.value, entry.read_only, entry.source)
            for entry in describe_topic(own, broker_config)
        ],
    )


def _text(access: Access, name: str, error: KafkaError) -> str:
    """Return the message of an error, without the name of a topic that may not be seen."""
    if isinstance(error, CollidingName) and not access.may_see(TOPIC, error.other):
        return f"Topic '{name}' collides with an existing topic"
    return error.message


def _hide_configs(result: CreatableTopicResult) -> None:
    """Remove settings from a response that need DESCRIBE_CONFIGS."""
    result.topic_config_error_code = TOPIC_DENIED
    result.num_partitions = result.replication_factor = NOT_TOLD
    result.configs = []


def _factor(wanted: CreatableTopic) -> int:
    """Return the requested replication factor, or USE_DEFAULT."""
    if wanted.assignments:
        return len(wanted.assignments[0].broker_ids)
    return wanted.replication_factor


def _partition_count(catalogue: Catalogue, placement: Placement, wanted: CreatableTopic) -> int:
    """Return the number of partitions of a new topic; raises KafkaError."""
    if wanted.assignments:
        return _assigned_count(placement, wanted)
    placement.check_factor(wanted.replication_factor)
    if wanted.num_partitions == USE_DEFAULT:
        return catalogue.configs.broker_config.num_partitions
    return wanted.num_partitions


def _assigned_count(placement: Placement, wanted: CreatableTopic) -> int:
    """Return the number of manually assigned partitions; raises KafkaError."""
    if wanted.replication_factor != USE_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but replication factor was not "
            "set to -1.",
        )
    if wanted.num_partitions != USE_DEFAULT:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "A manual partition assignment was specified, but numPartitions was not set to -1.",
        )
    indexes = set()
    for assignment in wanted.assignments:
        if assignment.partition_index in indexes:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "Found multiple manual partition assignments for partition "
                f"{assignment.partition_index}",
            )
        indexes.add(assignment.partition_index)
        placement.check_replicas(assignment.broker_ids)
    check_sizes([each.broker_ids for each in wanted.assignments])
    if indexes != set(range(len(indexes))):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return len(indexes)


def _check_given_once(times: int) -> None:
    if times > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")


def _check_total(partition_count: int) -> None:
    if partition_count > PARTITIONS_PER_CHANGE_MAX:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
        )


# ----------------------------------------------------------------------------------- DeleteTopics


@serves(DELETE_TOPICS, versions=(1, 6))
async def delete_topics(
    catalogue: Catalogue, context: RequestContext, request: DeleteTopicsRequest
) -> DeleteTopicsResponse:
    """Delete topics named by name or by id; each succeeds or fails by itself."""
    if not catalogue.configs.broker_config.delete_topic_enable:
        code = ErrorCode.TOPIC_DELETION_DISABLED
        raise KafkaError(code if context.api_version >= 3 else ErrorCode.INVALID_REQUEST)
    wanted = request.topics or [DeleteTopicState(name=name) for name in request.topic_names]
    results, doomed = await _topics_to_delete(catalogue, context.access, wanted)
    mutations = Mutations(context, strict_since=5)
    until_s = catalogue.changes.time_in(request.timeout_ms)
    for topic in doomed:
        result = DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)
        try:
            if not _may_delete(context.access, topic.name):  # Any more.
                raise denied(TOPIC_DENIED, DELETE, TOPIC, topic.name)
            mutations.count(len(topic.partitions))
            await catalogue.delete_topic(topic.topic_id, until_s)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        results.append(result)
    return DeleteTopicsResponse(throttle_time_ms=mutations.throttle_time_ms, responses=results)


def _may_delete(access: Access, name: str) -> bool:
    return access.may_see(CLUSTER, CLUSTER_NAME, DELETE) or access.may(DELETE, TOPIC, name)


async def _topics_to_delete(
    catalogue: Catalogue, access: Access, wanted: list[DeleteTopicState]
) -> tuple[list[DeletableTopicResult], list[Topic]]:
    """Split the requested topics into refusals and topics; a topic named twice is refused."""
    refused: dict[tuple[str | None, bytes], DeletableTopicResult] = {}
    found: dict[bytes, Topic] = {}
    times = Counter((each.name, each.topic_id) for each in wanted)

    def refuse(
        name: str | None, topic_id: bytes, code: ErrorCode, message: str | None = None
    ) -> None:
        refused[name, topic_id] = DeletableTopicResult(
            name, topic_id, error_code=code, error_message=message or code.message
        )

    for number, (name, topic_id) in enumerate(times):
        if number % TOPICS_PER_TURN == TOPICS_PER_TURN - 1:
            await next_turn()
        problem = _identity_problem(name, topic_id, times[name, topic_id])
        if problem is not None:
            refuse(name, topic_id, ErrorCode.INVALID_REQUEST, problem)
            continue
        by_id = name is None
        topic = catalogue.topic_by_id(topic_id) if name is None else catalogue.topic(name)
        known_name = name if topic is None else topic.name
        if known_name is None:
            refuse(name, topic_id, ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        is_seen = access.may_see(CLUSTER, CLUSTER_NAME, DELETE) or access.may_see(TOPIC, known_name)
        if topic is None and is_seen:
            refuse(name, topic_id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif topic is None or not _may_delete(access, topic.name):
            refuse(known_name if is_seen or not by_id else None, topic_id, TOPIC_DENIED)
        elif topic.topic_id in found:
            del found[topic.topic_id]
            refuse(
                topic.name,
                topic.topic_id,
                ErrorCode.INVALID_REQUEST,
                "The provided topic name maps to an ID that was already supplied.",
            )
        else:
            found[topic.topic_id] = topic
    return list(refused.values()), list(found.values())


def _identity_problem(name: str | None, topic_id: bytes, times: int) -> str | None:
    """Return the error in the way a topic is named in a deletion, or None."""
    if name is None and topic_id == ZERO_UUID:
        return "Neither topic name nor id were specified."
    if name is not None and topic_id != ZERO_UUID:
        return "You may not specify both topic name and topic id."
    if times > 1:
        return "Duplicate topic id." if name is None else "Duplicate topic name."
    return None


# ------------------------------------------------------------------------------- CreatePartitions


@serves(CREATE_PARTITIONS, versions=(0, 3), in_slices=True)
async def create_partitions(
    catalogue: Catalogue,
    brokers: Brokers,
    moves: Moves | None,
    context: RequestContext,
    request: CreatePartitionsRequest,
) -> CreatePartitionsResponse:
    """Extend topics; the response has a result for every requested topic."""
    named = {topic.name: topic for topic in request.topics}
    given = Counter(topic.name for topic in request.topics)
    mutations = Mutations(context, strict_since=3)
    placement = Placement(brokers, moves)
    until_s = catalogue.changes.time_in(request.timeout_ms)
    results = []
    for name, topic in named.items():
        result = CreatePartitionsTopicResult(name=name)
        try:
            _check_given_once(given[name])
            if not context.access.may(ALTER, TOPIC, name):
                raise denied(TOPIC_DENIED, ALTER, TOPIC, name)
            await _grow(
                catalogue, placement, topic, None if request.validate_only else mutations, until_s
            )
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        results.append(result)
        if len(results) % TOPICS_PER_TURN == 0:
            await next_turn()
    return CreatePartitionsResponse(throttle_time_ms=mutations.throttle_time_ms, results=results)


async def _grow(
    catalogue: Catalogue,
    placement: Placement,
    wanted: CreatePartitionsTopic,
    mutations: Mutations | None,
    until_s: float,
) -> None:
    """Extend one topic, or only check it without ``mutations``; raises KafkaError."""
    added = catalogue.check_new_partitions(wanted.name, wanted.count)
    if wanted.assignments is not None:
        if len(wanted.assignments) != added:
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {added} additional partition(s), but only "
                f"{len(wanted.assignments)} assignment(s) were specified.",
            )
        for assignment in wanted.assignments:
            placement.check_replicas(assignment.broker_ids)
        check_sizes([each.broker_ids for each in wanted.assignments])
    if mutations is None:
        return
    mutations.count(added)
    await catalogue.create_partitions(wanted.name, wanted.count, until_s)
    topic = catalogue.topic(wanted.name)
    if wanted.assignments and topic is not None:
        first = wanted.count - added
        leaders = {first + n: each.broker_ids[0] for n, each in enumerate(wanted.assignments)}
        placing = placement.place(topic.partitions[first:], leaders)
        await catalogue.changes.in_time(placing, until_s)
