"""DescribeTopicPartitions: generated from describe_topic_partitions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicRequest(Structure):
    """Part of DescribeTopicPartitions."""

    name: str

    def __init__(self, name: str = "") -> None:
        self.name = name


@dataclass(slots=True, init=False, repr=False, eq=False)
class Cursor(Structure):
    """Part of DescribeTopicPartitions."""

    topic_name: str
    partition_index: int

    def __init__(self, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsRequest(Structure):
    """DescribeTopicPartitions, versions 0-0."""

    topics: list[TopicRequest]
    response_partition_limit: int
    cursor: Cursor | None

    def __init__(
        self, topics: list[TopicRequest] = ABSENT, response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsResponsePartition(Structure):
    """Part of DescribeTopicPartitions."""

    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    offline_replicas: list[int]

    def __init__(
        self, error_code: int = 0, partition_index: int = 0, leader_id: int = 0,
        leader_epoch: int = -1, replica_nodes: list[int] = ABSENT, isr_nodes: list[int] = ABSENT,
        eligible_leader_replicas: list[int] | None = None, last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is ABSENT else replica_nodes
        self.isr_nodes = [] if isr_nodes is ABSENT else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is ABSENT else offline_replicas


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsResponseTopic(Structure):
    """Part of DescribeTopicPartitions."""

    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int

    def __init__(
        self, error_code: int = 0, name: str | None = "", topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = ABSENT,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is ABSENT else partitions
        self.topic_authorized_operations = topic_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsResponse(Structure):
    """DescribeTopicPartitions, versions 0-0."""

    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None

    def __init__(
        self, throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = ABSENT,
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics
        self.next_cursor = next_cursor


def read_topic_request(reader: Reader, version: int) -> TopicRequest:
    message = TopicRequest(reader.string())
    reader.skip_tags()
    return message


def write_topic_request(writer: Writer, message: TopicRequest, version: int) -> None:
    writer.string(message.name)
    writer.no_tags()


def read_cursor(reader: Reader, version: int) -> Cursor:
    message = Cursor(reader.string(), reader.int32())
    reader.skip_tags()
    return message


def write_cursor(writer: Writer, message: Cursor, version: int) -> None:
    writer.string(message.topic_name)
    writer.int32(message.partition_index)
    writer.no_tags()


def read_describe_topic_partitions_request(
    reader: Reader, version: int
) -> DescribeTopicPartitionsRequest:
    message = DescribeTopicPartitionsRequest(
        reader.array(read_topic_request, version, 2),
        reader.int32(),
        reader.optional(read_cursor, version),
    )
    reader.skip_tags()
    return message


def write_describe_topic_partitions_request(
    writer: Writer, message: DescribeTopicPartitionsRequest, version: int
) -> None:
    writer.array(message.topics, write_topic_request, version)
    writer.int32(message.response_partition_limit)
    writer.optional(message.cursor, write_cursor, version)
    writer.no_tags()


def read_describe_topic_partitions_response_partition(
    reader: Reader, version: int
) -> DescribeTopicPartitionsResponsePartition:
    message = DescribeTopicPartitionsResponsePartition(
        reader.int16(),
        reader.int32(),
        reader.int32(),
        reader.int32(),
        reader.values(reader.int32, 4),
        reader.values(reader.int32, 4),
        reader.optional_values(reader.int32, 4),
        reader.optional_values(reader.int32, 4),
        reader.values(reader.int32, 4),
    )
    reader.skip_tags()
    return message


def write_describe_topic_partitions_response_partition(
    writer: Writer, message: DescribeTopicPartitionsResponsePartition, version: int
) -> None:
    writer.int16(message.error_code)
    writer.int32(message.partition_index)
    writer.int32(message.leader_id)
    writer.int32(message.leader_epoch)
    writer.values(message.replica_nodes, writer.int32)
    writer.values(message.isr_nodes, writer.int32)
    writer.optional_values(message.eligible_leader_replicas, writer.int32)
    writer.optional_values(message.last_known_elr, writer.int32)
    writer.values(message.offline_replicas, writer.int32)
    writer.no_tags()


def read_describe_topic_partitions_response_topic(
    reader: Reader, version: int
) -> DescribeTopicPartitionsResponseTopic:
    message = DescribeTopicPartitionsResponseTopic(
        reader.int16(),
        reader.optional_string(),
        reader.uuid(),
        reader.boolean(),
        reader.array(read_describe_topic_partitions_response_partition, version, 20),
        reader.int32(),
    )
    reader.skip_tags()
    return message


def write_describe_topic_partitions_response_topic(
    writer: Writer, message: DescribeTopicPartitionsResponseTopic, version: int
) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.name)
    writer.uuid(message.topic_id)
    writer.boolean(message.is_internal)
    writer.array(message.partitions, write_describe_topic_partitions_response_partition, version)
    writer.int32(message.topic_authorized_operations)
    writer.no_tags()


def read_describe_topic_partitions_response(
    reader: Reader, version: int
) -> DescribeTopicPartitionsResponse:
    message = DescribeTopicPartitionsResponse(
        reader.int32(),
        reader.array(read_describe_topic_partitions_response_topic, version, 26),
        reader.optional(read_cursor, version),
    )
    reader.skip_tags()
    return message


def write_describe_topic_partitions_response(
    writer: Writer, message: DescribeTopicPartitionsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_describe_topic_partitions_response_topic, version)
    writer.optional(message.next_cursor, write_cursor, version)
    writer.no_tags()


DESCRIBE_TOPIC_PARTITIONS = Api(
    75,
    "DescribeTopicPartitions",
    message_of_fields(
        "DescribeTopicPartitionsRequest", (0, 0), 0, read_describe_topic_partitions_request,
        write_describe_topic_partitions_request, bounded=True,
    ),
    message_of_fields(
        "DescribeTopicPartitionsResponse", (0, 0), 0, read_describe_topic_partitions_response,
        write_describe_topic_partitions_response,
    ),
)
