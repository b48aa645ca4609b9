"""ConsumerGroupMetadata: generated from consumer_group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, put_tag, read_tag, tag_count, wrong_tag_size

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_q = Struct(">q").pack
unpack_h = Struct(">h").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_q = Struct(">q").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMetadataKey(Structure):
    """ConsumerGroupMetadata, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMetadataValue(Structure):
    """ConsumerGroupMetadata, versions 0-0."""

    epoch: int
    metadata_hash: int

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupMetadataKey(group_id), position


def encode_key_v0(message: ConsumerGroupMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupMetadataValue, int]:
    epoch, consumer_group_metadata_value_tags = unpack_iB(view, position)
    position += 5
    metadata_hash: int = 0
    if consumer_group_metadata_value_tags:
        consumer_group_metadata_value_tags, position = tag_count(view, position, consumer_group_metadata_value_tags)
        for _ in range(consumer_group_metadata_value_tags):
            tag, position, consumer_group_metadata_value_tag_end = read_tag(view, position)
            if tag == 0:
                (metadata_hash,) = unpack_q(view, position)
                position += 8
                if position != consumer_group_metadata_value_tag_end:
                    raise wrong_tag_size(0)
            position = consumer_group_metadata_value_tag_end
    return ConsumerGroupMetadataValue(epoch, metadata_hash), position


def encode_value_v0(message: ConsumerGroupMetadataValue, out: bytearray) -> Chunks:
    out += pack_i(message.epoch)
    if not message.metadata_hash:
        out.append(0)
    else:
        consumer_group_metadata_value_tags = 0
        consumer_group_metadata_value_tagged = bytearray()
        if message.metadata_hash:
            consumer_group_metadata_value_tags += 1
            metadata_hash_body = bytearray()
            metadata_hash = message.metadata_hash
            metadata_hash_body += pack_q(metadata_hash)
            put_tag(consumer_group_metadata_value_tagged, 0, metadata_hash_body)
        out.append(consumer_group_metadata_value_tags)
        out += consumer_group_metadata_value_tagged
    return [out]


CONSUMER_GROUP_METADATA_RECORD = RecordType(
    3,
    "ConsumerGroupMetadata",
    Message(
        "ConsumerGroupMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
