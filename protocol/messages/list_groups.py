"""ListGroups: generated from list_groups.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListGroupsRequest(Structure):
    """ListGroups, versions 0-5."""

    states_filter: list[str]
    types_filter: list[str]

    def __init__(self, states_filter: list[str] = ABSENT, types_filter: list[str] = ABSENT) -> None:
        self.states_filter = [] if states_filter is ABSENT else states_filter
        self.types_filter = [] if types_filter is ABSENT else types_filter


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListedGroup(Structure):
    """Part of ListGroups."""

    group_id: str
    protocol_type: str
    group_state: str
    group_type: str

    def __init__(
        self, group_id: str = "", protocol_type: str = "", group_state: str = "",
        group_type: str = "",
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListGroupsResponse(Structure):
    """ListGroups, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    groups: list[ListedGroup]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, groups: list[ListedGroup] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is ABSENT else groups


def read_list_groups_request(reader: Reader, version: int) -> ListGroupsRequest:
    message = ListGroupsRequest(
        reader.values(reader.string, 1) if version >= 4 else [],
        reader.values(reader.string, 1) if version >= 5 else [],
    )
    reader.skip_tags()
    return message


def write_list_groups_request(writer: Writer, message: ListGroupsRequest, version: int) -> None:
    if version >= 4:
        writer.values(message.states_filter, writer.string)
    if version >= 5:
        writer.values(message.types_filter, writer.string)
    writer.no_tags()


def read_listed_group(reader: Reader, version: int) -> ListedGroup:
    message = ListedGroup(
        reader.string(),
        reader.string(),
        reader.string() if version >= 4 else "",
        reader.string() if version >= 5 else "",
    )
    reader.skip_tags()
    return message


def write_listed_group(writer: Writer, message: ListedGroup, version: int) -> None:
    writer.string(message.group_id)
    writer.string(message.protocol_type)
    if version >= 4:
        writer.string(message.group_state)
    if version >= 5:
        writer.string(message.group_type)
    writer.no_tags()


def read_list_groups_response(reader: Reader, version: int) -> ListGroupsResponse:
    message = ListGroupsResponse(
        reader.int32() if version >= 1 else 0,
        reader.int16(),
        reader.array(read_listed_group, version, 3),
    )
    reader.skip_tags()
    return message


def write_list_groups_response(writer: Writer, message: ListGroupsResponse, version: int) -> None:
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.array(message.groups, write_listed_group, version)
    writer.no_tags()


LIST_GROUPS = Api(
    16,
    "ListGroups",
    message_of_fields(
        "ListGroupsRequest", (0, 5), 3, read_list_groups_request, write_list_groups_request,
        bounded=True,
    ),
    message_of_fields(
        "ListGroupsResponse", (0, 5), 3, read_list_groups_response, write_list_groups_response
    ),
)
