"""ShareGroupHeartbeat: generated from share_group_heartbeat.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupHeartbeatRequest(Structure):
    """ShareGroupHeartbeat, versions 1-1."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None

    def __init__(
        self, group_id: str = "", member_id: str = "", member_epoch: int = 0,
        rack_id: str | None = None, subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ShareGroupHeartbeat."""

    topic_id: bytes
    partitions: list[int]

    def __init__(self, topic_id: bytes = ZERO_UUID, partitions: list[int] = ABSENT) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class Assignment(Structure):
    """Part of ShareGroupHeartbeat."""

    topic_partitions: list[TopicPartitions]

    def __init__(self, topic_partitions: list[TopicPartitions] = ABSENT) -> None:
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupHeartbeatResponse(Structure):
    """ShareGroupHeartbeat, versions 1-1."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        member_id: str | None = None, member_epoch: int = 0, heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment


def read_share_group_heartbeat_request(reader: Reader, version: int) -> ShareGroupHeartbeatRequest:
    message = ShareGroupHeartbeatRequest(
        reader.string(),
        reader.string(),
        reader.int32(),
        reader.optional_string(),
        reader.optional_values(reader.string, 1),
    )
    reader.skip_tags()
    return message


def write_share_group_heartbeat_request(
    writer: Writer, message: ShareGroupHeartbeatRequest, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)
    writer.int32(message.member_epoch)
    writer.optional_string(message.rack_id)
    writer.optional_values(message.subscribed_topic_names, writer.string)
    writer.no_tags()


def read_topic_partitions(reader: Reader, version: int) -> TopicPartitions:
    message = TopicPartitions(reader.uuid(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_partitions(writer: Writer, message: TopicPartitions, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_assignment(reader: Reader, version: int) -> Assignment:
    message = Assignment(reader.array(read_topic_partitions, version, 18))
    reader.skip_tags()
    return message


def write_assignment(writer: Writer, message: Assignment, version: int) -> None:
    writer.array(message.topic_partitions, write_topic_partitions, version)
    writer.no_tags()


def read_share_group_heartbeat_response(
    reader: Reader, version: int
) -> ShareGroupHeartbeatResponse:
    message = ShareGroupHeartbeatResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.optional_string(),
        reader.int32(),
        reader.int32(),
        reader.optional(read_assignment, version),
    )
    reader.skip_tags()
    return message


def write_share_group_heartbeat_response(
    writer: Writer, message: ShareGroupHeartbeatResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.optional_string(message.member_id)
    writer.int32(message.member_epoch)
    writer.int32(message.heartbeat_interval_ms)
    writer.optional(message.assignment, write_assignment, version)
    writer.no_tags()


SHARE_GROUP_HEARTBEAT = Api(
    76,
    "ShareGroupHeartbeat",
    message_of_fields(
        "ShareGroupHeartbeatRequest", (1, 1), 1, read_share_group_heartbeat_request,
        write_share_group_heartbeat_request, bounded=True,
    ),
    message_of_fields(
        "ShareGroupHeartbeatResponse", (1, 1), 1, read_share_group_heartbeat_response,
        write_share_group_heartbeat_response,
    ),
)
