"""ConsumerProtocolAssignment: generated from consumer_protocol_assignment.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import ABSENT, Chunks, Structure, check_count

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartition(Structure):
    """Part of ConsumerProtocolAssignment."""

    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerProtocolAssignment(Structure):
    """ConsumerProtocolAssignment, versions 0-3."""

    assigned_partitions: list[TopicPartition]
    user_data: bytes | None

    def __init__(
        self,
        assigned_partitions: list[TopicPartition] = ABSENT,
        user_data: bytes | None = None,
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is ABSENT else assigned_partitions
        self.user_data = user_data


def decode_v0(view: memoryview, position: int) -> tuple[ConsumerProtocolAssignment, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    assigned_partitions: list[TopicPartition] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TopicPartition.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        assigned_partitions.append(TopicPartition(topic, partitions))
    (size,) = unpack_i(view, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        end = position + size
        user_data = view[position:end].tobytes()
        position = end
    elif size != -1:
        raise Malformed("ConsumerProtocolAssignment.user_data: negative length")
    return ConsumerProtocolAssignment(assigned_partitions, user_data), position


def encode_v0(message: ConsumerProtocolAssignment, out: bytearray) -> Chunks:
    assigned_partitions = message.assigned_partitions
    out += pack_i(len(assigned_partitions))
    for topic_partition in assigned_partitions:
        topic = topic_partition.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = topic_partition.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    user_data = message.user_data
    out += pack_i(-1 if user_data is None else len(user_data))
    if user_data is not None:
        out += user_data
    return [out]


CONSUMER_PROTOCOL_ASSIGNMENT = Message(
    "ConsumerProtocolAssignment",
    (0, 3),
    NEVER,
    {
        0: (decode_v0, encode_v0),
    },
)
