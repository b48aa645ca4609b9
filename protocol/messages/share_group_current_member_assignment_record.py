"""ShareGroupCurrentMemberAssignment: generated from share_group_current_member_assignment_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    long_count,
    put_varint,
    skip_tags,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_iib = Struct(">iib").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_iibB = Struct(">iibB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupCurrentMemberAssignmentKey(Structure):
    """ShareGroupCurrentMemberAssignment, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ShareGroupCurrentMemberAssignment."""

    topic_id: bytes
    partitions: list[int]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupCurrentMemberAssignmentValue(Structure):
    """ShareGroupCurrentMemberAssignment, versions 0-0."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[TopicPartitions]

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = ABSENT,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is ABSENT else assigned_partitions


def decode_key_v0(view: memoryview, position: int) -> tuple[ShareGroupCurrentMemberAssignmentKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ShareGroupCurrentMemberAssignmentKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ShareGroupCurrentMemberAssignmentKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return ShareGroupCurrentMemberAssignmentKey(group_id, member_id), position


def encode_key_v0(message: ShareGroupCurrentMemberAssignmentKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ShareGroupCurrentMemberAssignmentValue, int]:
    member_epoch, previous_member_epoch, state, count = unpack_iibB(view, position)
    position += 10
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    assigned_partitions: list[TopicPartitions] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        assigned_partitions.append(TopicPartitions(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareGroupCurrentMemberAssignmentValue(
        member_epoch,
        previous_member_epoch,
        state,
        assigned_partitions,
    )
    return message, position


def encode_value_v0(message: ShareGroupCurrentMemberAssignmentValue, out: bytearray) -> Chunks:
    assigned_partitions = message.assigned_partitions
    out += pack_iib(message.member_epoch, message.previous_member_epoch, message.state)
    size = len(assigned_partitions) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_partitions in assigned_partitions:
        partitions = topic_partitions.partitions
        out += pack_16s(topic_partitions.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions)}i", *partitions)
        out.append(0)
    out.append(0)
    return [out]


SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD = RecordType(
    14,
    "ShareGroupCurrentMemberAssignment",
    Message(
        "ShareGroupCurrentMemberAssignmentKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ShareGroupCurrentMemberAssignmentValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
