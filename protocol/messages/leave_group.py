"""LeaveGroup: generated from leave_group.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    add_tags,
    check_count,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_h = Struct(">h").pack
pack_hx = Struct(">hx").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihi = Struct(">ihi").pack
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihi = Struct(">ihi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class MemberIdentity(Structure):
    """Part of LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    reason: str | None

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaveGroupRequest(Structure):
    """LeaveGroup, versions 0-5."""

    group_id: str
    member_id: str
    members: list[MemberIdentity]

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        members: list[MemberIdentity] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = [] if members is ABSENT else members


@dataclass(slots=True, init=False, repr=False, eq=False)
class MemberResponse(Structure):
    """Part of LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    error_code: int

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaveGroupResponse(Structure):
    """LeaveGroup, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    members: list[MemberResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        members: list[MemberResponse] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = [] if members is ABSENT else members


def decode_request_v0(view: memoryview, position: int) -> tuple[LeaveGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("LeaveGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("LeaveGroupRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return LeaveGroupRequest(group_id, member_id, []), position


def encode_request_v0(message: LeaveGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[LeaveGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("LeaveGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    members: list[MemberIdentity] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberIdentity.member_id: negative length")
        end = position + size
        member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        group_instance_id: str | None = None
        if size >= 0:
            end = position + size
            group_instance_id = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MemberIdentity.group_instance_id: negative length")
        members.append(MemberIdentity(member_id, group_instance_id, None))
    return LeaveGroupRequest(group_id, "", members), position


def encode_request_v3(message: LeaveGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    members = message.members
    out += pack_i(len(members))
    for member_identity in members:
        member_id = member_identity.member_id
        data = member_id.encode()
        out += pack_h(len(data))
        out += data
        group_instance_id = member_identity.group_instance_id
        data = b"" if group_instance_id is None else group_instance_id.encode()
        out += pack_h(-1 if group_instance_id is None else len(data))
        out += data
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[LeaveGroupRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    members: list[MemberIdentity] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        member_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        group_instance_id: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            group_instance_id = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        members.append(MemberIdentity(member_id, group_instance_id, None))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return LeaveGroupRequest(group_id, "", members), position


def encode_request_v4(message: LeaveGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    members = message.members
    size = len(members) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for member_identity in members:
        member_id = member_identity.member_id
        data = member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = member_identity.group_instance_id
        if group_instance_id is None:
            out.append(0)
        else:
            data = group_instance_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[LeaveGroupRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    members: list[MemberIdentity] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        member_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        group_instance_id: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            group_instance_id = view[position:end].tobytes().decode()
            position = end
        size = view[position]
        position += 1
        reason: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            reason = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        members.append(MemberIdentity(member_id, group_instance_id, reason))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return LeaveGroupRequest(group_id, "", members), position


def encode_request_v5(message: LeaveGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    members = message.members
    size = len(members) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for member_identity in members:
        member_id = member_identity.member_id
        data = member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = member_identity.group_instance_id
        if group_instance_id is None:
            out.append(0)
        else:
            data = group_instance_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        reason = member_identity.reason
        if reason is None:
            out.append(0)
        else:
            data = reason.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[LeaveGroupResponse, int]:
    (error_code,) = unpack_h(view, position)
    position += 2
    return LeaveGroupResponse(0, error_code, []), position


def encode_response_v0(message: LeaveGroupResponse, out: bytearray) -> Chunks:
    out += pack_h(message.error_code)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms, error_code = unpack_ih(view, position)
    position += 6
    return LeaveGroupResponse(throttle_time_ms, error_code, []), position


def encode_response_v1(message: LeaveGroupResponse, out: bytearray) -> Chunks:
    out += pack_ih(message.throttle_time_ms, message.error_code)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihi(view, position)
    position += 10
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    members: list[MemberResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberResponse.member_id: negative length")
        end = position + size
        member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        group_instance_id: str | None = None
        if size >= 0:
            end = position + size
            group_instance_id = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MemberResponse.group_instance_id: negative length")
        (members_error_code,) = unpack_h(view, position)
        position += 2
        members.append(MemberResponse(member_id, group_instance_id, members_error_code))
    return LeaveGroupResponse(throttle_time_ms, error_code, members), position


def encode_response_v3(message: LeaveGroupResponse, out: bytearray) -> Chunks:
    members = message.members
    out += pack_ihi(message.throttle_time_ms, message.error_code, len(members))
    for member_response in members:
        member_id = member_response.member_id
        data = member_id.encode()
        out += pack_h(len(data))
        out += data
        group_instance_id = member_response.group_instance_id
        data = b"" if group_instance_id is None else group_instance_id.encode()
        out += pack_h(-1 if group_instance_id is None else len(data))
        out += data
        out += pack_h(member_response.error_code)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[LeaveGroupResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    members: list[MemberResponse] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        member_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        group_instance_id: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            group_instance_id = view[position:end].tobytes().decode()
            position = end
        members_error_code, tags = unpack_hB(view, position)
        position += 3
        if tags:
            position = skip_tags(view, position, tags)
        members.append(MemberResponse(member_id, group_instance_id, members_error_code))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return LeaveGroupResponse(throttle_time_ms, error_code, members), position


def encode_response_v4(message: LeaveGroupResponse, out: bytearray) -> Chunks:
    members = message.members
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(members) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for member_response in members:
        member_id = member_response.member_id
        data = member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = member_response.group_instance_id
        if group_instance_id is None:
            out.append(0)
        else:
            data = group_instance_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out += pack_hx(member_response.error_code)
    out.append(0)
    return [out]


LEAVE_GROUP = Api(
    13,
    "LeaveGroup",
    Message(
        "LeaveGroupRequest",
        (0, 5),
        4,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
            5: (decode_request_v5, encode_request_v5),
        },
    ),
    Message(
        "LeaveGroupResponse",
        (0, 5),
        4,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
        },
    ),
)
