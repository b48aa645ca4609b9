"""SaslHandshake: generated from sasl_handshake.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import ABSENT, Chunks, Structure, check_count

pack_h = Struct(">h").pack
pack_hi = Struct(">hi").pack
unpack_h = Struct(">h").unpack_from
unpack_hi = Struct(">hi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslHandshakeRequest(Structure):
    """SaslHandshake, versions 0-1."""

    mechanism: str

    def __init__(
        self,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslHandshakeResponse(Structure):
    """SaslHandshake, versions 0-1."""

    error_code: int
    mechanisms: list[str]

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is ABSENT else mechanisms


def decode_request_v0(view: memoryview, position: int) -> tuple[SaslHandshakeRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("SaslHandshakeRequest.mechanism: negative length")
    end = position + size
    mechanism = view[position:end].tobytes().decode()
    position = end
    return SaslHandshakeRequest(mechanism), position


def encode_request_v0(message: SaslHandshakeRequest, out: bytearray) -> Chunks:
    mechanism = message.mechanism
    data = mechanism.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[SaslHandshakeResponse, int]:
    error_code, count = unpack_hi(view, position)
    position += 6
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    mechanisms: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("mechanisms[]: negative length")
        end = position + size
        mechanisms_item = view[position:end].tobytes().decode()
        position = end
        mechanisms.append(mechanisms_item)
    return SaslHandshakeResponse(error_code, mechanisms), position


def encode_response_v0(message: SaslHandshakeResponse, out: bytearray) -> Chunks:
    mechanisms = message.mechanisms
    out += pack_hi(message.error_code, len(mechanisms))
    for mechanisms_item in mechanisms:
        data = mechanisms_item.encode()
        out += pack_h(len(data))
        out += data
    return [out]


SASL_HANDSHAKE = Api(
    17,
    "SaslHandshake",
    Message(
        "SaslHandshakeRequest",
        (0, 1),
        NEVER,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "SaslHandshakeResponse",
        (0, 1),
        NEVER,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
