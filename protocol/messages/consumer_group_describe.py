"""ConsumerGroupDescribe: generated from consumer_group_describe.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupDescribeRequest(Structure):
    """ConsumerGroupDescribe, versions 0-1."""

    group_ids: list[str]
    include_authorized_operations: bool

    def __init__(
        self, group_ids: list[str] = ABSENT, include_authorized_operations: bool = False
    ) -> None:
        self.group_ids = [] if group_ids is ABSENT else group_ids
        self.include_authorized_operations = include_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ConsumerGroupDescribe."""

    topic_id: bytes
    topic_name: str
    partitions: list[int]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, topic_name: str = "", partitions: list[int] = ABSENT
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class Assignment(Structure):
    """Part of ConsumerGroupDescribe."""

    topic_partitions: list[TopicPartitions]

    def __init__(self, topic_partitions: list[TopicPartitions] = ABSENT) -> None:
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class Member(Structure):
    """Part of ConsumerGroupDescribe."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    assignment: Assignment
    target_assignment: Assignment
    member_type: int

    def __init__(
        self, member_id: str = "", instance_id: str | None = None, rack_id: str | None = None,
        member_epoch: int = 0, client_id: str = "", client_host: str = "",
        subscribed_topic_names: list[str] = ABSENT, subscribed_topic_regex: str | None = None,
        assignment: Assignment = ABSENT, target_assignment: Assignment = ABSENT,
        member_type: int = -1,
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is ABSENT else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = Assignment() if assignment is ABSENT else assignment
        self.target_assignment = Assignment() if target_assignment is ABSENT else target_assignment
        self.member_type = member_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroup(Structure):
    """Part of ConsumerGroupDescribe."""

    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: list[Member]
    authorized_operations: int

    def __init__(
        self, error_code: int = 0, error_message: str | None = None, group_id: str = "",
        group_state: str = "", group_epoch: int = 0, assignment_epoch: int = 0,
        assignor_name: str = "", members: list[Member] = ABSENT,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is ABSENT else members
        self.authorized_operations = authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupDescribeResponse(Structure):
    """ConsumerGroupDescribe, versions 0-1."""

    throttle_time_ms: int
    groups: list[DescribedGroup]

    def __init__(self, throttle_time_ms: int = 0, groups: list[DescribedGroup] = ABSENT) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def read_consumer_group_describe_request(
    reader: Reader, version: int
) -> ConsumerGroupDescribeRequest:
    message = ConsumerGroupDescribeRequest(reader.values(reader.string, 1), reader.boolean())
    reader.skip_tags()
    return message


def write_consumer_group_describe_request(
    writer: Writer, message: ConsumerGroupDescribeRequest, version: int
) -> None:
    writer.values(message.group_ids, writer.string)
    writer.boolean(message.include_authorized_operations)
    writer.no_tags()


def read_topic_partitions(reader: Reader, version: int) -> TopicPartitions:
    message = TopicPartitions(reader.uuid(), reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_partitions(writer: Writer, message: TopicPartitions, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.string(message.topic_name)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_assignment(reader: Reader, version: int) -> Assignment:
    message = Assignment(reader.array(read_topic_partitions, version, 19))
    reader.skip_tags()
    return message


def write_assignment(writer: Writer, message: Assignment, version: int) -> None:
    writer.array(message.topic_partitions, write_topic_partitions, version)
    writer.no_tags()


def read_member(reader: Reader, version: int) -> Member:
    message = Member(
        reader.string(),
        reader.optional_string(),
        reader.optional_string(),
        reader.int32(),
        reader.string(),
        reader.string(),
        reader.values(reader.string, 1),
        reader.optional_string(),
        read_assignment(reader, version),
        read_assignment(reader, version),
        reader.int8() if version >= 1 else -1,
    )
    reader.skip_tags()
    return message


def write_member(writer: Writer, message: Member, version: int) -> None:
    writer.string(message.member_id)
    writer.optional_string(message.instance_id)
    writer.optional_string(message.rack_id)
    writer.int32(message.member_epoch)
    writer.string(message.client_id)
    writer.string(message.client_host)
    writer.values(message.subscribed_topic_names, writer.string)
    writer.optional_string(message.subscribed_topic_regex)
    write_assignment(writer, message.assignment, version)
    write_assignment(writer, message.target_assignment, version)
    if version >= 1:
        writer.int8(message.member_type)
    writer.no_tags()


def read_described_group(reader: Reader, version: int) -> DescribedGroup:
    message = DescribedGroup(
        reader.int16(),
        reader.optional_string(),
        reader.string(),
        reader.string(),
        reader.int32(),
        reader.int32(),
        reader.string(),
        reader.array(read_member, version, 16),
        reader.int32(),
    )
    reader.skip_tags()
    return message


def write_described_group(writer: Writer, message: DescribedGroup, version: int) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.string(message.group_id)
    writer.string(message.group_state)
    writer.int32(message.group_epoch)
    writer.int32(message.assignment_epoch)
    writer.string(message.assignor_name)
    writer.array(message.members, write_member, version)
    writer.int32(message.authorized_operations)
    writer.no_tags()


def read_consumer_group_describe_response(
    reader: Reader, version: int
) -> ConsumerGroupDescribeResponse:
    message = ConsumerGroupDescribeResponse(
        reader.int32(),
        reader.array(read_described_group, version, 20),
    )
    reader.skip_tags()
    return message


def write_consumer_group_describe_response(
    writer: Writer, message: ConsumerGroupDescribeResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.groups, write_described_group, version)
    writer.no_tags()


CONSUMER_GROUP_DESCRIBE = Api(
    69,
    "ConsumerGroupDescribe",
    message_of_fields(
        "ConsumerGroupDescribeRequest", (0, 1), 0, read_consumer_group_describe_request,
        write_consumer_group_describe_request, bounded=True,
    ),
    message_of_fields(
        "ConsumerGroupDescribeResponse", (0, 1), 0, read_consumer_group_describe_response,
        write_consumer_group_describe_response,
    ),
)
