"""OffsetDelete: generated from offset_delete.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteRequestPartition(Structure):
    """Part of OffsetDelete."""

    partition_index: int

    def __init__(self, partition_index: int = 0) -> None:
        self.partition_index = partition_index


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteRequestTopic(Structure):
    """Part of OffsetDelete."""

    name: str
    partitions: list[OffsetDeleteRequestPartition]

    def __init__(
        self, name: str = "", partitions: list[OffsetDeleteRequestPartition] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteRequest(Structure):
    """OffsetDelete, versions 0-0."""

    group_id: str
    topics: list[OffsetDeleteRequestTopic]

    def __init__(self, group_id: str = "", topics: list[OffsetDeleteRequestTopic] = ABSENT) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteResponsePartition(Structure):
    """Part of OffsetDelete."""

    partition_index: int
    error_code: int

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteResponseTopic(Structure):
    """Part of OffsetDelete."""

    name: str
    partitions: list[OffsetDeleteResponsePartition]

    def __init__(
        self, name: str = "", partitions: list[OffsetDeleteResponsePartition] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteResponse(Structure):
    """OffsetDelete, versions 0-0."""

    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponseTopic]

    def __init__(
        self, error_code: int = 0, throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def read_offset_delete_request_partition(
    reader: Reader, version: int
) -> OffsetDeleteRequestPartition:
    return OffsetDeleteRequestPartition(reader.int32())


def write_offset_delete_request_partition(
    writer: Writer, message: OffsetDeleteRequestPartition, version: int
) -> None:
    writer.int32(message.partition_index)


def read_offset_delete_request_topic(reader: Reader, version: int) -> OffsetDeleteRequestTopic:
    return OffsetDeleteRequestTopic(
        reader.string(),
        reader.array(read_offset_delete_request_partition, version, 4),
    )


def write_offset_delete_request_topic(
    writer: Writer, message: OffsetDeleteRequestTopic, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_offset_delete_request_partition, version)


def read_offset_delete_request(reader: Reader, version: int) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        reader.string(),
        reader.array(read_offset_delete_request_topic, version, 6),
    )


def write_offset_delete_request(writer: Writer, message: OffsetDeleteRequest, version: int) -> None:
    writer.string(message.group_id)
    writer.array(message.topics, write_offset_delete_request_topic, version)


def read_offset_delete_response_partition(
    reader: Reader, version: int
) -> OffsetDeleteResponsePartition:
    return OffsetDeleteResponsePartition(reader.int32(), reader.int16())


def write_offset_delete_response_partition(
    writer: Writer, message: OffsetDeleteResponsePartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)


def read_offset_delete_response_topic(reader: Reader, version: int) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        reader.string(),
        reader.array(read_offset_delete_response_partition, version, 6),
    )


def write_offset_delete_response_topic(
    writer: Writer, message: OffsetDeleteResponseTopic, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_offset_delete_response_partition, version)


def read_offset_delete_response(reader: Reader, version: int) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(
        reader.int16(),
        reader.int32(),
        reader.array(read_offset_delete_response_topic, version, 6),
    )


def write_offset_delete_response(
    writer: Writer, message: OffsetDeleteResponse, version: int
) -> None:
    writer.int16(message.error_code)
    writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_offset_delete_response_topic, version)


OFFSET_DELETE = Api(
    47,
    "OffsetDelete",
    message_of_fields(
        "OffsetDeleteRequest", (0, 0), NEVER, read_offset_delete_request, write_offset_delete_request,
        bounded=True,
    ),
    message_of_fields(
        "OffsetDeleteResponse", (0, 0), NEVER, read_offset_delete_response, write_offset_delete_response
    ),
)
