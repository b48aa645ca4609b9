"""ShareGroupMetadata: generated from share_group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, skip_tags

pack_h = Struct(">h").pack
pack_iqx = Struct(">iqx").pack
unpack_h = Struct(">h").unpack_from
unpack_iqB = Struct(">iqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMetadataKey(Structure):
    """ShareGroupMetadata, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMetadataValue(Structure):
    """ShareGroupMetadata, versions 0-0."""

    epoch: int
    metadata_hash: int

    def __init__(
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


def decode_key_v0(view: memoryview, position: int) -> tuple[ShareGroupMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ShareGroupMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return ShareGroupMetadataKey(group_id), position


def encode_key_v0(message: ShareGroupMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ShareGroupMetadataValue, int]:
    epoch, metadata_hash, tags = unpack_iqB(view, position)
    position += 13
    if tags:
        position = skip_tags(view, position, tags)
    return ShareGroupMetadataValue(epoch, metadata_hash), position


def encode_value_v0(message: ShareGroupMetadataValue, out: bytearray) -> Chunks:
    out += pack_iqx(message.epoch, message.metadata_hash)
    return [out]


SHARE_GROUP_METADATA_RECORD = RecordType(
    11,
    "ShareGroupMetadata",
    Message(
        "ShareGroupMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ShareGroupMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
