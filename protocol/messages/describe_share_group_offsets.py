"""DescribeShareGroupOffsets: generated from describe_share_group_offsets.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsRequestTopic(Structure):
    """Part of DescribeShareGroupOffsets."""

    topic_name: str
    partitions: list[int]

    def __init__(self, topic_name: str = "", partitions: list[int] = ABSENT) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsRequestGroup(Structure):
    """Part of DescribeShareGroupOffsets."""

    group_id: str
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None

    def __init__(
        self, group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsRequest(Structure):
    """DescribeShareGroupOffsets, versions 0-1."""

    groups: list[DescribeShareGroupOffsetsRequestGroup]

    def __init__(self, groups: list[DescribeShareGroupOffsetsRequestGroup] = ABSENT) -> None:
        self.groups = [] if groups is ABSENT else groups


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponsePartition(Structure):
    """Part of DescribeShareGroupOffsets."""

    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int
    error_message: str | None

    def __init__(
        self, partition_index: int = 0, start_offset: int = 0, leader_epoch: int = 0, lag: int = -1,
        error_code: int = 0, error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponseTopic(Structure):
    """Part of DescribeShareGroupOffsets."""

    topic_name: str
    topic_id: bytes
    partitions: list[DescribeShareGroupOffsetsResponsePartition]

    def __init__(
        self, topic_name: str = "", topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponseGroup(Structure):
    """Part of DescribeShareGroupOffsets."""

    group_id: str
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None

    def __init__(
        self, group_id: str = "", topics: list[DescribeShareGroupOffsetsResponseTopic] = ABSENT,
        error_code: int = 0, error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponse(Structure):
    """DescribeShareGroupOffsets, versions 0-1."""

    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponseGroup]

    def __init__(
        self, throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def read_describe_share_group_offsets_request_topic(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsRequestTopic:
    message = DescribeShareGroupOffsetsRequestTopic(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_request_topic(
    writer: Writer, message: DescribeShareGroupOffsetsRequestTopic, version: int
) -> None:
    writer.string(message.topic_name)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_describe_share_group_offsets_request_group(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsRequestGroup:
    message = DescribeShareGroupOffsetsRequestGroup(
        reader.string(),
        reader.optional_array(read_describe_share_group_offsets_request_topic, version, 3),
    )
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_request_group(
    writer: Writer, message: DescribeShareGroupOffsetsRequestGroup, version: int
) -> None:
    writer.string(message.group_id)
    writer.optional_array(message.topics, write_describe_share_group_offsets_request_topic, version)
    writer.no_tags()


def read_describe_share_group_offsets_request(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsRequest:
    message = DescribeShareGroupOffsetsRequest(
        reader.array(read_describe_share_group_offsets_request_group, version, 3),
    )
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_request(
    writer: Writer, message: DescribeShareGroupOffsetsRequest, version: int
) -> None:
    writer.array(message.groups, write_describe_share_group_offsets_request_group, version)
    writer.no_tags()


def read_describe_share_group_offsets_response_partition(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsResponsePartition:
    message = DescribeShareGroupOffsetsResponsePartition(
        reader.int32(),
        reader.int64(),
        reader.int32(),
        reader.int64() if version >= 1 else -1,
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_response_partition(
    writer: Writer, message: DescribeShareGroupOffsetsResponsePartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.start_offset)
    writer.int32(message.leader_epoch)
    if version >= 1:
        writer.int64(message.lag)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_describe_share_group_offsets_response_topic(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsResponseTopic:
    message = DescribeShareGroupOffsetsResponseTopic(
        reader.string(),
        reader.uuid(),
        reader.array(read_describe_share_group_offsets_response_partition, version, 20),
    )
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_response_topic(
    writer: Writer, message: DescribeShareGroupOffsetsResponseTopic, version: int
) -> None:
    writer.string(message.topic_name)
    writer.uuid(message.topic_id)
    writer.array(message.partitions, write_describe_share_group_offsets_response_partition, version)
    writer.no_tags()


def read_describe_share_group_offsets_response_group(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsResponseGroup:
    message = DescribeShareGroupOffsetsResponseGroup(
        reader.string(),
        reader.array(read_describe_share_group_offsets_response_topic, version, 19),
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_response_group(
    writer: Writer, message: DescribeShareGroupOffsetsResponseGroup, version: int
) -> None:
    writer.string(message.group_id)
    writer.array(message.topics, write_describe_share_group_offsets_response_topic, version)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_describe_share_group_offsets_response(
    reader: Reader, version: int
) -> DescribeShareGroupOffsetsResponse:
    message = DescribeShareGroupOffsetsResponse(
        reader.int32(),
        reader.array(read_describe_share_group_offsets_response_group, version, 6),
    )
    reader.skip_tags()
    return message


def write_describe_share_group_offsets_response(
    writer: Writer, message: DescribeShareGroupOffsetsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.groups, write_describe_share_group_offsets_response_group, version)
    writer.no_tags()


DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    90,
    "DescribeShareGroupOffsets",
    message_of_fields(
        "DescribeShareGroupOffsetsRequest", (0, 1), 0, read_describe_share_group_offsets_request,
        write_describe_share_group_offsets_request, bounded=True,
    ),
    message_of_fields(
        "DescribeShareGroupOffsetsResponse", (0, 1), 0, read_describe_share_group_offsets_response,
        write_describe_share_group_offsets_response,
    ),
)
