"""RenewDelegationToken: generated from renew_delegation_token.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, long_size, put_varint, skip_tags

pack_hqi = Struct(">hqi").pack
pack_hqix = Struct(">hqix").pack
pack_i = Struct(">i").pack
pack_q = Struct(">q").pack
pack_qx = Struct(">qx").pack
unpack_hqi = Struct(">hqi").unpack_from
unpack_hqiB = Struct(">hqiB").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qB = Struct(">qB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class RenewDelegationTokenRequest(Structure):
    """RenewDelegationToken, versions 1-2."""

    hmac: bytes
    renew_period_ms: int

    def __init__(
        self,
        hmac: bytes = b"",
        renew_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class RenewDelegationTokenResponse(Structure):
    """RenewDelegationToken, versions 1-2."""

    error_code: int
    expiry_timestamp_ms: int
    throttle_time_ms: int

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms


def decode_request_v1(view: memoryview, position: int) -> tuple[RenewDelegationTokenRequest, int]:
    (size,) = unpack_i(view, position)
    position += 4
    if size < 0:
        raise Malformed("RenewDelegationTokenRequest.hmac: negative length")
    end = position + size
    hmac = view[position:end].tobytes()
    position = end
    (renew_period_ms,) = unpack_q(view, position)
    position += 8
    return RenewDelegationTokenRequest(hmac, renew_period_ms), position


def encode_request_v1(message: RenewDelegationTokenRequest, out: bytearray) -> Chunks:
    hmac = message.hmac
    out += pack_i(len(hmac))
    out += hmac
    out += pack_q(message.renew_period_ms)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[RenewDelegationTokenRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    hmac = view[position:end].tobytes()
    position = end
    renew_period_ms, tags = unpack_qB(view, position)
    position += 9
    if tags:
        position = skip_tags(view, position, tags)
    return RenewDelegationTokenRequest(hmac, renew_period_ms), position


def encode_request_v2(message: RenewDelegationTokenRequest, out: bytearray) -> Chunks:
    hmac = message.hmac
    size = len(hmac) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += hmac
    out += pack_qx(message.renew_period_ms)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[RenewDelegationTokenResponse, int]:
    error_code, expiry_timestamp_ms, throttle_time_ms = unpack_hqi(view, position)
    position += 14
    message = RenewDelegationTokenResponse(error_code, expiry_timestamp_ms, throttle_time_ms)
    return message, position


def encode_response_v1(message: RenewDelegationTokenResponse, out: bytearray) -> Chunks:
    out += pack_hqi(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[RenewDelegationTokenResponse, int]:
    error_code, expiry_timestamp_ms, throttle_time_ms, tags = unpack_hqiB(view, position)
    position += 15
    if tags:
        position = skip_tags(view, position, tags)
    message = RenewDelegationTokenResponse(error_code, expiry_timestamp_ms, throttle_time_ms)
    return message, position


def encode_response_v2(message: RenewDelegationTokenResponse, out: bytearray) -> Chunks:
    out += pack_hqix(message.error_code, message.expiry_timestamp_ms, message.throttle_time_ms)
    return [out]


RENEW_DELEGATION_TOKEN = Api(
    39,
    "RenewDelegationToken",
    Message(
        "RenewDelegationTokenRequest",
        (1, 2),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "RenewDelegationTokenResponse",
        (1, 2),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
