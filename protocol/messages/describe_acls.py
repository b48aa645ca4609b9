"""DescribeAcls: generated from describe_acls.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeAclsRequest(Structure):
    """DescribeAcls, versions 1-3."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int

    def __init__(
        self, resource_type_filter: int = 0, resource_name_filter: str | None = "",
        pattern_type_filter: int = 3, principal_filter: str | None = "",
        host_filter: str | None = "", operation: int = 0, permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class AclDescription(Structure):
    """Part of DescribeAcls."""

    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self, principal: str = "", host: str = "", operation: int = 0, permission_type: int = 0
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeAclsResource(Structure):
    """Part of DescribeAcls."""

    resource_type: int
    resource_name: str
    pattern_type: int
    acls: list[AclDescription]

    def __init__(
        self, resource_type: int = 0, resource_name: str = "", pattern_type: int = 3,
        acls: list[AclDescription] = ABSENT,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is ABSENT else acls


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeAclsResponse(Structure):
    """DescribeAcls, versions 1-3."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResource]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        resources: list[DescribeAclsResource] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is ABSENT else resources


def read_describe_acls_request(reader: Reader, version: int) -> DescribeAclsRequest:
    message = DescribeAclsRequest(
        reader.int8(),
        reader.optional_string(),
        reader.int8(),
        reader.optional_string(),
        reader.optional_string(),
        reader.int8(),
        reader.int8(),
    )
    reader.skip_tags()
    return message


def write_describe_acls_request(writer: Writer, message: DescribeAclsRequest, version: int) -> None:
    writer.int8(message.resource_type_filter)
    writer.optional_string(message.resource_name_filter)
    writer.int8(message.pattern_type_filter)
    writer.optional_string(message.principal_filter)
    writer.optional_string(message.host_filter)
    writer.int8(message.operation)
    writer.int8(message.permission_type)
    writer.no_tags()


def read_acl_description(reader: Reader, version: int) -> AclDescription:
    message = AclDescription(reader.string(), reader.string(), reader.int8(), reader.int8())
    reader.skip_tags()
    return message


def write_acl_description(writer: Writer, message: AclDescription, version: int) -> None:
    writer.string(message.principal)
    writer.string(message.host)
    writer.int8(message.operation)
    writer.int8(message.permission_type)
    writer.no_tags()


def read_describe_acls_resource(reader: Reader, version: int) -> DescribeAclsResource:
    message = DescribeAclsResource(
        reader.int8(),
        reader.string(),
        reader.int8(),
        reader.array(read_acl_description, version, 5),
    )
    reader.skip_tags()
    return message


def write_describe_acls_resource(
    writer: Writer, message: DescribeAclsResource, version: int
) -> None:
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.int8(message.pattern_type)
    writer.array(message.acls, write_acl_description, version)
    writer.no_tags()


def read_describe_acls_response(reader: Reader, version: int) -> DescribeAclsResponse:
    message = DescribeAclsResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_describe_acls_resource, version, 5),
    )
    reader.skip_tags()
    return message


def write_describe_acls_response(
    writer: Writer, message: DescribeAclsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.resources, write_describe_acls_resource, version)
    writer.no_tags()


DESCRIBE_ACLS = Api(
    29,
    "DescribeAcls",
    message_of_fields(
        "DescribeAclsRequest", (1, 3), 2, read_describe_acls_request, write_describe_acls_request,
        bounded=True,
    ),
    message_of_fields(
        "DescribeAclsResponse", (1, 3), 2, read_describe_acls_response, write_describe_acls_response
    ),
)
