"""ListGroups: generated from list_groups.schema by protocol/generate. Do not edit."""

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
pack_hi = Struct(">hi").pack
pack_ih = Struct(">ih").pack
pack_ihi = Struct(">ihi").pack
unpack_h = Struct(">h").unpack_from
unpack_hi = Struct(">hi").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihi = Struct(">ihi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListGroupsRequest(Structure):
    """ListGroups, versions 0-5."""

    states_filter: list[str]
    types_filter: list[str]

    def __init__(
        self,
        states_filter: list[str] = ABSENT,
        types_filter: list[str] = ABSENT,
    ) -> None:
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
        self,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",
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
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        groups: list[ListedGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = [] if groups is ABSENT else groups


def decode_request_v0(view: memoryview, position: int) -> tuple[ListGroupsRequest, int]:
    return ListGroupsRequest([], []), position


def encode_request_v0(message: ListGroupsRequest, out: bytearray) -> Chunks:
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[ListGroupsRequest, int]:
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListGroupsRequest([], []), position


def encode_request_v3(message: ListGroupsRequest, out: bytearray) -> Chunks:
    out.append(0)
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[ListGroupsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    states_filter: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        states_filter_item = view[position:end].tobytes().decode()
        position = end
        states_filter.append(states_filter_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListGroupsRequest(states_filter, []), position


def encode_request_v4(message: ListGroupsRequest, out: bytearray) -> Chunks:
    states_filter = message.states_filter
    size = len(states_filter) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for states_filter_item in states_filter:
        data = states_filter_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[ListGroupsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    states_filter: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        states_filter_item = view[position:end].tobytes().decode()
        position = end
        states_filter.append(states_filter_item)
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    types_filter: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        types_filter_item = view[position:end].tobytes().decode()
        position = end
        types_filter.append(types_filter_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListGroupsRequest(states_filter, types_filter), position


def encode_request_v5(message: ListGroupsRequest, out: bytearray) -> Chunks:
    states_filter = message.states_filter
    size = len(states_filter) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for states_filter_item in states_filter:
        data = states_filter_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    types_filter = message.types_filter
    size = len(types_filter) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for types_filter_item in types_filter:
        data = types_filter_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ListGroupsResponse, int]:
    error_code, count = unpack_hi(view, position)
    position += 6
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    groups: list[ListedGroup] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListedGroup.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListedGroup.protocol_type: negative length")
        end = position + size
        protocol_type = view[position:end].tobytes().decode()
        position = end
        groups.append(ListedGroup(group_id, protocol_type, "", ""))
    return ListGroupsResponse(0, error_code, groups), position


def encode_response_v0(message: ListGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_hi(message.error_code, len(groups))
    for listed_group in groups:
        group_id = listed_group.group_id
        data = group_id.encode()
        out += pack_h(len(data))
        out += data
        protocol_type = listed_group.protocol_type
        data = protocol_type.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihi(view, position)
    position += 10
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    groups: list[ListedGroup] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListedGroup.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListedGroup.protocol_type: negative length")
        end = position + size
        protocol_type = view[position:end].tobytes().decode()
        position = end
        groups.append(ListedGroup(group_id, protocol_type, "", ""))
    return ListGroupsResponse(throttle_time_ms, error_code, groups), position


def encode_response_v1(message: ListGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ihi(message.throttle_time_ms, message.error_code, len(groups))
    for listed_group in groups:
        group_id = listed_group.group_id
        data = group_id.encode()
        out += pack_h(len(data))
        out += data
        protocol_type = listed_group.protocol_type
        data = protocol_type.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    groups: list[ListedGroup] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        protocol_type = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(ListedGroup(group_id, protocol_type, "", ""))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), position


def encode_response_v3(message: ListGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for listed_group in groups:
        group_id = listed_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_type = listed_group.protocol_type
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    groups: list[ListedGroup] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        protocol_type = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_state = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(ListedGroup(group_id, protocol_type, group_state, ""))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), position


def encode_response_v4(message: ListGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for listed_group in groups:
        group_id = listed_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_type = listed_group.protocol_type
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_state = listed_group.group_state
        data = group_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[ListGroupsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    groups: list[ListedGroup] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        protocol_type = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_state = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_type = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(ListedGroup(group_id, protocol_type, group_state, group_type))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListGroupsResponse(throttle_time_ms, error_code, groups), position


def encode_response_v5(message: ListGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for listed_group in groups:
        group_id = listed_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_type = listed_group.protocol_type
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_state = listed_group.group_state
        data = group_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_type = listed_group.group_type
        data = group_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


LIST_GROUPS = Api(
    16,
    "ListGroups",
    Message(
        "ListGroupsRequest",
        (0, 5),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
            5: (decode_request_v5, encode_request_v5),
        },
    ),
    Message(
        "ListGroupsResponse",
        (0, 5),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
            5: (decode_response_v5, encode_response_v5),
        },
    ),
)
