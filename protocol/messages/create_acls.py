"""CreateAcls: generated from create_acls.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class AclCreation(Structure):
    """Part of CreateAcls."""

    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self, resource_type: int = 0, resource_name: str = "", resource_pattern_type: int = 3,
        principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateAclsRequest(Structure):
    """CreateAcls, versions 1-3."""

    creations: list[AclCreation]

    def __init__(self, creations: list[AclCreation] = ABSENT) -> None:
        self.creations = [] if creations is ABSENT else creations


@dataclass(slots=True, init=False, repr=False, eq=False)
class AclCreationResult(Structure):
    """Part of CreateAcls."""

    error_code: int
    error_message: str | None

    def __init__(self, error_code: int = 0, error_message: str | None = "") -> None:
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateAclsResponse(Structure):
    """CreateAcls, versions 1-3."""

    throttle_time_ms: int
    results: list[AclCreationResult]

    def __init__(
        self, throttle_time_ms: int = 0, results: list[AclCreationResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def read_acl_creation(reader: Reader, version: int) -> AclCreation:
    message = AclCreation(
        reader.int8(),
        reader.string(),
        reader.int8(),
        reader.string(),
        reader.string(),
        reader.int8(),
        reader.int8(),
    )
    reader.skip_tags()
    return message


def write_acl_creation(writer: Writer, message: AclCreation, version: int) -> None:
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.int8(message.resource_pattern_type)
    writer.string(message.principal)
    writer.string(message.host)
    writer.int8(message.operation)
    writer.int8(message.permission_type)
    writer.no_tags()


def read_create_acls_request(reader: Reader, version: int) -> CreateAclsRequest:
    message = CreateAclsRequest(reader.array(read_acl_creation, version, 8))
    reader.skip_tags()
    return message


def write_create_acls_request(writer: Writer, message: CreateAclsRequest, version: int) -> None:
    writer.array(message.creations, write_acl_creation, version)
    writer.no_tags()


def read_acl_creation_result(reader: Reader, version: int) -> AclCreationResult:
    message = AclCreationResult(reader.int16(), reader.optional_string())
    reader.skip_tags()
    return message


def write_acl_creation_result(writer: Writer, message: AclCreationResult, version: int) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_create_acls_response(reader: Reader, version: int) -> CreateAclsResponse:
    message = CreateAclsResponse(reader.int32(), reader.array(read_acl_creation_result, version, 4))
    reader.skip_tags()
    return message


def write_create_acls_response(writer: Writer, message: CreateAclsResponse, version: int) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.results, write_acl_creation_result, version)
    writer.no_tags()


CREATE_ACLS = Api(
    30,
    "CreateAcls",
    message_of_fields(
        "CreateAclsRequest", (1, 3), 2, read_create_acls_request, write_create_acls_request,
        bounded=True,
    ),
    message_of_fields(
        "CreateAclsResponse", (1, 3), 2, read_create_acls_response, write_create_acls_response
    ),
)
