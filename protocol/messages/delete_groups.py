"""DeleteGroups: generated from delete_groups.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteGroupsRequest(Structure):
    """DeleteGroups, versions 0-2."""

    groups_names: list[str]

    def __init__(self, groups_names: list[str] = ABSENT) -> None:
        self.groups_names = [] if groups_names is ABSENT else groups_names


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeletableGroupResult(Structure):
    """Part of DeleteGroups."""

    group_id: str
    error_code: int

    def __init__(self, group_id: str = "", error_code: int = 0) -> None:
        self.group_id = group_id
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteGroupsResponse(Structure):
    """DeleteGroups, versions 0-2."""

    throttle_time_ms: int
    results: list[DeletableGroupResult]

    def __init__(
        self, throttle_time_ms: int = 0, results: list[DeletableGroupResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def read_delete_groups_request(reader: Reader, version: int) -> DeleteGroupsRequest:
    message = DeleteGroupsRequest(reader.values(reader.string, 1))
    reader.skip_tags()
    return message


def write_delete_groups_request(writer: Writer, message: DeleteGroupsRequest, version: int) -> None:
    writer.values(message.groups_names, writer.string)
    writer.no_tags()


def read_deletable_group_result(reader: Reader, version: int) -> DeletableGroupResult:
    message = DeletableGroupResult(reader.string(), reader.int16())
    reader.skip_tags()
    return message


def write_deletable_group_result(
    writer: Writer, message: DeletableGroupResult, version: int
) -> None:
    writer.string(message.group_id)
    writer.int16(message.error_code)
    writer.no_tags()


def read_delete_groups_response(reader: Reader, version: int) -> DeleteGroupsResponse:
    message = DeleteGroupsResponse(
        reader.int32(),
        reader.array(read_deletable_group_result, version, 4),
    )
    reader.skip_tags()
    return message


def write_delete_groups_response(
    writer: Writer, message: DeleteGroupsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.results, write_deletable_group_result, version)
    writer.no_tags()


DELETE_GROUPS = Api(
    42,
    "DeleteGroups",
    message_of_fields(
        "DeleteGroupsRequest", (0, 2), 2, read_delete_groups_request, write_delete_groups_request,
        bounded=True,
    ),
    message_of_fields(
        "DeleteGroupsResponse", (0, 2), 2, read_delete_groups_response, write_delete_groups_response
    ),
)
