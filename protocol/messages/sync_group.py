"""SyncGroup: generated from sync_group.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class SyncGroupRequestAssignment(Structure):
    """Part of SyncGroup."""

    member_id: str
    assignment: bytes

    def __init__(self, member_id: str = "", assignment: bytes = b"") -> None:
        self.member_id = member_id
        self.assignment = assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class SyncGroupRequest(Structure):
    """SyncGroup, versions 0-5."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequestAssignment]

    def __init__(
        self, group_id: str = "", generation_id: int = 0, member_id: str = "",
        group_instance_id: str | None = None, protocol_type: str | None = None,
        protocol_name: str | None = None, assignments: list[SyncGroupRequestAssignment] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is ABSENT else assignments


@dataclass(slots=True, init=False, repr=False, eq=False)
class SyncGroupResponse(Structure):
    """SyncGroup, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, protocol_type: str | None = None,
        protocol_name: str | None = None, assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment


def read_sync_group_request_assignment(reader: Reader, version: int) -> SyncGroupRequestAssignment:
    message = SyncGroupRequestAssignment(reader.string(), reader.blob())
    reader.skip_tags()
    return message


def write_sync_group_request_assignment(
    writer: Writer, message: SyncGroupRequestAssignment, version: int
) -> None:
    writer.string(message.member_id)
    writer.blob(message.assignment)
    writer.no_tags()


def read_sync_group_request(reader: Reader, version: int) -> SyncGroupRequest:
    message = SyncGroupRequest(
        reader.string(),
        reader.int32(),
        reader.string(),
        reader.optional_string() if version >= 3 else None,
        reader.optional_string() if version >= 5 else None,
        reader.optional_string() if version >= 5 else None,
        reader.array(read_sync_group_request_assignment, version, 3),
    )
    reader.skip_tags()
    return message


def write_sync_group_request(writer: Writer, message: SyncGroupRequest, version: int) -> None:
    writer.string(message.group_id)
    writer.int32(message.generation_id)
    writer.string(message.member_id)
    if version >= 3:
        writer.optional_string(message.group_instance_id)
    if version >= 5:
        writer.optional_string(message.protocol_type)
    if version >= 5:
        writer.optional_string(message.protocol_name)
    writer.array(message.assignments, write_sync_group_request_assignment, version)
    writer.no_tags()


def read_sync_group_response(reader: Reader, version: int) -> SyncGroupResponse:
    message = SyncGroupResponse(
        reader.int32() if version >= 1 else 0,
        reader.int16(),
        reader.optional_string() if version >= 5 else None,
        reader.optional_string() if version >= 5 else None,
        reader.blob(),
    )
    reader.skip_tags()
    return message


def write_sync_group_response(writer: Writer, message: SyncGroupResponse, version: int) -> None:
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    if version >= 5:
        writer.optional_string(message.protocol_type)
    if version >= 5:
        writer.optional_string(message.protocol_name)
    writer.blob(message.assignment)
    writer.no_tags()


SYNC_GROUP = Api(
    14,
    "SyncGroup",
    message_of_fields(
        "SyncGroupRequest", (0, 5), 4, read_sync_group_request, write_sync_group_request, bounded=True
    ),
    message_of_fields(
        "SyncGroupResponse", (0, 5), 4, read_sync_group_response, write_sync_group_response
    ),
)
