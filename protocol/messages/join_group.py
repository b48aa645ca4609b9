"""JoinGroup: generated from join_group.schema by protocol/generate. Do not edit."""

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
    null_value,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_t = Struct(">?").pack
pack_h = Struct(">h").pack
pack_hih = Struct(">hih").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihi = Struct(">ihi").pack
pack_ihih = Struct(">ihih").pack
pack_ii = Struct(">ii").pack
pack_iih = Struct(">iih").pack
unpack_tB = Struct(">?B").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hih = Struct(">hih").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihiB = Struct(">ihiB").unpack_from
unpack_ihih = Struct(">ihih").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iih = Struct(">iih").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupRequestProtocol(Structure):
    """Part of JoinGroup."""

    name: str
    metadata: bytes

    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupRequest(Structure):
    """JoinGroup, versions 0-9."""

    group_id: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str
    protocols: list[JoinGroupRequestProtocol]
    reason: str | None

    def __init__(
        self,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        protocol_type: str = "",
        protocols: list[JoinGroupRequestProtocol] = ABSENT,
        reason: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = [] if protocols is ABSENT else protocols
        self.reason = reason


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupResponseMember(Structure):
    """Part of JoinGroup."""

    member_id: str
    group_instance_id: str | None
    metadata: bytes

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class JoinGroupResponse(Structure):
    """JoinGroup, versions 0-9."""

    throttle_time_ms: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: list[JoinGroupResponseMember]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        generation_id: int = -1,
        protocol_type: str | None = None,
        protocol_name: str | None = "",
        leader: str = "",
        skip_assignment: bool = False,
        member_id: str = "",
        members: list[JoinGroupResponseMember] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = [] if members is ABSENT else members


def decode_request_v0(view: memoryview, position: int) -> tuple[JoinGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    session_timeout_ms, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("JoinGroupRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupRequest.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("JoinGroupRequestProtocol.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("JoinGroupRequestProtocol.metadata: negative length")
        end = position + size
        metadata = view[position:end].tobytes()
        position = end
        protocols.append(JoinGroupRequestProtocol(name, metadata))
    message = JoinGroupRequest(
        group_id,
        session_timeout_ms,
        -1,
        member_id,
        None,
        protocol_type,
        protocols,
        None,
    )
    return message, position


def encode_request_v0(message: JoinGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.session_timeout_ms, len(data))
    out += data
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocols = message.protocols
    out += pack_i(len(protocols))
    for join_group_request_protocol in protocols:
        name = join_group_request_protocol.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        metadata = join_group_request_protocol.metadata
        out += pack_i(len(metadata))
        out += metadata
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[JoinGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    session_timeout_ms, rebalance_timeout_ms, size = unpack_iih(view, position)
    position += 10
    if size < 0:
        raise Malformed("JoinGroupRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupRequest.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("JoinGroupRequestProtocol.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("JoinGroupRequestProtocol.metadata: negative length")
        end = position + size
        metadata = view[position:end].tobytes()
        position = end
        protocols.append(JoinGroupRequestProtocol(name, metadata))
    message = JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        None,
        protocol_type,
        protocols,
        None,
    )
    return message, position


def encode_request_v1(message: JoinGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(data))
    out += data
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocols = message.protocols
    out += pack_i(len(protocols))
    for join_group_request_protocol in protocols:
        name = join_group_request_protocol.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        metadata = join_group_request_protocol.metadata
        out += pack_i(len(metadata))
        out += metadata
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[JoinGroupRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    session_timeout_ms, rebalance_timeout_ms, size = unpack_iih(view, position)
    position += 10
    if size < 0:
        raise Malformed("JoinGroupRequest.member_id: negative length")
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
        raise Malformed("JoinGroupRequest.group_instance_id: negative length")
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupRequest.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("JoinGroupRequestProtocol.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("JoinGroupRequestProtocol.metadata: negative length")
        end = position + size
        metadata = view[position:end].tobytes()
        position = end
        protocols.append(JoinGroupRequestProtocol(name, metadata))
    message = JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        None,
    )
    return message, position


def encode_request_v5(message: JoinGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_iih(message.session_timeout_ms, message.rebalance_timeout_ms, len(data))
    out += data
    group_instance_id = message.group_instance_id
    data = b"" if group_instance_id is None else group_instance_id.encode()
    out += pack_h(-1 if group_instance_id is None else len(data))
    out += data
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocols = message.protocols
    out += pack_i(len(protocols))
    for join_group_request_protocol in protocols:
        name = join_group_request_protocol.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        metadata = join_group_request_protocol.metadata
        out += pack_i(len(metadata))
        out += metadata
    return [out]


def decode_request_v6(view: memoryview, position: int) -> tuple[JoinGroupRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    session_timeout_ms, rebalance_timeout_ms, size = unpack_iiB(view, position)
    position += 9
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
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    protocol_type = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        metadata = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        protocols.append(JoinGroupRequestProtocol(name, metadata))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        None,
    )
    return message, position


def encode_request_v6(message: JoinGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_ii(message.session_timeout_ms, message.rebalance_timeout_ms)
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
    data = protocol_type.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    protocols = message.protocols
    size = len(protocols) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for join_group_request_protocol in protocols:
        name = join_group_request_protocol.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        metadata = join_group_request_protocol.metadata
        size = len(metadata) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += metadata
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v8(view: memoryview, position: int) -> tuple[JoinGroupRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    session_timeout_ms, rebalance_timeout_ms, size = unpack_iiB(view, position)
    position += 9
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
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    protocol_type = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    protocols: list[JoinGroupRequestProtocol] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        metadata = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        protocols.append(JoinGroupRequestProtocol(name, metadata))
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
        position = skip_tags(view, position, tags)
    message = JoinGroupRequest(
        group_id,
        session_timeout_ms,
        rebalance_timeout_ms,
        member_id,
        group_instance_id,
        protocol_type,
        protocols,
        reason,
    )
    return message, position


def encode_request_v8(message: JoinGroupRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_ii(message.session_timeout_ms, message.rebalance_timeout_ms)
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
    data = protocol_type.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    protocols = message.protocols
    size = len(protocols) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for join_group_request_protocol in protocols:
        name = join_group_request_protocol.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        metadata = join_group_request_protocol.metadata
        size = len(metadata) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += metadata
        out.append(0)
    reason = message.reason
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
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[JoinGroupResponse, int]:
    error_code, generation_id, size = unpack_hih(view, position)
    position += 8
    if size < 0:
        raise Malformed("JoinGroupResponse.protocol_name: negative length")
    end = position + size
    protocol_name = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupResponse.leader: negative length")
    end = position + size
    leader = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupResponse.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("JoinGroupResponseMember.member_id: negative length")
        end = position + size
        members_member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("JoinGroupResponseMember.metadata: negative length")
        end = position + size
        metadata = view[position:end].tobytes()
        position = end
        members.append(JoinGroupResponseMember(members_member_id, None, metadata))
    message = JoinGroupResponse(
        0,
        error_code,
        generation_id,
        None,
        protocol_name,
        leader,
        False,
        member_id,
        members,
    )
    return message, position


def encode_response_v0(message: JoinGroupResponse, out: bytearray) -> Chunks:
    protocol_name = message.protocol_name
    if protocol_name is None:
        raise null_value("JoinGroupResponse.protocol_name")
    data = protocol_name.encode()
    out += pack_hih(message.error_code, message.generation_id, len(data))
    out += data
    leader = message.leader
    data = leader.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    members = message.members
    out += pack_i(len(members))
    for join_group_response_member in members:
        join_group_response_member_member_id = join_group_response_member.member_id
        data = join_group_response_member_member_id.encode()
        out += pack_h(len(data))
        out += data
        metadata = join_group_response_member.metadata
        out += pack_i(len(metadata))
        out += metadata
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id, size = unpack_ihih(view, position)
    position += 12
    if size < 0:
        raise Malformed("JoinGroupResponse.protocol_name: negative length")
    end = position + size
    protocol_name = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupResponse.leader: negative length")
    end = position + size
    leader = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupResponse.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("JoinGroupResponseMember.member_id: negative length")
        end = position + size
        members_member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("JoinGroupResponseMember.metadata: negative length")
        end = position + size
        metadata = view[position:end].tobytes()
        position = end
        members.append(JoinGroupResponseMember(members_member_id, None, metadata))
    message = JoinGroupResponse(
        throttle_time_ms,
        error_code,
        generation_id,
        None,
        protocol_name,
        leader,
        False,
        member_id,
        members,
    )
    return message, position


def encode_response_v2(message: JoinGroupResponse, out: bytearray) -> Chunks:
    protocol_name = message.protocol_name
    if protocol_name is None:
        raise null_value("JoinGroupResponse.protocol_name")
    data = protocol_name.encode()
    out += pack_ihih(message.throttle_time_ms, message.error_code, message.generation_id, len(data))
    out += data
    leader = message.leader
    data = leader.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    members = message.members
    out += pack_i(len(members))
    for join_group_response_member in members:
        join_group_response_member_member_id = join_group_response_member.member_id
        data = join_group_response_member_member_id.encode()
        out += pack_h(len(data))
        out += data
        metadata = join_group_response_member.metadata
        out += pack_i(len(metadata))
        out += metadata
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id, size = unpack_ihih(view, position)
    position += 12
    if size < 0:
        raise Malformed("JoinGroupResponse.protocol_name: negative length")
    end = position + size
    protocol_name = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupResponse.leader: negative length")
    end = position + size
    leader = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("JoinGroupResponse.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    members: list[JoinGroupResponseMember] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("JoinGroupResponseMember.member_id: negative length")
        end = position + size
        members_member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        group_instance_id: str | None = None
        if size >= 0:
            end = position + size
            group_instance_id = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("JoinGroupResponseMember.group_instance_id: negative length")
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("JoinGroupResponseMember.metadata: negative length")
        end = position + size
        metadata = view[position:end].tobytes()
        position = end
        members.append(JoinGroupResponseMember(members_member_id, group_instance_id, metadata))
    message = JoinGroupResponse(
        throttle_time_ms,
        error_code,
        generation_id,
        None,
        protocol_name,
        leader,
        False,
        member_id,
        members,
    )
    return message, position


def encode_response_v5(message: JoinGroupResponse, out: bytearray) -> Chunks:
    protocol_name = message.protocol_name
    if protocol_name is None:
        raise null_value("JoinGroupResponse.protocol_name")
    data = protocol_name.encode()
    out += pack_ihih(message.throttle_time_ms, message.error_code, message.generation_id, len(data))
    out += data
    leader = message.leader
    data = leader.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    members = message.members
    out += pack_i(len(members))
    for join_group_response_member in members:
        join_group_response_member_member_id = join_group_response_member.member_id
        data = join_group_response_member_member_id.encode()
        out += pack_h(len(data))
        out += data
        group_instance_id = join_group_response_member.group_instance_id
        data = b"" if group_instance_id is None else group_instance_id.encode()
        out += pack_h(-1 if group_instance_id is None else len(data))
        out += data
        metadata = join_group_response_member.metadata
        out += pack_i(len(metadata))
        out += metadata
    return [out]


def decode_response_v6(view: memoryview, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id, size = unpack_ihiB(view, position)
    position += 11
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    protocol_name = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    leader = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    member_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    members: list[JoinGroupResponseMember] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        members_member_id = view[position:end].tobytes().decode()
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
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        metadata = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        members.append(JoinGroupResponseMember(members_member_id, group_instance_id, metadata))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = JoinGroupResponse(
        throttle_time_ms,
        error_code,
        generation_id,
        None,
        protocol_name,
        leader,
        False,
        member_id,
        members,
    )
    return message, position


def encode_response_v6(message: JoinGroupResponse, out: bytearray) -> Chunks:
    protocol_name = message.protocol_name
    if protocol_name is None:
        raise null_value("JoinGroupResponse.protocol_name")
    out += pack_ihi(message.throttle_time_ms, message.error_code, message.generation_id)
    data = protocol_name.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    leader = message.leader
    data = leader.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    data = member_id.encode()
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
    for join_group_response_member in members:
        join_group_response_member_member_id = join_group_response_member.member_id
        data = join_group_response_member_member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = join_group_response_member.group_instance_id
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
        metadata = join_group_response_member.metadata
        size = len(metadata) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += metadata
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v7(view: memoryview, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id, size = unpack_ihiB(view, position)
    position += 11
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
    leader = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    member_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    members: list[JoinGroupResponseMember] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        members_member_id = view[position:end].tobytes().decode()
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
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        metadata = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        members.append(JoinGroupResponseMember(members_member_id, group_instance_id, metadata))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = JoinGroupResponse(
        throttle_time_ms,
        error_code,
        generation_id,
        protocol_type,
        protocol_name,
        leader,
        False,
        member_id,
        members,
    )
    return message, position


def encode_response_v7(message: JoinGroupResponse, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    out += pack_ihi(message.throttle_time_ms, message.error_code, message.generation_id)
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
    leader = message.leader
    data = leader.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    data = member_id.encode()
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
    for join_group_response_member in members:
        join_group_response_member_member_id = join_group_response_member.member_id
        data = join_group_response_member_member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = join_group_response_member.group_instance_id
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
        metadata = join_group_response_member.metadata
        size = len(metadata) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += metadata
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v9(view: memoryview, position: int) -> tuple[JoinGroupResponse, int]:
    throttle_time_ms, error_code, generation_id, size = unpack_ihiB(view, position)
    position += 11
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
    leader = view[position:end].tobytes().decode()
    position = end
    skip_assignment, size = unpack_tB(view, position)
    position += 2
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    member_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    members: list[JoinGroupResponseMember] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        members_member_id = view[position:end].tobytes().decode()
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
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        metadata = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        members.append(JoinGroupResponseMember(members_member_id, group_instance_id, metadata))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = JoinGroupResponse(
        throttle_time_ms,
        error_code,
        generation_id,
        protocol_type,
        protocol_name,
        leader,
        skip_assignment,
        member_id,
        members,
    )
    return message, position


def encode_response_v9(message: JoinGroupResponse, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    out += pack_ihi(message.throttle_time_ms, message.error_code, message.generation_id)
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
    leader = message.leader
    data = leader.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_t(message.skip_assignment)
    data = member_id.encode()
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
    for join_group_response_member in members:
        join_group_response_member_member_id = join_group_response_member.member_id
        data = join_group_response_member_member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = join_group_response_member.group_instance_id
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
        metadata = join_group_response_member.metadata
        size = len(metadata) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += metadata
        out.append(0)
    out.append(0)
    return [out]


JOIN_GROUP = Api(
    11,
    "JoinGroup",
    Message(
        "JoinGroupRequest",
        (0, 9),
        6,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
            5: (decode_request_v5, encode_request_v5),
            6: (decode_request_v6, encode_request_v6),
            8: (decode_request_v8, encode_request_v8),
        },
    ),
    Message(
        "JoinGroupResponse",
        (0, 9),
        6,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
            5: (decode_response_v5, encode_response_v5),
            6: (decode_response_v6, encode_response_v6),
            7: (decode_response_v7, encode_response_v7),
            9: (decode_response_v9, encode_response_v9),
        },
    ),
)
