"""UnregisterBroker: generated from unregister_broker.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import Chunks, Structure, put_varint, skip_tags, varint_tail

pack_ih = Struct(">ih").pack
pack_ix = Struct(">ix").pack
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class UnregisterBrokerRequest(Structure):
    """UnregisterBroker, versions 0-0."""

    broker_id: int

    def __init__(
        self,
        broker_id: int = 0,
    ) -> None:
        self.broker_id = broker_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class UnregisterBrokerResponse(Structure):
    """UnregisterBroker, versions 0-0."""

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


def decode_request_v0(view: memoryview, position: int) -> tuple[UnregisterBrokerRequest, int]:
    broker_id, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return UnregisterBrokerRequest(broker_id), position


def encode_request_v0(message: UnregisterBrokerRequest, out: bytearray) -> Chunks:
    out += pack_ix(message.broker_id)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[UnregisterBrokerResponse, int]:
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
    return UnregisterBrokerResponse(throttle_time_ms, error_code, error_message), position


def encode_response_v0(message: UnregisterBrokerResponse, out: bytearray) -> Chunks:
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


UNREGISTER_BROKER = Api(
    64,
    "UnregisterBroker",
    Message(
        "UnregisterBrokerRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "UnregisterBrokerResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
