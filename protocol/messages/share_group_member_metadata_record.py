"""ShareGroupMemberMetadata: generated from share_group_member_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_h = Struct(">h").pack
unpack_h = Struct(">h").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMemberMetadataKey(Structure):
    """ShareGroupMemberMetadata, versions 0-0."""

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
class ShareGroupMemberMetadataValue(Structure):
    """ShareGroupMemberMetadata, versions 0-0."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]

    def __init__(
        self,
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = ABSENT,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is ABSENT else subscribed_topic_names


def decode_key_v0(view: memoryview, position: int) -> tuple[ShareGroupMemberMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ShareGroupMemberMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ShareGroupMemberMetadataKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return ShareGroupMemberMetadataKey(group_id, member_id), position


def encode_key_v0(message: ShareGroupMemberMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ShareGroupMemberMetadataValue, int]:
    size = view[position]
    position += 1
    rack_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        rack_id = view[position:end].tobytes().decode()
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
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareGroupMemberMetadataValue(rack_id, client_id, client_host, subscribed_topic_names)
    return message, position


def encode_value_v0(message: ShareGroupMemberMetadataValue, out: bytearray) -> Chunks:
    rack_id = message.rack_id
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
    client_id = message.client_id
    data = client_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    client_host = message.client_host
    data = client_host.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    subscribed_topic_names = message.subscribed_topic_names
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
    out.append(0)
    return [out]


SHARE_GROUP_MEMBER_METADATA_RECORD = RecordType(
    10,
    "ShareGroupMemberMetadata",
    Message(
        "ShareGroupMemberMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ShareGroupMemberMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
