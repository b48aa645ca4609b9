"""OffsetFetch: generated from offset_fetch.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer, required


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequestTopic(Structure):
    """Part of OffsetFetch."""

    name: str
    partition_indexes: list[int]

    def __init__(self, name: str = "", partition_indexes: list[int] = ABSENT) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequestTopics(Structure):
    """Part of OffsetFetch."""

    name: str
    topic_id: bytes
    partition_indexes: list[int]

    def __init__(
        self, name: str = "", topic_id: bytes = ZERO_UUID, partition_indexes: list[int] = ABSENT
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequestGroup(Structure):
    """Part of OffsetFetch."""

    group_id: str
    member_id: str | None
    member_epoch: int
    topics: list[OffsetFetchRequestTopics] | None

    def __init__(
        self, group_id: str = "", member_id: str | None = None, member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequest(Structure):
    """OffsetFetch, versions 1-10."""

    group_id: str
    topics: list[OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequestGroup]
    require_stable: bool

    def __init__(
        self, group_id: str = "", topics: list[OffsetFetchRequestTopic] | None = ABSENT,
        groups: list[OffsetFetchRequestGroup] = ABSENT, require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics
        self.groups = [] if groups is ABSENT else groups
        self.require_stable = require_stable


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponsePartition(Structure):
    """Part of OffsetFetch."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

    def __init__(
        self, partition_index: int = 0, committed_offset: int = 0, committed_leader_epoch: int = -1,
        metadata: str | None = "", error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponseTopic(Structure):
    """Part of OffsetFetch."""

    name: str
    partitions: list[OffsetFetchResponsePartition]

    def __init__(
        self, name: str = "", partitions: list[OffsetFetchResponsePartition] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponsePartitions(Structure):
    """Part of OffsetFetch."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

    def __init__(
        self, partition_index: int = 0, committed_offset: int = 0, committed_leader_epoch: int = -1,
        metadata: str | None = "", error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponseTopics(Structure):
    """Part of OffsetFetch."""

    name: str
    topic_id: bytes
    partitions: list[OffsetFetchResponsePartitions]

    def __init__(
        self, name: str = "", topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponseGroup(Structure):
    """Part of OffsetFetch."""

    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: int

    def __init__(
        self, group_id: str = "", topics: list[OffsetFetchResponseTopics] = ABSENT,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponse(Structure):
    """OffsetFetch, versions 1-10."""

    throttle_time_ms: int
    topics: list[OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponseGroup]

    def __init__(
        self, throttle_time_ms: int = 0, topics: list[OffsetFetchResponseTopic] = ABSENT,
        error_code: int = 0, groups: list[OffsetFetchResponseGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics
        self.error_code = error_code
        self.groups = [] if groups is ABSENT else groups


def read_offset_fetch_request_topic(reader: Reader, version: int) -> OffsetFetchRequestTopic:
    message = OffsetFetchRequestTopic(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_offset_fetch_request_topic(
    writer: Writer, message: OffsetFetchRequestTopic, version: int
) -> None:
    writer.string(message.name)
    writer.values(message.partition_indexes, writer.int32)
    writer.no_tags()


def read_offset_fetch_request_topics(reader: Reader, version: int) -> OffsetFetchRequestTopics:
    message = OffsetFetchRequestTopics(
        reader.string() if version <= 9 else "",
        reader.uuid() if version >= 10 else ZERO_UUID,
        reader.values(reader.int32, 4),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_request_topics(
    writer: Writer, message: OffsetFetchRequestTopics, version: int
) -> None:
    if version <= 9:
        writer.string(message.name)
    if version >= 10:
        writer.uuid(message.topic_id)
    writer.values(message.partition_indexes, writer.int32)
    writer.no_tags()


def read_offset_fetch_request_group(reader: Reader, version: int) -> OffsetFetchRequestGroup:
    message = OffsetFetchRequestGroup(
        reader.string(),
        reader.optional_string() if version >= 9 else None,
        reader.int32() if version >= 9 else -1,
        reader.optional_array(read_offset_fetch_request_topics, version, 3),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_request_group(
    writer: Writer, message: OffsetFetchRequestGroup, version: int
) -> None:
    writer.string(message.group_id)
    if version >= 9:
        writer.optional_string(message.member_id)
    if version >= 9:
        writer.int32(message.member_epoch)
    writer.optional_array(message.topics, write_offset_fetch_request_topics, version)
    writer.no_tags()


def read_offset_fetch_request(reader: Reader, version: int) -> OffsetFetchRequest:
    message = OffsetFetchRequest(
        reader.string() if version <= 7 else "",
        (reader.optional_array(read_offset_fetch_request_topic, version, 3) if version >= 2 else reader.array(read_offset_fetch_request_topic, version, 3)) if version <= 7 else [],
        reader.array(read_offset_fetch_request_group, version, 3) if version >= 8 else [],
        reader.boolean() if version >= 7 else False,
    )
    reader.skip_tags()
    return message


def write_offset_fetch_request(writer: Writer, message: OffsetFetchRequest, version: int) -> None:
    if version <= 7:
        writer.string(message.group_id)
    if version <= 7:
        if version >= 2:
            writer.optional_array(message.topics, write_offset_fetch_request_topic, version)
        else:
            writer.array(required(message.topics, "OffsetFetchRequest.topics"), write_offset_fetch_request_topic, version)
    if version >= 8:
        writer.array(message.groups, write_offset_fetch_request_group, version)
    if version >= 7:
        writer.boolean(message.require_stable)
    writer.no_tags()


def read_offset_fetch_response_partition(
    reader: Reader, version: int
) -> OffsetFetchResponsePartition:
    message = OffsetFetchResponsePartition(
        reader.int32(),
        reader.int64(),
        reader.int32() if version >= 5 else -1,
        reader.optional_string(),
        reader.int16(),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_response_partition(
    writer: Writer, message: OffsetFetchResponsePartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.committed_offset)
    if version >= 5:
        writer.int32(message.committed_leader_epoch)
    writer.optional_string(message.metadata)
    writer.int16(message.error_code)
    writer.no_tags()


def read_offset_fetch_response_topic(reader: Reader, version: int) -> OffsetFetchResponseTopic:
    message = OffsetFetchResponseTopic(
        reader.string(),
        reader.array(read_offset_fetch_response_partition, version, 16),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_response_topic(
    writer: Writer, message: OffsetFetchResponseTopic, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_offset_fetch_response_partition, version)
    writer.no_tags()


def read_offset_fetch_response_partitions(
    reader: Reader, version: int
) -> OffsetFetchResponsePartitions:
    message = OffsetFetchResponsePartitions(
        reader.int32(),
        reader.int64(),
        reader.int32(),
        reader.optional_string(),
        reader.int16(),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_response_partitions(
    writer: Writer, message: OffsetFetchResponsePartitions, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.committed_offset)
    writer.int32(message.committed_leader_epoch)
    writer.optional_string(message.metadata)
    writer.int16(message.error_code)
    writer.no_tags()


def read_offset_fetch_response_topics(reader: Reader, version: int) -> OffsetFetchResponseTopics:
    message = OffsetFetchResponseTopics(
        reader.string() if version <= 9 else "",
        reader.uuid() if version >= 10 else ZERO_UUID,
        reader.array(read_offset_fetch_response_partitions, version, 20),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_response_topics(
    writer: Writer, message: OffsetFetchResponseTopics, version: int
) -> None:
    if version <= 9:
        writer.string(message.name)
    if version >= 10:
        writer.uuid(message.topic_id)
    writer.array(message.partitions, write_offset_fetch_response_partitions, version)
    writer.no_tags()


def read_offset_fetch_response_group(reader: Reader, version: int) -> OffsetFetchResponseGroup:
    message = OffsetFetchResponseGroup(
        reader.string(),
        reader.array(read_offset_fetch_response_topics, version, 3),
        reader.int16(),
    )
    reader.skip_tags()
    return message


def write_offset_fetch_response_group(
    writer: Writer, message: OffsetFetchResponseGroup, version: int
) -> None:
    writer.string(message.group_id)
    writer.array(message.topics, write_offset_fetch_response_topics, version)
    writer.int16(message.error_code)
    writer.no_tags()


def read_offset_fetch_response(reader: Reader, version: int) -> OffsetFetchResponse:
    message = OffsetFetchResponse(
        reader.int32() if version >= 3 else 0,
        reader.array(read_offset_fetch_response_topic, version, 3) if version <= 7 else [],
        reader.int16() if 2 <= version <= 7 else 0,
        reader.array(read_offset_fetch_response_group, version, 5) if version >= 8 else [],
    )
    reader.skip_tags()
    return message


def write_offset_fetch_response(writer: Writer, message: OffsetFetchResponse, version: int) -> None:
    if version >= 3:
        writer.int32(message.throttle_time_ms)
    if version <= 7:
        writer.array(message.topics, write_offset_fetch_response_topic, version)
    if 2 <= version <= 7:
        writer.int16(message.error_code)
    if version >= 8:
        writer.array(message.groups, write_offset_fetch_response_group, version)
    writer.no_tags()


OFFSET_FETCH = Api(
    9,
    "OffsetFetch",
    message_of_fields(
        "OffsetFetchRequest", (1, 10), 6, read_offset_fetch_request, write_offset_fetch_request,
        bounded=True,
    ),
    message_of_fields(
        "OffsetFetchResponse", (1, 10), 6, read_offset_fetch_response, write_offset_fetch_response
    ),
)
