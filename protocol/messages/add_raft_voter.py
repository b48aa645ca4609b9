"""AddRaftVoter: generated from add_raft_voter.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_tx = Struct(">?x").pack
pack_Hx = Struct(">Hx").pack
pack_ih = Struct(">ih").pack
pack_ii16s = Struct(">ii16s").pack
unpack_tB = Struct(">?B").unpack_from
unpack_HB = Struct(">HB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ii16sB = Struct(">ii16sB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class Listener(Structure):
    """Part of AddRaftVoter."""

    name: str
    host: str
    port: int

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddRaftVoterRequest(Structure):
    """AddRaftVoter, versions 0-1."""

    cluster_id: str | None
    timeout_ms: int
    voter_id: int
    voter_directory_id: bytes
    listeners: list[Listener]
    ack_when_committed: bool

    def __init__(
        self,
        cluster_id: str | None = "",
        timeout_ms: int = 0,
        voter_id: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        listeners: list[Listener] = ABSENT,
        ack_when_committed: bool = True,
    ) -> None:
        self.cluster_id = cluster_id
        self.timeout_ms = timeout_ms
        self.voter_id = voter_id
        self.voter_directory_id = voter_directory_id
        self.listeners = [] if listeners is ABSENT else listeners
        self.ack_when_committed = ack_when_committed


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddRaftVoterResponse(Structure):
    """AddRaftVoter, versions 0-1."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message


def decode_request_v0(view: memoryview, position: int) -> tuple[AddRaftVoterRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    timeout_ms, voter_id, voter_directory_id, count = unpack_ii16sB(view, position)
    position += 25
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    listeners: list[Listener] = []
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
        host = view[position:end].tobytes().decode()
        position = end
        port, tags = unpack_HB(view, position)
        position += 3
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        listeners.append(Listener(name, host, port))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AddRaftVoterRequest(
        cluster_id,
        timeout_ms,
        voter_id,
        voter_directory_id,
        listeners,
        True,
    )
    return message, position


def encode_request_v0(message: AddRaftVoterRequest, out: bytearray) -> Chunks:
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    listeners = message.listeners
    out += pack_ii16s(message.timeout_ms, message.voter_id, message.voter_directory_id)
    size = len(listeners) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for listener in listeners:
        name = listener.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        host = listener.host
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_Hx(listener.port)
    out.append(0)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[AddRaftVoterRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    timeout_ms, voter_id, voter_directory_id, count = unpack_ii16sB(view, position)
    position += 25
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    listeners: list[Listener] = []
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
        host = view[position:end].tobytes().decode()
        position = end
        port, tags = unpack_HB(view, position)
        position += 3
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        listeners.append(Listener(name, host, port))
    ack_when_committed, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    message = AddRaftVoterRequest(
        cluster_id,
        timeout_ms,
        voter_id,
        voter_directory_id,
        listeners,
        ack_when_committed,
    )
    return message, position


def encode_request_v1(message: AddRaftVoterRequest, out: bytearray) -> Chunks:
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    listeners = message.listeners
    out += pack_ii16s(message.timeout_ms, message.voter_id, message.voter_directory_id)
    size = len(listeners) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for listener in listeners:
        name = listener.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        host = listener.host
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_Hx(listener.port)
    out += pack_tx(message.ack_when_committed)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AddRaftVoterResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
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
    return AddRaftVoterResponse(throttle_time_ms, error_code, error_message), position


def encode_response_v0(message: AddRaftVoterResponse, out: bytearray) -> Chunks:
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
    out.append(0)
    return [out]


ADD_RAFT_VOTER = Api(
    80,
    "AddRaftVoter",
    Message(
        "AddRaftVoterRequest",
        (0, 1),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "AddRaftVoterResponse",
        (0, 1),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
