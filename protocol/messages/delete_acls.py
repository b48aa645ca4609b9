"""DeleteAcls: generated from delete_acls.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsFilter(Structure):
    """Part of DeleteAcls."""

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
class DeleteAclsRequest(Structure):
    """DeleteAcls, versions 1-3."""

    filters: list[DeleteAclsFilter]

    def __init__(self, filters: list[DeleteAclsFilter] = ABSENT) -> None:
        self.filters = [] if filters is ABSENT else filters


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsMatchingAcl(Structure):
    """Part of DeleteAcls."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self, error_code: int = 0, error_message: str | None = "", resource_type: int = 0,
        resource_name: str = "", pattern_type: int = 3, principal: str = "", host: str = "",
        operation: int = 0, permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsFilterResult(Structure):
    """Part of DeleteAcls."""

    error_code: int
    error_message: str | None
    matching_acls: list[DeleteAclsMatchingAcl]

    def __init__(
        self, error_code: int = 0, error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is ABSENT else matching_acls


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsResponse(Structure):
    """DeleteAcls, versions 1-3."""

    throttle_time_ms: int
    filter_results: list[DeleteAclsFilterResult]

    def __init__(
        self, throttle_time_ms: int = 0, filter_results: list[DeleteAclsFilterResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is ABSENT else filter_results


def read_delete_acls_filter(reader: Reader, version: int) -> DeleteAclsFilter:
    message = DeleteAclsFilter(
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


def write_delete_acls_filter(writer: Writer, message: DeleteAclsFilter, version: int) -> None:
    writer.int8(message.resource_type_filter)
    writer.optional_string(message.resource_name_filter)
    writer.int8(message.pattern_type_filter)
    writer.optional_string(message.principal_filter)
    writer.optional_string(message.host_filter)
    writer.int8(message.operation)
    writer.int8(message.permission_type)
    writer.no_tags()


def read_delete_acls_request(reader: Reader, version: int) -> DeleteAclsRequest:
    message = DeleteAclsRequest(reader.array(read_delete_acls_filter, version, 8))
    reader.skip_tags()
    return message


def write_delete_acls_request(writer: Writer, message: DeleteAclsRequest, version: int) -> None:
    writer.array(message.filters, write_delete_acls_filter, version)
    writer.no_tags()


def read_delete_acls_matching_acl(reader: Reader, version: int) -> DeleteAclsMatchingAcl:
    message = DeleteAclsMatchingAcl(
        reader.int16(),
        reader.optional_string(),
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


def write_delete_acls_matching_acl(
    writer: Writer, message: DeleteAclsMatchingAcl, version: int
) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.int8(message.pattern_type)
    writer.string(message.principal)
    writer.string(message.host)
    writer.int8(message.operation)
    writer.int8(message.permission_type)
    writer.no_tags()


def read_delete_acls_filter_result(reader: Reader, version: int) -> DeleteAclsFilterResult:
    message = DeleteAclsFilterResult(
        reader.int16(),
        reader.optional_string(),
        reader.array(read_delete_acls_matching_acl, version, 11),
    )
    reader.skip_tags()
    return message


def write_delete_acls_filter_result(
    writer: Writer, message: DeleteAclsFilterResult, version: int
) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.matching_acls, write_delete_acls_matching_acl, version)
    writer.no_tags()


def read_delete_acls_response(reader: Reader, version: int) -> DeleteAclsResponse:
    message = DeleteAclsResponse(
        reader.int32(),
        reader.array(read_delete_acls_filter_result, version, 5),
    )
    reader.skip_tags()
    return message


def write_delete_acls_response(writer: Writer, message: DeleteAclsResponse, version: int) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.filter_results, write_delete_acls_filter_result, version)
    writer.no_tags()


DELETE_ACLS = Api(
    31,
    "DeleteAcls",
    message_of_fields(
        "DeleteAclsRequest", (1, 3), 2, read_delete_acls_request, write_delete_acls_request,
        bounded=True,
    ),
    message_of_fields(
        "DeleteAclsResponse", (1, 3), 2, read_delete_acls_response, write_delete_acls_response
    ),
)
