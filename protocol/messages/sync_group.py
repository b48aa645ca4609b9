"""SyncGroup: generated from sync_group.schema by protocol/generate. Do not edit."""

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
pack_hi = Struct(">hi").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihi = Struct(">ihi").pack
unpack_h = Struct(">h").unpack_from
unpack_hi = Struct(">hi").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihi = Struct(">ihi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class SyncGroupRequestAssignment(Structure):
    """Part of SyncGroup."""

    member_id: str
    assignment: bytes

    def __init__(
        self,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class SyncGroupRequest(Structure):
    """SyncGroup, versions 0-5."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: list[SyncGroupRequestAssignment]

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: list[SyncGroupRequestAssignment] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = [] if assignments is ABSENT else assignments


@dataclass(slots=True, init=False, repr=False, eq=False)
class SyncGroupResponse(Structure):
    """SyncGroup, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment


def decode_request_v0(view: memoryview, position: int) -> tuple[SyncGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("SyncGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("SyncGroupRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("SyncGroupRequestAssignment.member_id: negative length")
        end = position + size
        assignments_member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("SyncGroupRequestAssignment.assignment: negative length")
        end = position + size
        assignment = view[position:end].tobytes()
        position = end
        assignments.append(SyncGroupRequestAssignment(assignments_member_id, assignment))
    message = SyncGroupRequest(group_id, generation_id, member_id, None, None, None, assignments)
    return message, position


def encode_request_v0(message: SyncGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id, len(data))
    out += data
    assignments = message.assignments
    out += pack_i(len(assignments))
    for sync_group_request_assignment in assignments:
        sync_group_request_assignment_member_id = sync_group_request_assignment.member_id
        data = sync_group_request_assignment_member_id.encode()
        out += pack_h(len(data))
        out += data
        assignment = sync_group_request_assignment.assignment
        out += pack_i(len(assignment))
        out += assignment
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[SyncGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("SyncGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("SyncGroupRequest.member_id: negative length")
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
        raise Malformed("SyncGroupRequest.group_instance_id: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("SyncGroupRequestAssignment.member_id: negative length")
        end = position + size
        assignments_member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("SyncGroupRequestAssignment.assignment: negative length")
        end = position + size
        assignment = view[position:end].tobytes()
        position = end
        assignments.append(SyncGroupRequestAssignment(assignments_member_id, assignment))
    message = SyncGroupRequest(
        group_id,
        generation_id,
        member_id,
        group_instance_id,
        None,
        None,
        assignments,
    )
    return message, position


def encode_request_v3(message: SyncGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id, len(data))
    out += data
    group_instance_id = message.group_instance_id
    data = b"" if group_instance_id is None else group_instance_id.encode()
    out += pack_h(-1 if group_instance_id is None else len(data))
    out += data
    assignments = message.assignments
    out += pack_i(len(assignments))
    for sync_group_request_assignment in assignments:
        sync_group_request_assignment_member_id = sync_group_request_assignment.member_id
        data = sync_group_request_assignment_member_id.encode()
        out += pack_h(len(data))
        out += data
        assignment = sync_group_request_assignment.assignment
        out += pack_i(len(assignment))
        out += assignment
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[SyncGroupRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_iB(view, position)
    position += 5
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
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        assignments_member_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        assignment = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        assignments.append(SyncGroupRequestAssignment(assignments_member_id, assignment))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = SyncGroupRequest(
        group_id,
        generation_id,
        member_id,
        group_instance_id,
        None,
        None,
        assignments,
    )
    return message, position


def encode_request_v4(message: SyncGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_i(message.generation_id)
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    group_instance_id = message.group_instance_id
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
    assignments = message.assignments
    size = len(assignments) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for sync_group_request_assignment in assignments:
        sync_group_request_assignment_member_id = sync_group_request_assignment.member_id
        data = sync_group_request_assignment_member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        assignment = sync_group_request_assignment.assignment
        size = len(assignment) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += assignment
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[SyncGroupRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_iB(view, position)
    position += 5
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
    protocol_type: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        protocol_type = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    protocol_name: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        protocol_name = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    assignments: list[SyncGroupRequestAssignment] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        assignments_member_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        assignment = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        assignments.append(SyncGroupRequestAssignment(assignments_member_id, assignment))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = SyncGroupRequest(
        group_id,
        generation_id,
        member_id,
        group_instance_id,
        protocol_type,
        protocol_name,
        assignments,
    )
    return message, position


def encode_request_v5(message: SyncGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_i(message.generation_id)
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    group_instance_id = message.group_instance_id
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
    protocol_type = message.protocol_type
    if protocol_type is None:
        out.append(0)
    else:
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    protocol_name = message.protocol_name
    if protocol_name is None:
        out.append(0)
    else:
        data = protocol_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    assignments = message.assignments
    size = len(assignments) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for sync_group_request_assignment in assignments:
        sync_group_request_assignment_member_id = sync_group_request_assignment.member_id
        data = sync_group_request_assignment_member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        assignment = sync_group_request_assignment.assignment
        size = len(assignment) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += assignment
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[SyncGroupResponse, int]:
    error_code, size = unpack_hi(view, position)
    position += 6
    if size < 0:
        raise Malformed("SyncGroupResponse.assignment: negative length")
    end = position + size
    assignment = view[position:end].tobytes()
    position = end
    return SyncGroupResponse(0, error_code, None, None, assignment), position


def encode_response_v0(message: SyncGroupResponse, out: bytearray) -> Chunks:
    assignment = message.assignment
    out += pack_hi(message.error_code, len(assignment))
    out += assignment
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[SyncGroupResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihi(view, position)
    position += 10
    if size < 0:
        raise Malformed("SyncGroupResponse.assignment: negative length")
    end = position + size
    assignment = view[position:end].tobytes()
    position = end
    return SyncGroupResponse(throttle_time_ms, error_code, None, None, assignment), position


def encode_response_v1(message: SyncGroupResponse, out: bytearray) -> Chunks:
    assignment = message.assignment
    out += pack_ihi(message.throttle_time_ms, message.error_code, len(assignment))
    out += assignment
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[SyncGroupResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    assignment = view[position:end].tobytes()
    position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return SyncGroupResponse(throttle_time_ms, error_code, None, None, assignment), position


def encode_response_v4(message: SyncGroupResponse, out: bytearray) -> Chunks:
    assignment = message.assignment
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(assignment) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += assignment
    out.append(0)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[SyncGroupResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    protocol_type: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        protocol_type = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    protocol_name: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        protocol_name = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    assignment = view[position:end].tobytes()
    position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = SyncGroupResponse(
        throttle_time_ms,
        error_code,
        protocol_type,
        protocol_name,
        assignment,
    )
    return message, position


def encode_response_v5(message: SyncGroupResponse, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    out += pack_ih(message.throttle_time_ms, message.error_code)
    if protocol_type is None:
        out.append(0)
    else:
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    protocol_name = message.protocol_name
    if protocol_name is None:
        out.append(0)
    else:
        data = protocol_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    assignment = message.assignment
    size = len(assignment) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += assignment
    out.append(0)
    return [out]


SYNC_GROUP = Api(
    14,
    "SyncGroup",
    Message(
        "SyncGroupRequest",
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
        "SyncGroupResponse",
        (0, 5),
        4,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            4: (decode_response_v4, encode_response_v4),
            5: (decode_response_v5, encode_response_v5),
        },
    ),
)
