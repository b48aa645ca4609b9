"""AlterPartitionReassignments: generated from alter_partition_reassignments.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignablePartition(Structure):
    """Part of AlterPartitionReassignments."""

    partition_index: int
    replicas: list[int] | None
    pinning: int

    def __init__(
        self, partition_index: int = 0, replicas: list[int] | None = None, pinning: int = 0
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.pinning = pinning


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignableTopic(Structure):
    """Part of AlterPartitionReassignments."""

    name: str
    partitions: list[ReassignablePartition]

    def __init__(self, name: str = "", partitions: list[ReassignablePartition] = ABSENT) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterPartitionReassignmentsRequest(Structure):
    """AlterPartitionReassignments, versions 0-1."""

    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[ReassignableTopic]

    def __init__(
        self, timeout_ms: int = 60000, allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = ABSENT,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignablePartitionResponse(Structure):
    """Part of AlterPartitionReassignments."""

    partition_index: int
    error_code: int
    error_message: str | None

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, error_message: str | None = ""
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignableTopicResponse(Structure):
    """Part of AlterPartitionReassignments."""

    name: str
    partitions: list[ReassignablePartitionResponse]

    def __init__(
        self, name: str = "", partitions: list[ReassignablePartitionResponse] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterPartitionReassignmentsResponse(Structure):
    """AlterPartitionReassignments, versions 0-1."""

    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[ReassignableTopicResponse]

    def __init__(
        self, throttle_time_ms: int = 0, allow_replication_factor_change: bool = True,
        error_code: int = 0, error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is ABSENT else responses


def read_reassignable_partition(reader: Reader, version: int) -> ReassignablePartition:
    message = ReassignablePartition(reader.int32(), reader.optional_values(reader.int32, 4))
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.pinning = reader.int8()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_reassignable_partition(
    writer: Writer, message: ReassignablePartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.optional_values(message.replicas, writer.int32)
    tagged = TaggedFields()
    if message.pinning:
        tagged.int8(message.pinning)
        tagged.end(1000)
    writer.tags(tagged)


def read_reassignable_topic(reader: Reader, version: int) -> ReassignableTopic:
    message = ReassignableTopic(
        reader.string(),
        reader.array(read_reassignable_partition, version, 6),
    )
    reader.skip_tags()
    return message


def write_reassignable_topic(writer: Writer, message: ReassignableTopic, version: int) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_reassignable_partition, version)
    writer.no_tags()


def read_alter_partition_reassignments_request(
    reader: Reader, version: int
) -> AlterPartitionReassignmentsRequest:
    message = AlterPartitionReassignmentsRequest(
        reader.int32(),
        reader.boolean() if version >= 1 else True,
        reader.array(read_reassignable_topic, version, 3),
    )
    reader.skip_tags()
    return message


def write_alter_partition_reassignments_request(
    writer: Writer, message: AlterPartitionReassignmentsRequest, version: int
) -> None:
    writer.int32(message.timeout_ms)
    if version >= 1:
        writer.boolean(message.allow_replication_factor_change)
    writer.array(message.topics, write_reassignable_topic, version)
    writer.no_tags()


def read_reassignable_partition_response(
    reader: Reader, version: int
) -> ReassignablePartitionResponse:
    message = ReassignablePartitionResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_reassignable_partition_response(
    writer: Writer, message: ReassignablePartitionResponse, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_reassignable_topic_response(reader: Reader, version: int) -> ReassignableTopicResponse:
    message = ReassignableTopicResponse(
        reader.string(),
        reader.array(read_reassignable_partition_response, version, 8),
    )
    reader.skip_tags()
    return message


def write_reassignable_topic_response(
    writer: Writer, message: ReassignableTopicResponse, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_reassignable_partition_response, version)
    writer.no_tags()


def read_alter_partition_reassignments_response(
    reader: Reader, version: int
) -> AlterPartitionReassignmentsResponse:
    message = AlterPartitionReassignmentsResponse(
        reader.int32(),
        reader.boolean() if version >= 1 else True,
        reader.int16(),
        reader.optional_string(),
        reader.array(read_reassignable_topic_response, version, 3),
    )
    reader.skip_tags()
    return message


def write_alter_partition_reassignments_response(
    writer: Writer, message: AlterPartitionReassignmentsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    if version >= 1:
        writer.boolean(message.allow_replication_factor_change)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.responses, write_reassignable_topic_response, version)
    writer.no_tags()


ALTER_PARTITION_REASSIGNMENTS = Api(
    45,
    "AlterPartitionReassignments",
    message_of_fields(
        "AlterPartitionReassignmentsRequest", (0, 1), 0, read_alter_partition_reassignments_request,
        write_alter_partition_reassignments_request, bounded=True,
    ),
    message_of_fields(
        "AlterPartitionReassignmentsResponse", (0, 1), 0, read_alter_partition_reassignments_response,
        write_alter_partition_reassignments_response,
    ),
)
