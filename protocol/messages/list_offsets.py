"""ListOffsets: generated from list_offsets.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsPartition(Structure):
    """Part of ListOffsets."""

    partition_index: int
    current_leader_epoch: int
    timestamp: int

    def __init__(
        self, partition_index: int = 0, current_leader_epoch: int = -1, timestamp: int = 0
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsTopic(Structure):
    """Part of ListOffsets."""

    name: str
    partitions: list[ListOffsetsPartition]

    def __init__(self, name: str = "", partitions: list[ListOffsetsPartition] = ABSENT) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsRequest(Structure):
    """ListOffsets, versions 1-11."""

    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsTopic]
    timeout_ms: int

    def __init__(
        self, replica_id: int = 0, isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = ABSENT, timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is ABSENT else topics
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsPartitionResponse(Structure):
    """Part of ListOffsets."""

    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, timestamp: int = -1, offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsTopicResponse(Structure):
    """Part of ListOffsets."""

    name: str
    partitions: list[ListOffsetsPartitionResponse]

    def __init__(
        self, name: str = "", partitions: list[ListOffsetsPartitionResponse] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsResponse(Structure):
    """ListOffsets, versions 1-11."""

    throttle_time_ms: int
    topics: list[ListOffsetsTopicResponse]

    def __init__(
        self, throttle_time_ms: int = 0, topics: list[ListOffsetsTopicResponse] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def read_list_offsets_partition(reader: Reader, version: int) -> ListOffsetsPartition:
    message = ListOffsetsPartition(
        reader.int32(),
        reader.int32() if version >= 4 else -1,
        reader.int64(),
    )
    reader.skip_tags()
    return message


def write_list_offsets_partition(
    writer: Writer, message: ListOffsetsPartition, version: int
) -> None:
    writer.int32(message.partition_index)
    if version >= 4:
        writer.int32(message.current_leader_epoch)
    writer.int64(message.timestamp)
    writer.no_tags()


def read_list_offsets_topic(reader: Reader, version: int) -> ListOffsetsTopic:
    message = ListOffsetsTopic(
        reader.string(),
        reader.array(read_list_offsets_partition, version, 12),
    )
    reader.skip_tags()
    return message


def write_list_offsets_topic(writer: Writer, message: ListOffsetsTopic, version: int) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_list_offsets_partition, version)
    writer.no_tags()


def read_list_offsets_request(reader: Reader, version: int) -> ListOffsetsRequest:
    message = ListOffsetsRequest(
        reader.int32(),
        reader.int8() if version >= 2 else 0,
        reader.array(read_list_offsets_topic, version, 3),
        reader.int32() if version >= 10 else 0,
    )
    reader.skip_tags()
    return message


def write_list_offsets_request(writer: Writer, message: ListOffsetsRequest, version: int) -> None:
    writer.int32(message.replica_id)
    if version >= 2:
        writer.int8(message.isolation_level)
    writer.array(message.topics, write_list_offsets_topic, version)
    if version >= 10:
        writer.int32(message.timeout_ms)
    writer.no_tags()


def read_list_offsets_partition_response(
    reader: Reader, version: int
) -> ListOffsetsPartitionResponse:
    message = ListOffsetsPartitionResponse(
        reader.int32(),
        reader.int16(),
        reader.int64(),
        reader.int64(),
        reader.int32() if version >= 4 else -1,
    )
    reader.skip_tags()
    return message


def write_list_offsets_partition_response(
    writer: Writer, message: ListOffsetsPartitionResponse, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.int64(message.timestamp)
    writer.int64(message.offset)
    if version >= 4:
        writer.int32(message.leader_epoch)
    writer.no_tags()


def read_list_offsets_topic_response(reader: Reader, version: int) -> ListOffsetsTopicResponse:
    message = ListOffsetsTopicResponse(
        reader.string(),
        reader.array(read_list_offsets_partition_response, version, 22),
    )
    reader.skip_tags()
    return message


def write_list_offsets_topic_response(
    writer: Writer, message: ListOffsetsTopicResponse, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_list_offsets_partition_response, version)
    writer.no_tags()


def read_list_offsets_response(reader: Reader, version: int) -> ListOffsetsResponse:
    message = ListOffsetsResponse(
        reader.int32() if version >= 2 else 0,
        reader.array(read_list_offsets_topic_response, version, 3),
    )
    reader.skip_tags()
    return message


def write_list_offsets_response(writer: Writer, message: ListOffsetsResponse, version: int) -> None:
    if version >= 2:
        writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_list_offsets_topic_response, version)
    writer.no_tags()


LIST_OFFSETS = Api(
    2,
    "ListOffsets",
    message_of_fields(
        "ListOffsetsRequest", (1, 11), 6, read_list_offsets_request, write_list_offsets_request,
        bounded=True,
    ),
    message_of_fields(
        "ListOffsetsResponse", (1, 11), 6, read_list_offsets_response, write_list_offsets_response
    ),
)
