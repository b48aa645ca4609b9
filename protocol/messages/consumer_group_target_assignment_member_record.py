"""ConsumerGroupTargetAssignmentMember: generated from consumer_group_target_assignment_member_record.schema by protocol/generate. Do not edit."""

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
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMemberKey(Structure):
    """ConsumerGroupTargetAssignmentMember, versions 0-0."""

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
class TopicPartition(Structure):
    """Part of ConsumerGroupTargetAssignmentMember."""

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
class ConsumerGroupTargetAssignmentMemberValue(Structure):
    """ConsumerGroupTargetAssignmentMember, versions 0-0."""

    topic_partitions: list[TopicPartition]

    def __init__(
        self,
        topic_partitions: list[TopicPartition] = ABSENT,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupTargetAssignmentMemberKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupTargetAssignmentMemberKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupTargetAssignmentMemberKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), position


def encode_key_v0(message: ConsumerGroupTargetAssignmentMemberKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupTargetAssignmentMemberValue, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topic_partitions: list[TopicPartition] = []
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
        topic_partitions.append(TopicPartition(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ConsumerGroupTargetAssignmentMemberValue(topic_partitions), position


def encode_value_v0(message: ConsumerGroupTargetAssignmentMemberValue, out: bytearray) -> Chunks:
    topic_partitions = message.topic_partitions
    size = len(topic_partitions) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_partition in topic_partitions:
        partitions = topic_partition.partitions
        out += pack_16s(topic_partition.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions)}i", *partitions)
        out.append(0)
    out.append(0)
    return [out]


CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD = RecordType(
    7,
    "ConsumerGroupTargetAssignmentMember",
    Message(
        "ConsumerGroupTargetAssignmentMemberKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupTargetAssignmentMemberValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
