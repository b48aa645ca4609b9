"""LeaveGroup: generated from leave_group.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class MemberIdentity(Structure):
    """Part of LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    reason: str | None

    def __init__(
        self, member_id: str = "", group_instance_id: str | None = None, reason: str | None = None
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaveGroupRequest(Structure):
    """LeaveGroup, versions 0-5."""

    group_id: str
    member_id: str
    members: list[MemberIdentity]

    def __init__(
        self, group_id: str = "", member_id: str = "", members: list[MemberIdentity] = ABSENT
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is ABSENT else members


@dataclass(slots=True, init=False, repr=False, eq=False)
class MemberResponse(Structure):
    """Part of LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    error_code: int

    def __init__(
        self, member_id: str = "", group_instance_id: str | None = "", error_code: int = 0
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaveGroupResponse(Structure):
    """LeaveGroup, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    members: list[MemberResponse]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, members: list[MemberResponse] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is ABSENT else members


def read_member_identity(reader: Reader, version: int) -> MemberIdentity:
    message = MemberIdentity(
        reader.string(),
        reader.optional_string(),
        reader.optional_string() if version >= 5 else None,
    )
    reader.skip_tags()
    return message


def write_member_identity(writer: Writer, message: MemberIdentity, version: int) -> None:
    writer.string(message.member_id)
    writer.optional_string(message.group_instance_id)
    if version >= 5:
        writer.optional_string(message.reason)
    writer.no_tags()


def read_leave_group_request(reader: Reader, version: int) -> LeaveGroupRequest:
    message = LeaveGroupRequest(
        reader.string(),
        reader.string() if version <= 2 else "",
        reader.array(read_member_identity, version, 3) if version >= 3 else [],
    )
    reader.skip_tags()
    return message


def write_leave_group_request(writer: Writer, message: LeaveGroupRequest, version: int) -> None:
    writer.string(message.group_id)
    if version <= 2:
        writer.string(message.member_id)
    if version >= 3:
        writer.array(message.members, write_member_identity, version)
    writer.no_tags()


def read_member_response(reader: Reader, version: int) -> MemberResponse:
    message = MemberResponse(reader.string(), reader.optional_string(), reader.int16())
    reader.skip_tags()
    return message


def write_member_response(writer: Writer, message: MemberResponse, version: int) -> None:
    writer.string(message.member_id)
    writer.optional_string(message.group_instance_id)
    writer.int16(message.error_code)
    writer.no_tags()


def read_leave_group_response(reader: Reader, version: int) -> LeaveGroupResponse:
    message = LeaveGroupResponse(
        reader.int32() if version >= 1 else 0,
        reader.int16(),
        reader.array(read_member_response, version, 5) if version >= 3 else [],
    )
    reader.skip_tags()
    return message


def write_leave_group_response(writer: Writer, message: LeaveGroupResponse, version: int) -> None:
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    if version >= 3:
        writer.array(message.members, write_member_response, version)
    writer.no_tags()


LEAVE_GROUP = Api(
    13,
    "LeaveGroup",
    message_of_fields(
        "LeaveGroupRequest", (0, 5), 4, read_leave_group_request, write_leave_group_request,
        bounded=True,
    ),
    message_of_fields(
        "LeaveGroupResponse", (0, 5), 4, read_leave_group_response, write_leave_group_response
    ),
)
