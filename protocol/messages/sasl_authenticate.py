"""SaslAuthenticate: generated from sasl_authenticate.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, long_size, put_varint, skip_tags, varint_tail

pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_q = Struct(">q").pack
pack_qx = Struct(">qx").pack
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qB = Struct(">qB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslAuthenticateRequest(Structure):
    """SaslAuthenticate, versions 0-2."""

    auth_bytes: bytes

    def __init__(
        self,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslAuthenticateResponse(Structure):
    """SaslAuthenticate, versions 0-2."""

    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms


def decode_request_v0(view: memoryview, position: int) -> tuple[SaslAuthenticateRequest, int]:
    (size,) = unpack_i(view, position)
    position += 4
    if size < 0:
        raise Malformed("SaslAuthenticateRequest.auth_bytes: negative length")
    end = position + size
    auth_bytes = view[position:end].tobytes()
    position = end
    return SaslAuthenticateRequest(auth_bytes), position


def encode_request_v0(message: SaslAuthenticateRequest, out: bytearray) -> Chunks:
    auth_bytes = message.auth_bytes
    out += pack_i(len(auth_bytes))
    out += auth_bytes
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[SaslAuthenticateRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    auth_bytes = view[position:end].tobytes()
    position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return SaslAuthenticateRequest(auth_bytes), position


def encode_request_v2(message: SaslAuthenticateRequest, out: bytearray) -> Chunks:
    auth_bytes = message.auth_bytes
    size = len(auth_bytes) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += auth_bytes
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[SaslAuthenticateResponse, int]:
    error_code, size = unpack_hh(view, position)
    position += 4
    error_message: str | None = None
    if size >= 0:
        end = position + size
        error_message = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("SaslAuthenticateResponse.error_message: negative length")
    (size,) = unpack_i(view, position)
    position += 4
    if size < 0:
        raise Malformed("SaslAuthenticateResponse.auth_bytes: negative length")
    end = position + size
    auth_bytes = view[position:end].tobytes()
    position = end
    return SaslAuthenticateResponse(error_code, error_message, auth_bytes, 0), position


def encode_response_v0(message: SaslAuthenticateResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    data = b"" if error_message is None else error_message.encode()
    out += pack_hh(message.error_code, -1 if error_message is None else len(data))
    out += data
    auth_bytes = message.auth_bytes
    out += pack_i(len(auth_bytes))
    out += auth_bytes
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[SaslAuthenticateResponse, int]:
    error_code, size = unpack_hh(view, position)
    position += 4
    error_message: str | None = None
    if size >= 0:
        end = position + size
        error_message = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("SaslAuthenticateResponse.error_message: negative length")
    (size,) = unpack_i(view, position)
    position += 4
    if size < 0:
        raise Malformed("SaslAuthenticateResponse.auth_bytes: negative length")
    end = position + size
    auth_bytes = view[position:end].tobytes()
    position = end
    (session_lifetime_ms,) = unpack_q(view, position)
    position += 8
    message = SaslAuthenticateResponse(error_code, error_message, auth_bytes, session_lifetime_ms)
    return message, position


def encode_response_v1(message: SaslAuthenticateResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    data = b"" if error_message is None else error_message.encode()
    out += pack_hh(message.error_code, -1 if error_message is None else len(data))
    out += data
    auth_bytes = message.auth_bytes
    out += pack_i(len(auth_bytes))
    out += auth_bytes
    out += pack_q(message.session_lifetime_ms)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[SaslAuthenticateResponse, int]:
    error_code, size = unpack_hB(view, position)
    position += 3
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    auth_bytes = view[position:end].tobytes()
    position = end
    session_lifetime_ms, tags = unpack_qB(view, position)
    position += 9
    if tags:
        position = skip_tags(view, position, tags)
    message = SaslAuthenticateResponse(error_code, error_message, auth_bytes, session_lifetime_ms)
    return message, position


def encode_response_v2(message: SaslAuthenticateResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_h(message.error_code)
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
    auth_bytes = message.auth_bytes
    size = len(auth_bytes) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += auth_bytes
    out += pack_qx(message.session_lifetime_ms)
    return [out]


SASL_AUTHENTICATE = Api(
    36,
    "SaslAuthenticate",
    Message(
        "SaslAuthenticateRequest",
        (0, 2),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "SaslAuthenticateResponse",
        (0, 2),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
