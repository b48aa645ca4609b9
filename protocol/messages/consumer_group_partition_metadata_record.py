"""ConsumerGroupPartitionMetadata: generated from consumer_group_partition_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

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
pack_i = Struct(">i").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_iB = Struct(">iB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupPartitionMetadataKey(Structure):
    """ConsumerGroupPartitionMetadata, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionMetadata(Structure):
    """Part of ConsumerGroupPartitionMetadata."""

    partition: int
    racks: list[str]

    def __init__(
        self,
        partition: int = 0,
        racks: list[str] = ABSENT,
    ) -> None:
        self.partition = partition
        self.racks = [] if racks is ABSENT else racks


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicMetadata(Structure):
    """Part of ConsumerGroupPartitionMetadata."""

    topic_id: bytes
    topic_name: str
    num_partitions: int
    partition_metadata: list[PartitionMetadata]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is ABSENT else partition_metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupPartitionMetadataValue(Structure):
    """ConsumerGroupPartitionMetadata, versions 0-0."""

    topics: list[TopicMetadata]

    def __init__(
        self,
        topics: list[TopicMetadata] = ABSENT,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupPartitionMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupPartitionMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupPartitionMetadataKey(group_id), position


def encode_key_v0(message: ConsumerGroupPartitionMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupPartitionMetadataValue, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 23)
    topics: list[TopicMetadata] = []
    for _ in range(count - 1):
        topic_id, size = unpack_16sB(view, position)
        position += 17
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        num_partitions, count = unpack_iB(view, position)
        position += 5
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        partition_metadata: list[PartitionMetadata] = []
        for _ in range(count - 1):
            partition, count = unpack_iB(view, position)
            position += 5
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 1)
            racks: list[str] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                racks_item = view[position:end].tobytes().decode()
                position = end
                racks.append(racks_item)
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partition_metadata.append(PartitionMetadata(partition, racks))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(TopicMetadata(topic_id, topic_name, num_partitions, partition_metadata))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ConsumerGroupPartitionMetadataValue(topics), position


def encode_value_v0(message: ConsumerGroupPartitionMetadataValue, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_metadata in topics:
        topic_name = topic_metadata.topic_name
        out += pack_16s(topic_metadata.topic_id)
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partition_metadata = topic_metadata.partition_metadata
        out += pack_i(topic_metadata.num_partitions)
        size = len(partition_metadata) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_metadata_partition_metadata in partition_metadata:
            racks = partition_metadata_partition_metadata.racks
            out += pack_i(partition_metadata_partition_metadata.partition)
            size = len(racks) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for racks_item in racks:
                data = racks_item.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


CONSUMER_GROUP_PARTITION_METADATA_RECORD = RecordType(
    4,
    "ConsumerGroupPartitionMetadata",
    Message(
        "ConsumerGroupPartitionMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupPartitionMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
