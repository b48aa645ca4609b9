"""DescribeGroups: generated from describe_groups.schema by protocol/generate. Do not edit."""

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
    varint_tail,
)

pack_t = Struct(">?").pack
pack_tx = Struct(">?x").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
pack_ix = Struct(">ix").pack
unpack_t = Struct(">?").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeGroupsRequest(Structure):
    """DescribeGroups, versions 0-6."""

    groups: list[str]
    include_authorized_operations: bool

    def __init__(
        self,
        groups: list[str] = ABSENT,
        include_authorized_operations: bool = False,
    ) -> None:
        self.groups = [] if groups is ABSENT else groups
        self.include_authorized_operations = include_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroupMember(Structure):
    """Part of DescribeGroups."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes

    def __init__(
        self,
        member_id: str = "",
        group_instance_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroup(Structure):
    """Part of DescribeGroups."""

    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: list[DescribedGroupMember]
    authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: list[DescribedGroupMember] = ABSENT,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = [] if members is ABSENT else members
        self.authorized_operations = authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeGroupsResponse(Structure):
    """DescribeGroups, versions 0-6."""

    throttle_time_ms: int
    groups: list[DescribedGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeGroupsRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    groups: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("groups[]: negative length")
        end = position + size
        groups_item = view[position:end].tobytes().decode()
        position = end
        groups.append(groups_item)
    return DescribeGroupsRequest(groups, False), position


def encode_request_v0(message: DescribeGroupsRequest, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(len(groups))
    for groups_item in groups:
        data = groups_item.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[DescribeGroupsRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    groups: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("groups[]: negative length")
        end = position + size
        groups_item = view[position:end].tobytes().decode()
        position = end
        groups.append(groups_item)
    (include_authorized_operations,) = unpack_t(view, position)
    position += 1
    return DescribeGroupsRequest(groups, include_authorized_operations), position


def encode_request_v3(message: DescribeGroupsRequest, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(len(groups))
    for groups_item in groups:
        data = groups_item.encode()
        out += pack_h(len(data))
        out += data
    out += pack_t(message.include_authorized_operations)
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[DescribeGroupsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    groups: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        groups_item = view[position:end].tobytes().decode()
        position = end
        groups.append(groups_item)
    include_authorized_operations, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeGroupsRequest(groups, include_authorized_operations), position


def encode_request_v5(message: DescribeGroupsRequest, out: bytearray) -> Chunks:
    groups = message.groups
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for groups_item in groups:
        data = groups_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_tx(message.include_authorized_operations)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeGroupsResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 14)
    groups: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("DescribedGroup.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.group_state: negative length")
        end = position + size
        group_state = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_type: negative length")
        end = position + size
        protocol_type = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_data: negative length")
        end = position + size
        protocol_data = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        members: list[DescribedGroupMember] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.member_id: negative length")
            end = position + size
            member_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_id: negative length")
            end = position + size
            client_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_host: negative length")
            end = position + size
            client_host = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_metadata: negative length")
            end = position + size
            member_metadata = view[position:end].tobytes()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_assignment: negative length")
            end = position + size
            member_assignment = view[position:end].tobytes()
            position = end
            members.append(
                DescribedGroupMember(
                    member_id,
                    None,
                    client_id,
                    client_host,
                    member_metadata,
                    member_assignment,
                )
            )
        groups.append(
            DescribedGroup(
                error_code,
                None,
                group_id,
                group_state,
                protocol_type,
                protocol_data,
                members,
                -2147483648,
            )
        )
    return DescribeGroupsResponse(0, groups), position


def encode_response_v0(message: DescribeGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(len(groups))
    for described_group in groups:
        group_id = described_group.group_id
        data = group_id.encode()
        out += pack_hh(described_group.error_code, len(data))
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        out += pack_h(len(data))
        out += data
        protocol_type = described_group.protocol_type
        data = protocol_type.encode()
        out += pack_h(len(data))
        out += data
        protocol_data = described_group.protocol_data
        data = protocol_data.encode()
        out += pack_h(len(data))
        out += data
        members = described_group.members
        out += pack_i(len(members))
        for described_group_member in members:
            member_id = described_group_member.member_id
            data = member_id.encode()
            out += pack_h(len(data))
            out += data
            client_id = described_group_member.client_id
            data = client_id.encode()
            out += pack_h(len(data))
            out += data
            client_host = described_group_member.client_host
            data = client_host.encode()
            out += pack_h(len(data))
            out += data
            member_metadata = described_group_member.member_metadata
            out += pack_i(len(member_metadata))
            out += member_metadata
            member_assignment = described_group_member.member_assignment
            out += pack_i(len(member_assignment))
            out += member_assignment
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 14)
    groups: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("DescribedGroup.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.group_state: negative length")
        end = position + size
        group_state = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_type: negative length")
        end = position + size
        protocol_type = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_data: negative length")
        end = position + size
        protocol_data = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        members: list[DescribedGroupMember] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.member_id: negative length")
            end = position + size
            member_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_id: negative length")
            end = position + size
            client_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_host: negative length")
            end = position + size
            client_host = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_metadata: negative length")
            end = position + size
            member_metadata = view[position:end].tobytes()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_assignment: negative length")
            end = position + size
            member_assignment = view[position:end].tobytes()
            position = end
            members.append(
                DescribedGroupMember(
                    member_id,
                    None,
                    client_id,
                    client_host,
                    member_metadata,
                    member_assignment,
                )
            )
        groups.append(
            DescribedGroup(
                error_code,
                None,
                group_id,
                group_state,
                protocol_type,
                protocol_data,
                members,
                -2147483648,
            )
        )
    return DescribeGroupsResponse(throttle_time_ms, groups), position


def encode_response_v1(message: DescribeGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ii(message.throttle_time_ms, len(groups))
    for described_group in groups:
        group_id = described_group.group_id
        data = group_id.encode()
        out += pack_hh(described_group.error_code, len(data))
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        out += pack_h(len(data))
        out += data
        protocol_type = described_group.protocol_type
        data = protocol_type.encode()
        out += pack_h(len(data))
        out += data
        protocol_data = described_group.protocol_data
        data = protocol_data.encode()
        out += pack_h(len(data))
        out += data
        members = described_group.members
        out += pack_i(len(members))
        for described_group_member in members:
            member_id = described_group_member.member_id
            data = member_id.encode()
            out += pack_h(len(data))
            out += data
            client_id = described_group_member.client_id
            data = client_id.encode()
            out += pack_h(len(data))
            out += data
            client_host = described_group_member.client_host
            data = client_host.encode()
            out += pack_h(len(data))
            out += data
            member_metadata = described_group_member.member_metadata
            out += pack_i(len(member_metadata))
            out += member_metadata
            member_assignment = described_group_member.member_assignment
            out += pack_i(len(member_assignment))
            out += member_assignment
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 18)
    groups: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("DescribedGroup.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.group_state: negative length")
        end = position + size
        group_state = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_type: negative length")
        end = position + size
        protocol_type = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_data: negative length")
        end = position + size
        protocol_data = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        members: list[DescribedGroupMember] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.member_id: negative length")
            end = position + size
            member_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_id: negative length")
            end = position + size
            client_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_host: negative length")
            end = position + size
            client_host = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_metadata: negative length")
            end = position + size
            member_metadata = view[position:end].tobytes()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_assignment: negative length")
            end = position + size
            member_assignment = view[position:end].tobytes()
            position = end
            members.append(
                DescribedGroupMember(
                    member_id,
                    None,
                    client_id,
                    client_host,
                    member_metadata,
                    member_assignment,
                )
            )
        (authorized_operations,) = unpack_i(view, position)
        position += 4
        groups.append(
            DescribedGroup(
                error_code,
                None,
                group_id,
                group_state,
                protocol_type,
                protocol_data,
                members,
                authorized_operations,
            )
        )
    return DescribeGroupsResponse(throttle_time_ms, groups), position


def encode_response_v3(message: DescribeGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ii(message.throttle_time_ms, len(groups))
    for described_group in groups:
        group_id = described_group.group_id
        data = group_id.encode()
        out += pack_hh(described_group.error_code, len(data))
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        out += pack_h(len(data))
        out += data
        protocol_type = described_group.protocol_type
        data = protocol_type.encode()
        out += pack_h(len(data))
        out += data
        protocol_data = described_group.protocol_data
        data = protocol_data.encode()
        out += pack_h(len(data))
        out += data
        members = described_group.members
        out += pack_i(len(members))
        for described_group_member in members:
            member_id = described_group_member.member_id
            data = member_id.encode()
            out += pack_h(len(data))
            out += data
            client_id = described_group_member.client_id
            data = client_id.encode()
            out += pack_h(len(data))
            out += data
            client_host = described_group_member.client_host
            data = client_host.encode()
            out += pack_h(len(data))
            out += data
            member_metadata = described_group_member.member_metadata
            out += pack_i(len(member_metadata))
            out += member_metadata
            member_assignment = described_group_member.member_assignment
            out += pack_i(len(member_assignment))
            out += member_assignment
        out += pack_i(described_group.authorized_operations)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 18)
    groups: list[DescribedGroup] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("DescribedGroup.group_id: negative length")
        end = position + size
        group_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.group_state: negative length")
        end = position + size
        group_state = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_type: negative length")
        end = position + size
        protocol_type = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedGroup.protocol_data: negative length")
        end = position + size
        protocol_data = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 16)
        members: list[DescribedGroupMember] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.member_id: negative length")
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
                raise Malformed("DescribedGroupMember.group_instance_id: negative length")
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_id: negative length")
            end = position + size
            client_id = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedGroupMember.client_host: negative length")
            end = position + size
            client_host = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_metadata: negative length")
            end = position + size
            member_metadata = view[position:end].tobytes()
            position = end
            (size,) = unpack_i(view, position)
            position += 4
            if size < 0:
                raise Malformed("DescribedGroupMember.member_assignment: negative length")
            end = position + size
            member_assignment = view[position:end].tobytes()
            position = end
            members.append(
                DescribedGroupMember(
                    member_id,
                    group_instance_id,
                    client_id,
                    client_host,
                    member_metadata,
                    member_assignment,
                )
            )
        (authorized_operations,) = unpack_i(view, position)
        position += 4
        groups.append(
            DescribedGroup(
                error_code,
                None,
                group_id,
                group_state,
                protocol_type,
                protocol_data,
                members,
                authorized_operations,
            )
        )
    return DescribeGroupsResponse(throttle_time_ms, groups), position


def encode_response_v4(message: DescribeGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_ii(message.throttle_time_ms, len(groups))
    for described_group in groups:
        group_id = described_group.group_id
        data = group_id.encode()
        out += pack_hh(described_group.error_code, len(data))
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        out += pack_h(len(data))
        out += data
        protocol_type = described_group.protocol_type
        data = protocol_type.encode()
        out += pack_h(len(data))
        out += data
        protocol_data = described_group.protocol_data
        data = protocol_data.encode()
        out += pack_h(len(data))
        out += data
        members = described_group.members
        out += pack_i(len(members))
        for described_group_member in members:
            member_id = described_group_member.member_id
            data = member_id.encode()
            out += pack_h(len(data))
            out += data
            group_instance_id = described_group_member.group_instance_id
            data = b"" if group_instance_id is None else group_instance_id.encode()
            out += pack_h(-1 if group_instance_id is None else len(data))
            out += data
            client_id = described_group_member.client_id
            data = client_id.encode()
            out += pack_h(len(data))
            out += data
            client_host = described_group_member.client_host
            data = client_host.encode()
            out += pack_h(len(data))
            out += data
            member_metadata = described_group_member.member_metadata
            out += pack_i(len(member_metadata))
            out += member_metadata
            member_assignment = described_group_member.member_assignment
            out += pack_i(len(member_assignment))
            out += member_assignment
        out += pack_i(described_group.authorized_operations)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 12)
    groups: list[DescribedGroup] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
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
        group_state = view[position:end].tobytes().decode()
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
        protocol_data = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 7)
        members: list[DescribedGroupMember] = []
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
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            member_metadata = view[position:end].tobytes()
            position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            member_assignment = view[position:end].tobytes()
            position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            members.append(
                DescribedGroupMember(
                    member_id,
                    group_instance_id,
                    client_id,
                    client_host,
                    member_metadata,
                    member_assignment,
                )
            )
        authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(
            DescribedGroup(
                error_code,
                None,
                group_id,
                group_state,
                protocol_type,
                protocol_data,
                members,
                authorized_operations,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeGroupsResponse(throttle_time_ms, groups), position


def encode_response_v5(message: DescribeGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for described_group in groups:
        group_id = described_group.group_id
        out += pack_h(described_group.error_code)
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_type = described_group.protocol_type
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_data = described_group.protocol_data
        data = protocol_data.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        members = described_group.members
        size = len(members) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for described_group_member in members:
            member_id = described_group_member.member_id
            data = member_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            group_instance_id = described_group_member.group_instance_id
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
            client_id = described_group_member.client_id
            data = client_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            client_host = described_group_member.client_host
            data = client_host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            member_metadata = described_group_member.member_metadata
            size = len(member_metadata) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += member_metadata
            member_assignment = described_group_member.member_assignment
            size = len(member_assignment) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += member_assignment
            out.append(0)
        out += pack_ix(described_group.authorized_operations)
    out.append(0)
    return [out]


def decode_response_v6(view: memoryview, position: int) -> tuple[DescribeGroupsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 13)
    groups: list[DescribedGroup] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
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
        group_state = view[position:end].tobytes().decode()
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
        protocol_data = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 7)
        members: list[DescribedGroupMember] = []
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
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            member_metadata = view[position:end].tobytes()
            position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            member_assignment = view[position:end].tobytes()
            position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            members.append(
                DescribedGroupMember(
                    member_id,
                    group_instance_id,
                    client_id,
                    client_host,
                    member_metadata,
                    member_assignment,
                )
            )
        authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(
            DescribedGroup(
                error_code,
                error_message,
                group_id,
                group_state,
                protocol_type,
                protocol_data,
                members,
                authorized_operations,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeGroupsResponse(throttle_time_ms, groups), position


def encode_response_v6(message: DescribeGroupsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for described_group in groups:
        error_message = described_group.error_message
        out += pack_h(described_group.error_code)
        if error_message is None:
            out.append(0)
        else:
            data = error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        group_id = described_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_type = described_group.protocol_type
        data = protocol_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        protocol_data = described_group.protocol_data
        data = protocol_data.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        members = described_group.members
        size = len(members) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for described_group_member in members:
            member_id = described_group_member.member_id
            data = member_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            group_instance_id = described_group_member.group_instance_id
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
            client_id = described_group_member.client_id
            data = client_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            client_host = described_group_member.client_host
            data = client_host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            member_metadata = described_group_member.member_metadata
            size = len(member_metadata) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += member_metadata
            member_assignment = described_group_member.member_assignment
            size = len(member_assignment) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += member_assignment
            out.append(0)
        out += pack_ix(described_group.authorized_operations)
    out.append(0)
    return [out]


DESCRIBE_GROUPS = Api(
    15,
    "DescribeGroups",
    Message(
        "DescribeGroupsRequest",
        (0, 6),
        5,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
            5: (decode_request_v5, encode_request_v5),
        },
    ),
    Message(
        "DescribeGroupsResponse",
        (0, 6),
        5,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
            5: (decode_response_v5, encode_response_v5),
            6: (decode_response_v6, encode_response_v6),
        },
    ),
)
