"""ConsumerGroupMemberMetadata: generated from consumer_group_member_metadata_record.schema by protocol/generate. Do not edit."""

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
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    varint_tail,
    wrong_tag_size,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
unpack_h = Struct(">h").unpack_from
unpack_iB = Struct(">iB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMemberMetadataKey(Structure):
    """ConsumerGroupMemberMetadata, versions 0-0."""

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
class ClassicProtocol(Structure):
    """Part of ConsumerGroupMemberMetadata."""

    name: str
    metadata: bytes

    def __init__(
        self,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class ClassicMemberMetadata(Structure):
    """Part of ConsumerGroupMemberMetadata."""

    session_timeout_ms: int
    supported_protocols: list[ClassicProtocol]

    def __init__(
        self,
        session_timeout_ms: int = 0,
        supported_protocols: list[ClassicProtocol] = ABSENT,
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is ABSENT else supported_protocols


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMemberMetadataValue(Structure):
    """ConsumerGroupMemberMetadata, versions 0-0."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None

    def __init__(
        self,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: list[str] = ABSENT,
        subscribed_topic_regex: str | None = "",
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = ABSENT,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is ABSENT else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = ClassicMemberMetadata() if classic_member_metadata is ABSENT else classic_member_metadata


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupMemberMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupMemberMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupMemberMetadataKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupMemberMetadataKey(group_id, member_id), position


def encode_key_v0(message: ConsumerGroupMemberMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupMemberMetadataValue, int]:
    size = view[position]
    position += 1
    instance_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        instance_id = view[position:end].tobytes().decode()
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
    size = view[position]
    position += 1
    subscribed_topic_regex: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        subscribed_topic_regex = view[position:end].tobytes().decode()
        position = end
    rebalance_timeout_ms, size = unpack_iB(view, position)
    position += 5
    server_assignor: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        server_assignor = view[position:end].tobytes().decode()
        position = end
    consumer_group_member_metadata_value_tags = view[position]
    position += 1
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()
    if consumer_group_member_metadata_value_tags:
        consumer_group_member_metadata_value_tags, position = tag_count(view, position, consumer_group_member_metadata_value_tags)
        for _ in range(consumer_group_member_metadata_value_tags):
            tag, position, consumer_group_member_metadata_value_tag_end = read_tag(view, position)
            if tag == 0:
                classic_member_metadata_present = view[position]
                position += 1
                tagged_classic_member_metadata: ClassicMemberMetadata | None = None
                if classic_member_metadata_present > 0:
                    session_timeout_ms, count = unpack_iB(view, position)
                    position += 5
                    if not 0 < count < 0x80:
                        count, position = long_count(view, position, count, 3)
                    supported_protocols: list[ClassicProtocol] = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        name = view[position:end].tobytes().decode()
                        position = end
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        metadata = view[position:end].tobytes()
                        position = end
                        tags = view[position]
                        position += 1
                        if tags:
                            position = skip_tags(view, position, tags)
                        supported_protocols.append(ClassicProtocol(name, metadata))
                    tags = view[position]
                    position += 1
                    if tags:
                        position = skip_tags(view, position, tags)
                    tagged_classic_member_metadata = ClassicMemberMetadata(
                        session_timeout_ms,
                        supported_protocols,
                    )
                classic_member_metadata = tagged_classic_member_metadata
                if position != consumer_group_member_metadata_value_tag_end:
                    raise wrong_tag_size(0)
            position = consumer_group_member_metadata_value_tag_end
    message = ConsumerGroupMemberMetadataValue(
        instance_id,
        rack_id,
        client_id,
        client_host,
        subscribed_topic_names,
        subscribed_topic_regex,
        rebalance_timeout_ms,
        server_assignor,
        classic_member_metadata,
    )
    return message, position


def encode_value_v0(message: ConsumerGroupMemberMetadataValue, out: bytearray) -> Chunks:
    instance_id = message.instance_id
    if instance_id is None:
        out.append(0)
    else:
        data = instance_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
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
    subscribed_topic_regex = message.subscribed_topic_regex
    if subscribed_topic_regex is None:
        out.append(0)
    else:
        data = subscribed_topic_regex.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    server_assignor = message.server_assignor
    out += pack_i(message.rebalance_timeout_ms)
    if server_assignor is None:
        out.append(0)
    else:
        data = server_assignor.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    if message.classic_member_metadata == ClassicMemberMetadata():
        out.append(0)
    else:
        consumer_group_member_metadata_value_tags = 0
        consumer_group_member_metadata_value_tagged = bytearray()
        if message.classic_member_metadata != ClassicMemberMetadata():
            consumer_group_member_metadata_value_tags += 1
            classic_member_metadata_body = bytearray()
            classic_member_metadata = message.classic_member_metadata
            if classic_member_metadata is None:
                classic_member_metadata_body.append(0)
            else:
                classic_member_metadata_body.append(1)
                supported_protocols = classic_member_metadata.supported_protocols
                classic_member_metadata_body += pack_i(classic_member_metadata.session_timeout_ms)
                size = len(supported_protocols) + 1
                if size < 0x80:
                    classic_member_metadata_body.append(size)
                else:
                    put_varint(classic_member_metadata_body, size)
                for classic_protocol in supported_protocols:
                    name = classic_protocol.name
                    data = name.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        classic_member_metadata_body.append(size)
                    else:
                        put_varint(classic_member_metadata_body, size)
                    classic_member_metadata_body += data
                    metadata = classic_protocol.metadata
                    size = len(metadata) + 1
                    if size < 0x80:
                        classic_member_metadata_body.append(size)
                    else:
                        put_varint(classic_member_metadata_body, size)
                    classic_member_metadata_body += metadata
                    classic_member_metadata_body.append(0)
                classic_member_metadata_body.append(0)
            put_tag(consumer_group_member_metadata_value_tagged, 0, classic_member_metadata_body)
        out.append(consumer_group_member_metadata_value_tags)
        out += consumer_group_member_metadata_value_tagged
    return [out]


CONSUMER_GROUP_MEMBER_METADATA_RECORD = RecordType(
    5,
    "ConsumerGroupMemberMetadata",
    Message(
        "ConsumerGroupMemberMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupMemberMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
