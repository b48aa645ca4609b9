"""Heartbeat: generated from heartbeat.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, long_size, put_varint, skip_tags, varint_tail

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihx = Struct(">ihx").pack
unpack_h = Struct(">h").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class HeartbeatRequest(Structure):
    """Heartbeat, versions 0-4."""

    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None

    def __init__(
        self,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class HeartbeatResponse(Structure):
    """Heartbeat, versions 0-4."""

    throttle_time_ms: int
    error_code: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def decode_request_v0(view: memoryview, position: int) -> tuple[HeartbeatRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("HeartbeatRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("HeartbeatRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return HeartbeatRequest(group_id, generation_id, member_id, None), position


def encode_request_v0(message: HeartbeatRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id, len(data))
    out += data
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[HeartbeatRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("HeartbeatRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("HeartbeatRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    group_instance_id: str | None = None
    if size >= 0:
        end = position + size
        group_instance_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("HeartbeatRequest.group_instance_id: negative length")
    return HeartbeatRequest(group_id, generation_id, member_id, group_instance_id), position


def encode_request_v3(message: HeartbeatRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id, len(data))
    out += data
    group_instance_id = message.group_instance_id
    data = b"" if group_instance_id is None else group_instance_id.encode()
    out += pack_h(-1 if group_instance_id is None else len(data))
    out += data
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[HeartbeatRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id, size = unpack_iB(view, position)
    position += 5
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    member_id = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    group_instance_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        group_instance_id = view[position:end].tobytes().decode()
        position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return HeartbeatRequest(group_id, generation_id, member_id, group_instance_id), position


def encode_request_v4(message: HeartbeatRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_i(message.generation_id)
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        out.append(0)
    else:
        data = group_instance_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[HeartbeatResponse, int]:
    (error_code,) = unpack_h(view, position)
    position += 2
    return HeartbeatResponse(0, error_code), position


def encode_response_v0(message: HeartbeatResponse, out: bytearray) -> Chunks:
    out += pack_h(message.error_code)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[HeartbeatResponse, int]:
    throttle_time_ms, error_code = unpack_ih(view, position)
    position += 6
    return HeartbeatResponse(throttle_time_ms, error_code), position


def encode_response_v1(message: HeartbeatResponse, out: bytearray) -> Chunks:
    out += pack_ih(message.throttle_time_ms, message.error_code)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[HeartbeatResponse, int]:
    throttle_time_ms, error_code, tags = unpack_ihB(view, position)
    position += 7
    if tags:
        position = skip_tags(view, position, tags)
    return HeartbeatResponse(throttle_time_ms, error_code), position


def encode_response_v4(message: HeartbeatResponse, out: bytearray) -> Chunks:
    out += pack_ihx(message.throttle_time_ms, message.error_code)
    return [out]


HEARTBEAT = Api(
    12,
    "Heartbeat",
    Message(
        "HeartbeatRequest",
        (0, 4),
        4,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
        },
    ),
    Message(
        "HeartbeatResponse",
        (0, 4),
        4,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            4: (decode_response_v4, encode_response_v4),
        },
    ),
)
