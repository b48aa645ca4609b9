"""AlterShareGroupOffsets: generated from alter_share_group_offsets.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsRequestPartition(Structure):
    """Part of AlterShareGroupOffsets."""

    partition_index: int
    start_offset: int

    def __init__(self, partition_index: int = 0, start_offset: int = 0) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsRequestTopic(Structure):
    """Part of AlterShareGroupOffsets."""

    topic_name: str
    partitions: list[AlterShareGroupOffsetsRequestPartition]

    def __init__(
        self, topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsRequest(Structure):
    """AlterShareGroupOffsets, versions 0-0."""

    group_id: str
    topics: list[AlterShareGroupOffsetsRequestTopic]

    def __init__(
        self, group_id: str = "", topics: list[AlterShareGroupOffsetsRequestTopic] = ABSENT
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsResponsePartition(Structure):
    """Part of AlterShareGroupOffsets."""

    partition_index: int
    error_code: int
    error_message: str | None

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, error_message: str | None = None
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsResponseTopic(Structure):
    """Part of AlterShareGroupOffsets."""

    topic_name: str
    topic_id: bytes
    partitions: list[AlterShareGroupOffsetsResponsePartition]

    def __init__(
        self, topic_name: str = "", topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsResponse(Structure):
    """AlterShareGroupOffsets, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponseTopic]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is ABSENT else responses


def read_alter_share_group_offsets_request_partition(
    reader: Reader, version: int
) -> AlterShareGroupOffsetsRequestPartition:
    message = AlterShareGroupOffsetsRequestPartition(reader.int32(), reader.int64())
    reader.skip_tags()
    return message


def write_alter_share_group_offsets_request_partition(
    writer: Writer, message: AlterShareGroupOffsetsRequestPartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.start_offset)
    writer.no_tags()


def read_alter_share_group_offsets_request_topic(
    reader: Reader, version: int
) -> AlterShareGroupOffsetsRequestTopic:
    message = AlterShareGroupOffsetsRequestTopic(
        reader.string(),
        reader.array(read_alter_share_group_offsets_request_partition, version, 13),
    )
    reader.skip_tags()
    return message


def write_alter_share_group_offsets_request_topic(
    writer: Writer, message: AlterShareGroupOffsetsRequestTopic, version: int
) -> None:
    writer.string(message.topic_name)
    writer.array(message.partitions, write_alter_share_group_offsets_request_partition, version)
    writer.no_tags()


def read_alter_share_group_offsets_request(
    reader: Reader, version: int
) -> AlterShareGroupOffsetsRequest:
    message = AlterShareGroupOffsetsRequest(
        reader.string(),
        reader.array(read_alter_share_group_offsets_request_topic, version, 3),
    )
    reader.skip_tags()
    return message


def write_alter_share_group_offsets_request(
    writer: Writer, message: AlterShareGroupOffsetsRequest, version: int
) -> None:
    writer.string(message.group_id)
    writer.array(message.topics, write_alter_share_group_offsets_request_topic, version)
    writer.no_tags()


def read_alter_share_group_offsets_response_partition(
    reader: Reader, version: int
) -> AlterShareGroupOffsetsResponsePartition:
    message = AlterShareGroupOffsetsResponsePartition(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_alter_share_group_offsets_response_partition(
    writer: Writer, message: AlterShareGroupOffsetsResponsePartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_alter_share_group_offsets_response_topic(
    reader: Reader, version: int
) -> AlterShareGroupOffsetsResponseTopic:
    message = AlterShareGroupOffsetsResponseTopic(
        reader.string(),
        reader.uuid(),
        reader.array(read_alter_share_group_offsets_response_partition, version, 8),
    )
    reader.skip_tags()
    return message


def write_alter_share_group_offsets_response_topic(
    writer: Writer, message: AlterShareGroupOffsetsResponseTopic, version: int
) -> None:
    writer.string(message.topic_name)
    writer.uuid(message.topic_id)
    writer.array(message.partitions, write_alter_share_group_offsets_response_partition, version)
    writer.no_tags()


def read_alter_share_group_offsets_response(
    reader: Reader, version: int
) -> AlterShareGroupOffsetsResponse:
    message = AlterShareGroupOffsetsResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_alter_share_group_offsets_response_topic, version, 19),
    )
    reader.skip_tags()
    return message


def write_alter_share_group_offsets_response(
    writer: Writer, message: AlterShareGroupOffsetsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.responses, write_alter_share_group_offsets_response_topic, version)
    writer.no_tags()


ALTER_SHARE_GROUP_OFFSETS = Api(
    91,
    "AlterShareGroupOffsets",
    message_of_fields(
        "AlterShareGroupOffsetsRequest", (0, 0), 0, read_alter_share_group_offsets_request,
        write_alter_share_group_offsets_request, bounded=True,
    ),
    message_of_fields(
        "AlterShareGroupOffsetsResponse", (0, 0), 0, read_alter_share_group_offsets_response,
        write_alter_share_group_offsets_response,
    ),
)
