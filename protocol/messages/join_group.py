"""JoinGroup: generated from join_group.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer, required


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupRequestProtocol(Structure):
    """Part of JoinGroup."""

    name: str
    metadata: bytes

    def __init__(self, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupRequest(Structure):
    """JoinGroup, versions 0-9."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    reason: str | None

    def __init__(
        self, group_id: str = "", session_timeout_ms: int = 0, rebalance_timeout_ms: int = -1,
        member_id: str = "", group_instance_id: str | None = None, protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = ABSENT, reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is ABSENT else protocols
        self.reason = reason


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupResponseMember(Structure):
    """Part of JoinGroup."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes

    def __init__(
        self, member_id: str = "", group_instance_id: str | None = None, metadata: bytes = b""
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupResponse(Structure):
    """JoinGroup, versions 0-9."""

    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponseMember]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, generation_id: int = -1,
        protocol_type: str | None = None, protocol_name: str | None = "", leader: str = "",
        skip_assignment: bool = False, member_id: str = "",
        members: list[JoinGroupResponseMember] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is ABSENT else members


def read_join_group_request_protocol(reader: Reader, version: int) -> JoinGroupRequestProtocol:
    message = JoinGroupRequestProtocol(reader.string(), reader.blob())
    reader.skip_tags()
    return message


def write_join_group_request_protocol(
    writer: Writer, message: JoinGroupRequestProtocol, version: int
) -> None:
    writer.string(message.name)
    writer.blob(message.metadata)
    writer.no_tags()


def read_join_group_request(reader: Reader, version: int) -> JoinGroupRequest:
    message = JoinGroupRequest(
        reader.string(),
        reader.int32(),
        reader.int32() if version >= 1 else -1,
        reader.string(),
        reader.optional_string() if version >= 5 else None,
        reader.string(),
        reader.array(read_join_group_request_protocol, version, 3),
        reader.optional_string() if version >= 8 else None,
    )
    reader.skip_tags()
    return message


def write_join_group_request(writer: Writer, message: JoinGroupRequest, version: int) -> None:
    writer.string(message.group_id)
    writer.int32(message.session_timeout_ms)
    if version >= 1:
        writer.int32(message.rebalance_timeout_ms)
    writer.string(message.member_id)
    if version >= 5:
        writer.optional_string(message.group_instance_id)
    writer.string(message.protocol_type)
    writer.array(message.protocols, write_join_group_request_protocol, version)
    if version >= 8:
        writer.optional_string(message.reason)
    writer.no_tags()


def read_join_group_response_member(reader: Reader, version: int) -> JoinGroupResponseMember:
    message = JoinGroupResponseMember(
        reader.string(),
        reader.optional_string() if version >= 5 else None,
        reader.blob(),
    )
    reader.skip_tags()
    return message


def write_join_group_response_member(
    writer: Writer, message: JoinGroupResponseMember, version: int
) -> None:
    writer.string(message.member_id)
    if version >= 5:
        writer.optional_string(message.group_instance_id)
    writer.blob(message.metadata)
    writer.no_tags()


def read_join_group_response(reader: Reader, version: int) -> JoinGroupResponse:
    message = JoinGroupResponse(
        reader.int32() if version >= 2 else 0,
        reader.int16(),
        reader.int32(),
        reader.optional_string() if version >= 7 else None,
        (reader.optional_string() if version >= 7 else reader.string()),
        reader.string(),
        reader.boolean() if version >= 9 else False,
        reader.string(),
        reader.array(read_join_group_response_member, version, 4),
    )
    reader.skip_tags()
    return message


def write_join_group_response(writer: Writer, message: JoinGroupResponse, version: int) -> None:
    if version >= 2:
        writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.int32(message.generation_id)
    if version >= 7:
        writer.optional_string(message.protocol_type)
    if version >= 7:
        writer.optional_string(message.protocol_name)
    else:
        writer.string(required(message.protocol_name, "JoinGroupResponse.protocol_name"))
    writer.string(message.leader)
    if version >= 9:
        writer.boolean(message.skip_assignment)
    writer.string(message.member_id)
    writer.array(message.members, write_join_group_response_member, version)
    writer.no_tags()


JOIN_GROUP = Api(
    11,
    "JoinGroup",
    message_of_fields(
        "JoinGroupRequest", (0, 9), 6, read_join_group_request, write_join_group_request, bounded=True
    ),
    message_of_fields(
        "JoinGroupResponse", (0, 9), 6, read_join_group_response, write_join_group_response
    ),
)
