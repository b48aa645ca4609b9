"""DescribeGroups: generated from describe_groups.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeGroupsRequest(Structure):
    """DescribeGroups, versions 0-6."""

    groups: list[str]
    include_authorized_operations: bool

    def __init__(
        self, groups: list[str] = ABSENT, include_authorized_operations: bool = False
    ) -> None:
        self.groups = [] if groups is ABSENT else groups
        self.include_authorized_operations = include_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroupMember(Structure):
    """Part of DescribeGroups."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

    def __init__(
        self, member_id: str = "", group_instance_id: str | None = None, client_id: str = "",
        client_host: str = "", member_metadata: bytes = b"", member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroup(Structure):
    """Part of DescribeGroups."""

    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[DescribedGroupMember]
    authorized_operations: int

    def __init__(
        self, error_code: int = 0, error_message: str | None = None, group_id: str = "",
        group_state: str = "", protocol_type: str = "", protocol_data: str = "",
        members: list[DescribedGroupMember] = ABSENT, authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is ABSENT else members
        self.authorized_operations = authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeGroupsResponse(Structure):
    """DescribeGroups, versions 0-6."""

    throttle_time_ms: int
    groups: list[DescribedGroup]

    def __init__(self, throttle_time_ms: int = 0, groups: list[DescribedGroup] = ABSENT) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def read_describe_groups_request(reader: Reader, version: int) -> DescribeGroupsRequest:
    message = DescribeGroupsRequest(
        reader.values(reader.string, 1),
        reader.boolean() if version >= 3 else False,
    )
    reader.skip_tags()
    return message


def write_describe_groups_request(
    writer: Writer, message: DescribeGroupsRequest, version: int
) -> None:
    writer.values(message.groups, writer.string)
    if version >= 3:
        writer.boolean(message.include_authorized_operations)
    writer.no_tags()


def read_described_group_member(reader: Reader, version: int) -> DescribedGroupMember:
    message = DescribedGroupMember(
        reader.string(),
        reader.optional_string() if version >= 4 else None,
        reader.string(),
        reader.string(),
        reader.blob(),
        reader.blob(),
    )
    reader.skip_tags()
    return message


def write_described_group_member(
    writer: Writer, message: DescribedGroupMember, version: int
) -> None:
    writer.string(message.member_id)
    if version >= 4:
        writer.optional_string(message.group_instance_id)
    writer.string(message.client_id)
    writer.string(message.client_host)
    writer.blob(message.member_metadata)
    writer.blob(message.member_assignment)
    writer.no_tags()


def read_described_group(reader: Reader, version: int) -> DescribedGroup:
    message = DescribedGroup(
        reader.int16(),
        reader.optional_string() if version >= 6 else None,
        reader.string(),
        reader.string(),
        reader.string(),
        reader.string(),
        reader.array(read_described_group_member, version, 7),
        reader.int32() if version >= 3 else -2147483648,
    )
    reader.skip_tags()
    return message


def write_described_group(writer: Writer, message: DescribedGroup, version: int) -> None:
    writer.int16(message.error_code)
    if version >= 6:
        writer.optional_string(message.error_message)
    writer.string(message.group_id)
    writer.string(message.group_state)
    writer.string(message.protocol_type)
    writer.string(message.protocol_data)
    writer.array(message.members, write_described_group_member, version)
    if version >= 3:
        writer.int32(message.authorized_operations)
    writer.no_tags()


def read_describe_groups_response(reader: Reader, version: int) -> DescribeGroupsResponse:
    message = DescribeGroupsResponse(
        reader.int32() if version >= 1 else 0,
        reader.array(read_described_group, version, 12),
    )
    reader.skip_tags()
    return message


def write_describe_groups_response(
    writer: Writer, message: DescribeGroupsResponse, version: int
) -> None:
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    writer.array(message.groups, write_described_group, version)
    writer.no_tags()


DESCRIBE_GROUPS = Api(
    15,
    "DescribeGroups",
    message_of_fields(
        "DescribeGroupsRequest", (0, 6), 5, read_describe_groups_request, write_describe_groups_request,
        bounded=True,
    ),
    message_of_fields(
        "DescribeGroupsResponse", (0, 6), 5, read_describe_groups_response,
        write_describe_groups_response,
    ),
)
