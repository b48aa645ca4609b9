"""FindCoordinator: generated from find_coordinator.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class FindCoordinatorRequest(Structure):
    """FindCoordinator, versions 0-6."""

    key: str
    key_type: int
    coordinator_keys: list[str]

    def __init__(
        self, key: str = "", key_type: int = 0, coordinator_keys: list[str] = ABSENT
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is ABSENT else coordinator_keys


@dataclass(slots=True, init=False, repr=False, eq=False)
class Coordinator(Structure):
    """Part of FindCoordinator."""

    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None

    def __init__(
        self, key: str = "", node_id: int = 0, host: str = "", port: int = 0, error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class FindCoordinatorResponse(Structure):
    """FindCoordinator, versions 0-6."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[Coordinator]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        node_id: int = 0, host: str = "", port: int = 0, coordinators: list[Coordinator] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is ABSENT else coordinators


def read_find_coordinator_request(reader: Reader, version: int) -> FindCoordinatorRequest:
    message = FindCoordinatorRequest(
        reader.string() if version <= 3 else "",
        reader.int8() if version >= 1 else 0,
        reader.values(reader.string, 1) if version >= 4 else [],
    )
    reader.skip_tags()
    return message


def write_find_coordinator_request(
    writer: Writer, message: FindCoordinatorRequest, version: int
) -> None:
    if version <= 3:
        writer.string(message.key)
    if version >= 1:
        writer.int8(message.key_type)
    if version >= 4:
        writer.values(message.coordinator_keys, writer.string)
    writer.no_tags()


def read_coordinator(reader: Reader, version: int) -> Coordinator:
    message = Coordinator(
        reader.string(),
        reader.int32(),
        reader.string(),
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_coordinator(writer: Writer, message: Coordinator, version: int) -> None:
    writer.string(message.key)
    writer.int32(message.node_id)
    writer.string(message.host)
    writer.int32(message.port)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_find_coordinator_response(reader: Reader, version: int) -> FindCoordinatorResponse:
    message = FindCoordinatorResponse(
        reader.int32() if version >= 1 else 0,
        reader.int16() if version <= 3 else 0,
        reader.optional_string() if 1 <= version <= 3 else "",
        reader.int32() if version <= 3 else 0,
        reader.string() if version <= 3 else "",
        reader.int32() if version <= 3 else 0,
        reader.array(read_coordinator, version, 14) if version >= 4 else [],
    )
    reader.skip_tags()
    return message


def write_find_coordinator_response(
    writer: Writer, message: FindCoordinatorResponse, version: int
) -> None:
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    if version <= 3:
        writer.int16(message.error_code)
    if 1 <= version <= 3:
        writer.optional_string(message.error_message)
    if version <= 3:
        writer.int32(message.node_id)
    if version <= 3:
        writer.string(message.host)
    if version <= 3:
        writer.int32(message.port)
    if version >= 4:
        writer.array(message.coordinators, write_coordinator, version)
    writer.no_tags()


FIND_COORDINATOR = Api(
    10,
    "FindCoordinator",
    message_of_fields(
        "FindCoordinatorRequest", (0, 6), 3, read_find_coordinator_request,
        write_find_coordinator_request, bounded=True,
    ),
    message_of_fields(
        "FindCoordinatorResponse", (0, 6), 3, read_find_coordinator_response,
        write_find_coordinator_response,
    ),
)
