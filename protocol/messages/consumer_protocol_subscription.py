"""ConsumerProtocolSubscription: generated from consumer_protocol_subscription.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import ABSENT, Chunks, Structure, check_count

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ih = Struct(">ih").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartition(Structure):
    """Part of ConsumerProtocolSubscription."""

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
class ConsumerProtocolSubscription(Structure):
    """ConsumerProtocolSubscription, versions 0-3."""

    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[TopicPartition]
    generation_id: int
    rack_id: str | None

    def __init__(
        self,
        topics: list[str] = ABSENT,
        user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = ABSENT,
        generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is ABSENT else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id


def decode_v0(view: memoryview, position: int) -> tuple[ConsumerProtocolSubscription, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    topics: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("topics[]: negative length")
        end = position + size
        topics_item = view[position:end].tobytes().decode()
        position = end
        topics.append(topics_item)
    (size,) = unpack_i(view, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        end = position + size
        user_data = view[position:end].tobytes()
        position = end
    elif size != -1:
        raise Malformed("ConsumerProtocolSubscription.user_data: negative length")
    return ConsumerProtocolSubscription(topics, user_data, [], -1, None), position


def encode_v0(message: ConsumerProtocolSubscription, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for topics_item in topics:
        data = topics_item.encode()
        out += pack_h(len(data))
        out += data
    user_data = message.user_data
    out += pack_i(-1 if user_data is None else len(user_data))
    if user_data is not None:
        out += user_data
    return [out]


def decode_v1(view: memoryview, position: int) -> tuple[ConsumerProtocolSubscription, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    topics: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("topics[]: negative length")
        end = position + size
        topics_item = view[position:end].tobytes().decode()
        position = end
        topics.append(topics_item)
    (size,) = unpack_i(view, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        end = position + size
        user_data = view[position:end].tobytes()
        position = end
    elif size != -1:
        raise Malformed("ConsumerProtocolSubscription.user_data: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    owned_partitions: list[TopicPartition] = []
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
        owned_partitions.append(TopicPartition(topic, partitions))
    message = ConsumerProtocolSubscription(topics, user_data, owned_partitions, -1, None)
    return message, position


def encode_v1(message: ConsumerProtocolSubscription, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for topics_item in topics:
        data = topics_item.encode()
        out += pack_h(len(data))
        out += data
    user_data = message.user_data
    out += pack_i(-1 if user_data is None else len(user_data))
    if user_data is not None:
        out += user_data
    owned_partitions = message.owned_partitions
    out += pack_i(len(owned_partitions))
    for topic_partition in owned_partitions:
        topic = topic_partition.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = topic_partition.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    return [out]


def decode_v2(view: memoryview, position: int) -> tuple[ConsumerProtocolSubscription, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    topics: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("topics[]: negative length")
        end = position + size
        topics_item = view[position:end].tobytes().decode()
        position = end
        topics.append(topics_item)
    (size,) = unpack_i(view, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        end = position + size
        user_data = view[position:end].tobytes()
        position = end
    elif size != -1:
        raise Malformed("ConsumerProtocolSubscription.user_data: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    owned_partitions: list[TopicPartition] = []
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
        owned_partitions.append(TopicPartition(topic, partitions))
    (generation_id,) = unpack_i(view, position)
    position += 4
    message = ConsumerProtocolSubscription(topics, user_data, owned_partitions, generation_id, None)
    return message, position


def encode_v2(message: ConsumerProtocolSubscription, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for topics_item in topics:
        data = topics_item.encode()
        out += pack_h(len(data))
        out += data
    user_data = message.user_data
    out += pack_i(-1 if user_data is None else len(user_data))
    if user_data is not None:
        out += user_data
    owned_partitions = message.owned_partitions
    out += pack_i(len(owned_partitions))
    for topic_partition in owned_partitions:
        topic = topic_partition.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = topic_partition.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    out += pack_i(message.generation_id)
    return [out]


def decode_v3(view: memoryview, position: int) -> tuple[ConsumerProtocolSubscription, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    topics: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("topics[]: negative length")
        end = position + size
        topics_item = view[position:end].tobytes().decode()
        position = end
        topics.append(topics_item)
    (size,) = unpack_i(view, position)
    position += 4
    user_data: bytes | None = None
    if size >= 0:
        end = position + size
        user_data = view[position:end].tobytes()
        position = end
    elif size != -1:
        raise Malformed("ConsumerProtocolSubscription.user_data: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    owned_partitions: list[TopicPartition] = []
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
        owned_partitions.append(TopicPartition(topic, partitions))
    generation_id, size = unpack_ih(view, position)
    position += 6
    rack_id: str | None = None
    if size >= 0:
        end = position + size
        rack_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("ConsumerProtocolSubscription.rack_id: negative length")
    message = ConsumerProtocolSubscription(
        topics,
        user_data,
        owned_partitions,
        generation_id,
        rack_id,
    )
    return message, position


def encode_v3(message: ConsumerProtocolSubscription, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for topics_item in topics:
        data = topics_item.encode()
        out += pack_h(len(data))
        out += data
    user_data = message.user_data
    out += pack_i(-1 if user_data is None else len(user_data))
    if user_data is not None:
        out += user_data
    owned_partitions = message.owned_partitions
    out += pack_i(len(owned_partitions))
    for topic_partition in owned_partitions:
        topic = topic_partition.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = topic_partition.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    rack_id = message.rack_id
    data = b"" if rack_id is None else rack_id.encode()
    out += pack_ih(message.generation_id, -1 if rack_id is None else len(data))
    out += data
    return [out]


CONSUMER_PROTOCOL_SUBSCRIPTION = Message(
    "ConsumerProtocolSubscription",
    (0, 3),
    NEVER,
    {
        0: (decode_v0, encode_v0),
        1: (decode_v1, encode_v1),
        2: (decode_v2, encode_v2),
        3: (decode_v3, encode_v3),
    },
)
