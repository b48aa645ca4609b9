"""StreamsGroupMemberMetadata: generated from streams_group_member_metadata_record.schema by protocol/generate. Do not edit."""

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

pack_Hx = Struct(">Hx").pack
pack_h = Struct(">h").pack
pack_ii = Struct(">ii").pack
unpack_HB = Struct(">HB").unpack_from
unpack_b = Struct(">b").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_iiB = Struct(">iiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMemberMetadataKey(Structure):
    """StreamsGroupMemberMetadata, versions 0-0."""

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
class Endpoint(Structure):
    """Part of StreamsGroupMemberMetadata."""

    host: str
    port: int

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


@dataclass(slots=True, init=False, repr=False, eq=False)
class KeyValue(Structure):
    """Part of StreamsGroupMemberMetadata."""

    key: str
    value: str

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMemberMetadataValue(Structure):
    """StreamsGroupMemberMetadata, versions 0-0."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue]

    def __init__(
        self,
        instance_id: str | None = "",
        rack_id: str | None = "",
        client_id: str = "",
        client_host: str = "",
        rebalance_timeout_ms: int = -1,
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = ABSENT,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is ABSENT else client_tags


def decode_key_v0(view: memoryview, position: int) -> tuple[StreamsGroupMemberMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupMemberMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupMemberMetadataKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return StreamsGroupMemberMetadataKey(group_id, member_id), position


def encode_key_v0(message: StreamsGroupMemberMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[StreamsGroupMemberMetadataValue, int]:
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
    rebalance_timeout_ms, topology_epoch, size = unpack_iiB(view, position)
    position += 9
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    process_id = view[position:end].tobytes().decode()
    position = end
    (user_endpoint_present,) = unpack_b(view, position)
    position += 1
    user_endpoint: Endpoint | None = None
    if user_endpoint_present >= 0:
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, tags = unpack_HB(view, position)
        position += 3
        if tags:
            position = skip_tags(view, position, tags)
        user_endpoint = Endpoint(host, port)
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    client_tags: list[KeyValue] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        key = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        value = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        client_tags.append(KeyValue(key, value))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = StreamsGroupMemberMetadataValue(
        instance_id,
        rack_id,
        client_id,
        client_host,
        rebalance_timeout_ms,
        topology_epoch,
        process_id,
        user_endpoint,
        client_tags,
    )
    return message, position


def encode_value_v0(message: StreamsGroupMemberMetadataValue, out: bytearray) -> Chunks:
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
    process_id = message.process_id
    out += pack_ii(message.rebalance_timeout_ms, message.topology_epoch)
    data = process_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    user_endpoint = message.user_endpoint
    if user_endpoint is None:
        out.append(0xFF)
    else:
        out.append(1)
        host = user_endpoint.host
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_Hx(user_endpoint.port)
    client_tags = message.client_tags
    size = len(client_tags) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for key_value in client_tags:
        key = key_value.key
        data = key.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        value = key_value.value
        data = value.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


STREAMS_GROUP_MEMBER_METADATA_RECORD = RecordType(
    19,
    "StreamsGroupMemberMetadata",
    Message(
        "StreamsGroupMemberMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "StreamsGroupMemberMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
