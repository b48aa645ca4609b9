"""GroupMetadata: generated from group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
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
    varint_tail,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ii = Struct(">ii").pack
pack_iii = Struct(">iii").pack
pack_q = Struct(">q").pack
pack_qi = Struct(">qi").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iii = Struct(">iii").unpack_from
unpack_qB = Struct(">qB").unpack_from
unpack_qi = Struct(">qi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class GroupMetadataKey(Structure):
    """GroupMetadata, versions 0-4."""

    group: str

    def __init__(
        self,
        group: str = "",
    ) -> None:
        self.group = group


@dataclass(slots=True, init=False, repr=False, eq=False)
class MemberMetadata(Structure):
    """Part of GroupMetadata."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout: int = -1,
        session_timeout: int = 0,
        subscription: bytes = b"",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class GroupMetadataValue(Structure):
    """GroupMetadata, versions 0-4."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[MemberMetadata]

    def __init__(
        self,
        protocol_type: str = "",
        generation: int = 0,
        protocol: str | None = "",
        leader: str | None = "",
        current_state_timestamp: int = -1,
        members: list[MemberMetadata] = ABSENT,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is ABSENT else members


def decode_key_v0(view: memoryview, position: int) -> tuple[GroupMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("GroupMetadataKey.group: negative length")
    end = position + size
    group = view[position:end].tobytes().decode()
    position = end
    return GroupMetadataKey(group), position


def encode_key_v0(message: GroupMetadataKey, out: bytearray) -> Chunks:
    group = message.group
    data = group.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[GroupMetadataValue, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("GroupMetadataValue.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    generation, size = unpack_ih(view, position)
    position += 6
    protocol: str | None = None
    if size >= 0:
        end = position + size
        protocol = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.protocol: negative length")
    (size,) = unpack_h(view, position)
    position += 2
    leader: str | None = None
    if size >= 0:
        end = position + size
        leader = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.leader: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 18)
    members: list[MemberMetadata] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.member_id: negative length")
        end = position + size
        member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_id: negative length")
        end = position + size
        client_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_host: negative length")
        end = position + size
        client_host = view[position:end].tobytes().decode()
        position = end
        session_timeout, size = unpack_ii(view, position)
        position += 8
        if size < 0:
            raise Malformed("MemberMetadata.subscription: negative length")
        end = position + size
        subscription = view[position:end].tobytes()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("MemberMetadata.assignment: negative length")
        end = position + size
        assignment = view[position:end].tobytes()
        position = end
        members.append(
            MemberMetadata(
                member_id,
                None,
                client_id,
                client_host,
                -1,
                session_timeout,
                subscription,
                assignment,
            )
        )
    message = GroupMetadataValue(protocol_type, generation, protocol, leader, -1, members)
    return message, position


def encode_value_v0(message: GroupMetadataValue, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocol = message.protocol
    data = b"" if protocol is None else protocol.encode()
    out += pack_ih(message.generation, -1 if protocol is None else len(data))
    out += data
    leader = message.leader
    data = b"" if leader is None else leader.encode()
    out += pack_h(-1 if leader is None else len(data))
    out += data
    members = message.members
    out += pack_i(len(members))
    for member_metadata in members:
        member_id = member_metadata.member_id
        data = member_id.encode()
        out += pack_h(len(data))
        out += data
        client_id = member_metadata.client_id
        data = client_id.encode()
        out += pack_h(len(data))
        out += data
        client_host = member_metadata.client_host
        data = client_host.encode()
        out += pack_h(len(data))
        out += data
        subscription = member_metadata.subscription
        out += pack_ii(member_metadata.session_timeout, len(subscription))
        out += subscription
        assignment = member_metadata.assignment
        out += pack_i(len(assignment))
        out += assignment
    return [out]


def decode_value_v1(view: memoryview, position: int) -> tuple[GroupMetadataValue, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("GroupMetadataValue.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    generation, size = unpack_ih(view, position)
    position += 6
    protocol: str | None = None
    if size >= 0:
        end = position + size
        protocol = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.protocol: negative length")
    (size,) = unpack_h(view, position)
    position += 2
    leader: str | None = None
    if size >= 0:
        end = position + size
        leader = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.leader: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 22)
    members: list[MemberMetadata] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.member_id: negative length")
        end = position + size
        member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_id: negative length")
        end = position + size
        client_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_host: negative length")
        end = position + size
        client_host = view[position:end].tobytes().decode()
        position = end
        rebalance_timeout, session_timeout, size = unpack_iii(view, position)
        position += 12
        if size < 0:
            raise Malformed("MemberMetadata.subscription: negative length")
        end = position + size
        subscription = view[position:end].tobytes()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("MemberMetadata.assignment: negative length")
        end = position + size
        assignment = view[position:end].tobytes()
        position = end
        members.append(
            MemberMetadata(
                member_id,
                None,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                assignment,
            )
        )
    message = GroupMetadataValue(protocol_type, generation, protocol, leader, -1, members)
    return message, position


def encode_value_v1(message: GroupMetadataValue, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocol = message.protocol
    data = b"" if protocol is None else protocol.encode()
    out += pack_ih(message.generation, -1 if protocol is None else len(data))
    out += data
    leader = message.leader
    data = b"" if leader is None else leader.encode()
    out += pack_h(-1 if leader is None else len(data))
    out += data
    members = message.members
    out += pack_i(len(members))
    for member_metadata in members:
        member_id = member_metadata.member_id
        data = member_id.encode()
        out += pack_h(len(data))
        out += data
        client_id = member_metadata.client_id
        data = client_id.encode()
        out += pack_h(len(data))
        out += data
        client_host = member_metadata.client_host
        data = client_host.encode()
        out += pack_h(len(data))
        out += data
        subscription = member_metadata.subscription
        out += pack_iii(
            member_metadata.rebalance_timeout,
            member_metadata.session_timeout,
            len(subscription),
        )
        out += subscription
        assignment = member_metadata.assignment
        out += pack_i(len(assignment))
        out += assignment
    return [out]


def decode_value_v2(view: memoryview, position: int) -> tuple[GroupMetadataValue, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("GroupMetadataValue.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    generation, size = unpack_ih(view, position)
    position += 6
    protocol: str | None = None
    if size >= 0:
        end = position + size
        protocol = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.protocol: negative length")
    (size,) = unpack_h(view, position)
    position += 2
    leader: str | None = None
    if size >= 0:
        end = position + size
        leader = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.leader: negative length")
    current_state_timestamp, count = unpack_qi(view, position)
    position += 12
    if not 0 <= count < 0x80:
        check_count(view, position, count, 22)
    members: list[MemberMetadata] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.member_id: negative length")
        end = position + size
        member_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_id: negative length")
        end = position + size
        client_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_host: negative length")
        end = position + size
        client_host = view[position:end].tobytes().decode()
        position = end
        rebalance_timeout, session_timeout, size = unpack_iii(view, position)
        position += 12
        if size < 0:
            raise Malformed("MemberMetadata.subscription: negative length")
        end = position + size
        subscription = view[position:end].tobytes()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("MemberMetadata.assignment: negative length")
        end = position + size
        assignment = view[position:end].tobytes()
        position = end
        members.append(
            MemberMetadata(
                member_id,
                None,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                assignment,
            )
        )
    message = GroupMetadataValue(
        protocol_type,
        generation,
        protocol,
        leader,
        current_state_timestamp,
        members,
    )
    return message, position


def encode_value_v2(message: GroupMetadataValue, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocol = message.protocol
    data = b"" if protocol is None else protocol.encode()
    out += pack_ih(message.generation, -1 if protocol is None else len(data))
    out += data
    leader = message.leader
    data = b"" if leader is None else leader.encode()
    out += pack_h(-1 if leader is None else len(data))
    out += data
    members = message.members
    out += pack_qi(message.current_state_timestamp, len(members))
    for member_metadata in members:
        member_id = member_metadata.member_id
        data = member_id.encode()
        out += pack_h(len(data))
        out += data
        client_id = member_metadata.client_id
        data = client_id.encode()
        out += pack_h(len(data))
        out += data
        client_host = member_metadata.client_host
        data = client_host.encode()
        out += pack_h(len(data))
        out += data
        subscription = member_metadata.subscription
        out += pack_iii(
            member_metadata.rebalance_timeout,
            member_metadata.session_timeout,
            len(subscription),
        )
        out += subscription
        assignment = member_metadata.assignment
        out += pack_i(len(assignment))
        out += assignment
    return [out]


def decode_value_v3(view: memoryview, position: int) -> tuple[GroupMetadataValue, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("GroupMetadataValue.protocol_type: negative length")
    end = position + size
    protocol_type = view[position:end].tobytes().decode()
    position = end
    generation, size = unpack_ih(view, position)
    position += 6
    protocol: str | None = None
    if size >= 0:
        end = position + size
        protocol = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.protocol: negative length")
    (size,) = unpack_h(view, position)
    position += 2
    leader: str | None = None
    if size >= 0:
        end = position + size
        leader = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("GroupMetadataValue.leader: negative length")
    current_state_timestamp, count = unpack_qi(view, position)
    position += 12
    if not 0 <= count < 0x80:
        check_count(view, position, count, 24)
    members: list[MemberMetadata] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.member_id: negative length")
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
            raise Malformed("MemberMetadata.group_instance_id: negative length")
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_id: negative length")
        end = position + size
        client_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MemberMetadata.client_host: negative length")
        end = position + size
        client_host = view[position:end].tobytes().decode()
        position = end
        rebalance_timeout, session_timeout, size = unpack_iii(view, position)
        position += 12
        if size < 0:
            raise Malformed("MemberMetadata.subscription: negative length")
        end = position + size
        subscription = view[position:end].tobytes()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("MemberMetadata.assignment: negative length")
        end = position + size
        assignment = view[position:end].tobytes()
        position = end
        members.append(
            MemberMetadata(
                member_id,
                group_instance_id,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                assignment,
            )
        )
    message = GroupMetadataValue(
        protocol_type,
        generation,
        protocol,
        leader,
        current_state_timestamp,
        members,
    )
    return message, position


def encode_value_v3(message: GroupMetadataValue, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    out += pack_h(len(data))
    out += data
    protocol = message.protocol
    data = b"" if protocol is None else protocol.encode()
    out += pack_ih(message.generation, -1 if protocol is None else len(data))
    out += data
    leader = message.leader
    data = b"" if leader is None else leader.encode()
    out += pack_h(-1 if leader is None else len(data))
    out += data
    members = message.members
    out += pack_qi(message.current_state_timestamp, len(members))
    for member_metadata in members:
        member_id = member_metadata.member_id
        data = member_id.encode()
        out += pack_h(len(data))
        out += data
        group_instance_id = member_metadata.group_instance_id
        data = b"" if group_instance_id is None else group_instance_id.encode()
        out += pack_h(-1 if group_instance_id is None else len(data))
        out += data
        client_id = member_metadata.client_id
        data = client_id.encode()
        out += pack_h(len(data))
        out += data
        client_host = member_metadata.client_host
        data = client_host.encode()
        out += pack_h(len(data))
        out += data
        subscription = member_metadata.subscription
        out += pack_iii(
            member_metadata.rebalance_timeout,
            member_metadata.session_timeout,
            len(subscription),
        )
        out += subscription
        assignment = member_metadata.assignment
        out += pack_i(len(assignment))
        out += assignment
    return [out]


def decode_value_v4(view: memoryview, position: int) -> tuple[GroupMetadataValue, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    protocol_type = view[position:end].tobytes().decode()
    position = end
    generation, size = unpack_iB(view, position)
    position += 5
    protocol: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        protocol = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    leader: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        leader = view[position:end].tobytes().decode()
        position = end
    current_state_timestamp, count = unpack_qB(view, position)
    position += 9
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 15)
    members: list[MemberMetadata] = []
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
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        client_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        client_host = view[position:end].tobytes().decode()
        position = end
        rebalance_timeout, session_timeout, size = unpack_iiB(view, position)
        position += 9
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        subscription = view[position:end].tobytes()
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
        members.append(
            MemberMetadata(
                member_id,
                group_instance_id,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                assignment,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = GroupMetadataValue(
        protocol_type,
        generation,
        protocol,
        leader,
        current_state_timestamp,
        members,
    )
    return message, position


def encode_value_v4(message: GroupMetadataValue, out: bytearray) -> Chunks:
    protocol_type = message.protocol_type
    data = protocol_type.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    protocol = message.protocol
    out += pack_i(message.generation)
    if protocol is None:
        out.append(0)
    else:
        data = protocol.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    leader = message.leader
    if leader is None:
        out.append(0)
    else:
        data = leader.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    members = message.members
    out += pack_q(message.current_state_timestamp)
    size = len(members) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for member_metadata in members:
        member_id = member_metadata.member_id
        data = member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_instance_id = member_metadata.group_instance_id
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
        client_id = member_metadata.client_id
        data = client_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        client_host = member_metadata.client_host
        data = client_host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        subscription = member_metadata.subscription
        out += pack_ii(member_metadata.rebalance_timeout, member_metadata.session_timeout)
        size = len(subscription) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += subscription
        assignment = member_metadata.assignment
        size = len(assignment) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += assignment
        out.append(0)
    out.append(0)
    return [out]


GROUP_METADATA_RECORD = RecordType(
    2,
    "GroupMetadata",
    Message(
        "GroupMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "GroupMetadataValue",
        (0, 4),
        4,
        {
            0: (decode_value_v0, encode_value_v0),
            1: (decode_value_v1, encode_value_v1),
            2: (decode_value_v2, encode_value_v2),
            3: (decode_value_v3, encode_value_v3),
            4: (decode_value_v4, encode_value_v4),
        },
    ),
)
