"""FindCoordinator: generated from find_coordinator.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
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

pack_b = Struct(">b").pack
pack_bx = Struct(">bx").pack
pack_h = Struct(">h").pack
pack_hih = Struct(">hih").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihh = Struct(">ihh").pack
pack_ix = Struct(">ix").pack
unpack_b = Struct(">b").unpack_from
unpack_bB = Struct(">bB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hih = Struct(">hih").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihh = Struct(">ihh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class FindCoordinatorRequest(Structure):
    """FindCoordinator, versions 0-6."""

    key: str
    key_type: int
    coordinator_keys: list[str]

    def __init__(
        self,
        key: str = "",
        key_type: int = 0,
        coordinator_keys: list[str] = ABSENT,
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = [] if coordinator_keys is ABSENT else coordinator_keys


@dataclass(slots=True, init=False, repr=False, eq=False)
class Coordinator(Structure):
    """Part of FindCoordinator."""

    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class FindCoordinatorResponse(Structure):
    """FindCoordinator, versions 0-6."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: list[Coordinator]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        coordinators: list[Coordinator] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = [] if coordinators is ABSENT else coordinators


def decode_request_v0(view: memoryview, position: int) -> tuple[FindCoordinatorRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("FindCoordinatorRequest.key: negative length")
    end = position + size
    key = view[position:end].tobytes().decode()
    position = end
    return FindCoordinatorRequest(key, 0, []), position


def encode_request_v0(message: FindCoordinatorRequest, out: bytearray) -> Chunks:
    key = message.key
    data = key.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[FindCoordinatorRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("FindCoordinatorRequest.key: negative length")
    end = position + size
    key = view[position:end].tobytes().decode()
    position = end
    (key_type,) = unpack_b(view, position)
    position += 1
    return FindCoordinatorRequest(key, key_type, []), position


def encode_request_v1(message: FindCoordinatorRequest, out: bytearray) -> Chunks:
    key = message.key
    data = key.encode()
    out += pack_h(len(data))
    out += data
    out += pack_b(message.key_type)
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[FindCoordinatorRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    key = view[position:end].tobytes().decode()
    position = end
    key_type, tags = unpack_bB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return FindCoordinatorRequest(key, key_type, []), position


def encode_request_v3(message: FindCoordinatorRequest, out: bytearray) -> Chunks:
    key = message.key
    data = key.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    out += pack_bx(message.key_type)
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[FindCoordinatorRequest, int]:
    key_type, count = unpack_bB(view, position)
    position += 2
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    coordinator_keys: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        coordinator_keys_item = view[position:end].tobytes().decode()
        position = end
        coordinator_keys.append(coordinator_keys_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return FindCoordinatorRequest("", key_type, coordinator_keys), position


def encode_request_v4(message: FindCoordinatorRequest, out: bytearray) -> Chunks:
    coordinator_keys = message.coordinator_keys
    out += pack_b(message.key_type)
    size = len(coordinator_keys) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for coordinator_keys_item in coordinator_keys:
        data = coordinator_keys_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[FindCoordinatorResponse, int]:
    error_code, node_id, size = unpack_hih(view, position)
    position += 8
    if size < 0:
        raise Malformed("FindCoordinatorResponse.host: negative length")
    end = position + size
    host = view[position:end].tobytes().decode()
    position = end
    (port,) = unpack_i(view, position)
    position += 4
    return FindCoordinatorResponse(0, error_code, "", node_id, host, port, []), position


def encode_response_v0(message: FindCoordinatorResponse, out: bytearray) -> Chunks:
    host = message.host
    data = host.encode()
    out += pack_hih(message.error_code, message.node_id, len(data))
    out += data
    out += pack_i(message.port)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[FindCoordinatorResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihh(view, position)
    position += 8
    error_message: str | None = None
    if size >= 0:
        end = position + size
        error_message = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("FindCoordinatorResponse.error_message: negative length")
    node_id, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("FindCoordinatorResponse.host: negative length")
    end = position + size
    host = view[position:end].tobytes().decode()
    position = end
    (port,) = unpack_i(view, position)
    position += 4
    message = FindCoordinatorResponse(
        throttle_time_ms,
        error_code,
        error_message,
        node_id,
        host,
        port,
        [],
    )
    return message, position


def encode_response_v1(message: FindCoordinatorResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    data = b"" if error_message is None else error_message.encode()
    out += pack_ihh(
        message.throttle_time_ms,
        message.error_code,
        -1 if error_message is None else len(data),
    )
    out += data
    host = message.host
    data = host.encode()
    out += pack_ih(message.node_id, len(data))
    out += data
    out += pack_i(message.port)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[FindCoordinatorResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    node_id, size = unpack_iB(view, position)
    position += 5
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    host = view[position:end].tobytes().decode()
    position = end
    port, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = FindCoordinatorResponse(
        throttle_time_ms,
        error_code,
        error_message,
        node_id,
        host,
        port,
        [],
    )
    return message, position


def encode_response_v3(message: FindCoordinatorResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
    if error_message is None:
        out.append(0)
    else:
        data = error_message.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    host = message.host
    out += pack_i(message.node_id)
    data = host.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    out += pack_ix(message.port)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[FindCoordinatorResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 14)
    coordinators: list[Coordinator] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        key = view[position:end].tobytes().decode()
        position = end
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, error_code, size = unpack_ihB(view, position)
        position += 7
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        coordinators.append(Coordinator(key, node_id, host, port, error_code, error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return FindCoordinatorResponse(throttle_time_ms, 0, "", 0, "", 0, coordinators), position


def encode_response_v4(message: FindCoordinatorResponse, out: bytearray) -> Chunks:
    coordinators = message.coordinators
    out += pack_i(message.throttle_time_ms)
    size = len(coordinators) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for coordinator in coordinators:
        key = coordinator.key
        data = key.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        host = coordinator.host
        out += pack_i(coordinator.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        error_message = coordinator.error_message
        out += pack_ih(coordinator.port, coordinator.error_code)
        if error_message is None:
            out.append(0)
        else:
            data = error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


FIND_COORDINATOR = Api(
    10,
    "FindCoordinator",
    Message(
        "FindCoordinatorRequest",
        (0, 6),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
        },
    ),
    Message(
        "FindCoordinatorResponse",
        (0, 6),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
        },
    ),
)
