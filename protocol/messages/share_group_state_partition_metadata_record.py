"""ShareGroupStatePartitionMetadata: generated from share_group_state_partition_metadata_record.schema by protocol/generate. Do not edit."""

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
    long_size,
    put_varint,
    skip_tags,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupStatePartitionMetadataKey(Structure):
    """ShareGroupStatePartitionMetadata, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitionsInfo(Structure):
    """Part of ShareGroupStatePartitionMetadata."""

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
class TopicInfo(Structure):
    """Part of ShareGroupStatePartitionMetadata."""

    topic_id: bytes
    topic_name: str

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupStatePartitionMetadataValue(Structure):
    """ShareGroupStatePartitionMetadata, versions 0-0."""

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]

    def __init__(
        self,
        initializing_topics: list[TopicPartitionsInfo] = ABSENT,
        initialized_topics: list[TopicPartitionsInfo] = ABSENT,
        deleting_topics: list[TopicInfo] = ABSENT,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is ABSENT else initializing_topics
        self.initialized_topics = [] if initialized_topics is ABSENT else initialized_topics
        self.deleting_topics = [] if deleting_topics is ABSENT else deleting_topics


def decode_key_v0(view: memoryview, position: int) -> tuple[ShareGroupStatePartitionMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ShareGroupStatePartitionMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return ShareGroupStatePartitionMetadataKey(group_id), position


def encode_key_v0(message: ShareGroupStatePartitionMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ShareGroupStatePartitionMetadataValue, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 19)
    initializing_topics: list[TopicPartitionsInfo] = []
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
        initializing_topics.append(TopicPartitionsInfo(topic_id, topic_name, partitions))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 19)
    initialized_topics: list[TopicPartitionsInfo] = []
    for _ in range(count - 1):
        initialized_topics_topic_id, size = unpack_16sB(view, position)
        position += 17
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        initialized_topics_topic_name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        initialized_topics_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        initialized_topics.append(
            TopicPartitionsInfo(
                initialized_topics_topic_id,
                initialized_topics_topic_name,
                initialized_topics_partitions,
            )
        )
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    deleting_topics: list[TopicInfo] = []
    for _ in range(count - 1):
        deleting_topics_topic_id, size = unpack_16sB(view, position)
        position += 17
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        deleting_topics_topic_name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        deleting_topics.append(TopicInfo(deleting_topics_topic_id, deleting_topics_topic_name))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareGroupStatePartitionMetadataValue(
        initializing_topics,
        initialized_topics,
        deleting_topics,
    )
    return message, position


def encode_value_v0(message: ShareGroupStatePartitionMetadataValue, out: bytearray) -> Chunks:
    initializing_topics = message.initializing_topics
    size = len(initializing_topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_partitions_info in initializing_topics:
        topic_name = topic_partitions_info.topic_name
        out += pack_16s(topic_partitions_info.topic_id)
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = topic_partitions_info.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions)}i", *partitions)
        out.append(0)
    initialized_topics = message.initialized_topics
    size = len(initialized_topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for initialized_topics_topic_partitions_info in initialized_topics:
        initialized_topics_topic_partitions_info_topic_name = initialized_topics_topic_partitions_info.topic_name
        out += pack_16s(initialized_topics_topic_partitions_info.topic_id)
        data = initialized_topics_topic_partitions_info_topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        initialized_topics_topic_partitions_info_partitions = initialized_topics_topic_partitions_info.partitions
        size = len(initialized_topics_topic_partitions_info_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(initialized_topics_topic_partitions_info_partitions)}i", *initialized_topics_topic_partitions_info_partitions)
        out.append(0)
    deleting_topics = message.deleting_topics
    size = len(deleting_topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_info in deleting_topics:
        topic_info_topic_name = topic_info.topic_name
        out += pack_16s(topic_info.topic_id)
        data = topic_info_topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


SHARE_GROUP_STATE_PARTITION_METADATA_RECORD = RecordType(
    15,
    "ShareGroupStatePartitionMetadata",
    Message(
        "ShareGroupStatePartitionMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ShareGroupStatePartitionMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
