"""Heartbeat: generated from heartbeat.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class HeartbeatRequest(Structure):
    """Heartbeat, versions 0-4."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

    def __init__(
        self, group_id: str = "", generation_id: int = 0, member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class HeartbeatResponse(Structure):
    """Heartbeat, versions 0-4."""

    throttle_time_ms: int
    error_code: int

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def read_heartbeat_request(reader: Reader, version: int) -> HeartbeatRequest:
    message = HeartbeatRequest(
        reader.string(),
        reader.int32(),
        reader.string(),
        reader.optional_string() if version >= 3 else None,
    )
    reader.skip_tags()
    return message


def write_heartbeat_request(writer: Writer, message: HeartbeatRequest, version: int) -> None:
    writer.string(message.group_id)
    writer.int32(message.generation_id)
    writer.string(message.member_id)
    if version >= 3:
        writer.optional_string(message.group_instance_id)
    writer.no_tags()


def read_heartbeat_response(reader: Reader, version: int) -> HeartbeatResponse:
    message = HeartbeatResponse(reader.int32() if version >= 1 else 0, reader.int16())
    reader.skip_tags()
    return message


def write_heartbeat_response(writer: Writer, message: HeartbeatResponse, version: int) -> None:
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.no_tags()


HEARTBEAT = Api(
    12,
    "Heartbeat",
    message_of_fields(
        "HeartbeatRequest", (0, 4), 4, read_heartbeat_request, write_heartbeat_request, bounded=True
    ),
    message_of_fields("HeartbeatResponse", (0, 4), 4, read_heartbeat_response, write_heartbeat_response),
)
