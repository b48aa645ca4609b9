"""ShareGroupDescribe: generated from share_group_describe.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16s = Struct(">16s").pack
pack_tx = Struct(">?x").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
pack_ix = Struct(">ix").pack
pack_xx = Struct(">xx").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_iiB = Struct(">iiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupDescribeRequest(Structure):
    """ShareGroupDescribe, versions 1-1."""

    group_ids: list[str]
    include_authorized_operations: bool

    def __init__(
        self,
        group_ids: list[str] = ABSENT,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is ABSENT else group_ids
        self.include_authorized_operations = include_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ShareGroupDescribe."""

    topic_id: bytes
    topic_name: str
    partitions: list[int]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class Assignment(Structure):
    """Part of ShareGroupDescribe."""

    topic_partitions: list[TopicPartitions]

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] = ABSENT,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class Member(Structure):
    """Part of ShareGroupDescribe."""

    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    assignment: Assignment

    def __init__(
        self,
        member_id: str = "",
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = ABSENT,
        assignment: Assignment = ABSENT,
    ) -> None:
        self.member_id = member_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is ABSENT else subscribed_topic_names
        self.assignment = Assignment() if assignment is ABSENT else assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroup(Structure):
    """Part of ShareGroupDescribe."""

    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: list[Member]
    authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: list[Member] = ABSENT,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = [] if members is ABSENT else members
        self.authorized_operations = authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupDescribeResponse(Structure):
    """ShareGroupDescribe, versions 1-1."""

    throttle_time_ms: int
    groups: list[DescribedGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def decode_request_v1(view: memoryview, position: int) -> tuple[ShareGroupDescribeRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    group_ids: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_ids_item = view[position:end].tobytes().decode()
        position = end
        group_ids.append(group_ids_item)
    include_authorized_operations, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return ShareGroupDescribeRequest(group_ids, include_authorized_operations), position


def encode_request_v1(message: ShareGroupDescribeRequest, out: bytearray) -> Chunks:
    group_ids = message.group_ids
    size = len(group_ids) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for group_ids_item in group_ids:
        data = group_ids_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_tx(message.include_authorized_operations)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ShareGroupDescribeResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 20)
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
        group_epoch, assignment_epoch, size = unpack_iiB(view, position)
        position += 9
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        assignor_name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 12)
        members: list[Member] = []
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
            rack_id: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                rack_id = view[position:end].tobytes().decode()
                position = end
            member_epoch, size = unpack_iB(view, position)
            position += 5
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
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 1)
            subscribed_topic_names: list[str] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                subscribed_topic_names_item = view[position:end].tobytes().decode()
                position = end
                subscribed_topic_names.append(subscribed_topic_names_item)
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 19)
            topic_partitions: list[TopicPartitions] = []
            for _ in range(count - 1):
                topic_id, size = unpack_16sB(view, position)
                position += 17
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                topic_name = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                topic_partitions.append(TopicPartitions(topic_id, topic_name, partitions))
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            assignment = Assignment(topic_partitions)
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            members.append(
                Member(
                    member_id,
                    rack_id,
                    member_epoch,
                    client_id,
                    client_host,
                    subscribed_topic_names,
                    assignment,
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
                group_epoch,
                assignment_epoch,
                assignor_name,
                members,
                authorized_operations,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ShareGroupDescribeResponse(throttle_time_ms, groups), position


def encode_response_v1(message: ShareGroupDescribeResponse, out: bytearray) -> Chunks:
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
        assignor_name = described_group.assignor_name
        out += pack_ii(described_group.group_epoch, described_group.assignment_epoch)
        data = assignor_name.encode()
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
        for member in members:
            member_id = member.member_id
            data = member_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            rack_id = member.rack_id
            if rack_id is None:
                out.append(0)
            else:
                data = rack_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            client_id = member.client_id
            out += pack_i(member.member_epoch)
            data = client_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            client_host = member.client_host
            data = client_host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            subscribed_topic_names = member.subscribed_topic_names
            size = len(subscribed_topic_names) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for subscribed_topic_names_item in subscribed_topic_names:
                data = subscribed_topic_names_item.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            topic_partitions = member.assignment.topic_partitions
            size = len(topic_partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for topic_partitions_topic_partitions in topic_partitions:
                topic_name = topic_partitions_topic_partitions.topic_name
                out += pack_16s(topic_partitions_topic_partitions.topic_id)
                data = topic_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                partitions = topic_partitions_topic_partitions.partitions
                size = len(partitions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(partitions)}i", *partitions)
                out.append(0)
            out += pack_xx()
        out += pack_ix(described_group.authorized_operations)
    out.append(0)
    return [out]


SHARE_GROUP_DESCRIBE = Api(
    77,
    "ShareGroupDescribe",
    Message(
        "ShareGroupDescribeRequest",
        (1, 1),
        1,
        {
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "ShareGroupDescribeResponse",
        (1, 1),
        1,
        {
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
