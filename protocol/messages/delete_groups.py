"""DeleteGroups: generated from delete_groups.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    check_count,
    long_count,
    long_size,
    put_varint,
    skip_tags,
)

pack_h = Struct(">h").pack
pack_hx = Struct(">hx").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteGroupsRequest(Structure):
    """DeleteGroups, versions 0-2."""

    groups_names: list[str]

    def __init__(
        self,
        groups_names: list[str] = ABSENT,
    ) -> None:
        self.groups_names = [] if groups_names is ABSENT else groups_names


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeletableGroupResult(Structure):
    """Part of DeleteGroups."""

    group_id: str
    error_code: int

    def __init__(
        self,
        group_id: str = "",
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteGroupsResponse(Structure):
    """DeleteGroups, versions 0-2."""

    throttle_time_ms: int
    results: list[DeletableGroupResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DeletableGroupResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[DeleteGroupsRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    groups_names: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("groups_names[]: negative length")
        end = position + size
        groups_names_item = view[position:end].tobytes().decode()
        position = end
        groups_names.append(groups_names_item)
    return DeleteGroupsRequest(groups_names), position


def encode_request_v0(message: DeleteGroupsRequest, out: bytearray) -> Chunks:
    groups_names = message.groups_names
    out += pack_i(len(groups_names))
    for groups_names_item in groups_names:
        data = groups_names_item.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DeleteGroupsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    groups_names: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        groups_names_item = view[position:end].tobytes().decode()
        position = end
        groups_names.append(groups_names_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteGroupsRequest(groups_names), position


def encode_request_v2(message: DeleteGroupsRequest, out: bytearray) -> Chunks:
    groups_names = message.groups_names
    size = len(groups_names) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for groups_names_item in groups_names:
        data = groups_names_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DeleteGroupsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    results: list[DeletableGroupResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DeletableGroupResult.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (error_code,) = unpack_h(view, position)
        position += 2
        results.append(DeletableGroupResult(group_id, error_code))
    return DeleteGroupsResponse(throttle_time_ms, results), position


def encode_response_v0(message: DeleteGroupsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for deletable_group_result in results:
        group_id = deletable_group_result.group_id
        data = group_id.encode()
        out += pack_h(len(data))
        out += data
        out += pack_h(deletable_group_result.error_code)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DeleteGroupsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    results: list[DeletableGroupResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        error_code, tags = unpack_hB(view, position)
        position += 3
        if tags:
            position = skip_tags(view, position, tags)
        results.append(DeletableGroupResult(group_id, error_code))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteGroupsResponse(throttle_time_ms, results), position


def encode_response_v2(message: DeleteGroupsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for deletable_group_result in results:
        group_id = deletable_group_result.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_hx(deletable_group_result.error_code)
    out.append(0)
    return [out]


DELETE_GROUPS = Api(
    42,
    "DeleteGroups",
    Message(
        "DeleteGroupsRequest",
        (0, 2),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DeleteGroupsResponse",
        (0, 2),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
