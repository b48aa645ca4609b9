"""PushTelemetry: generated from push_telemetry.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import ZERO_UUID, Chunks, Structure, long_size, put_varint, skip_tags

pack_16sitb = Struct(">16si?b").pack
pack_ihx = Struct(">ihx").pack
unpack_16sitbB = Struct(">16si?bB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PushTelemetryRequest(Structure):
    """PushTelemetry, versions 0-0."""

    client_instance_id: bytes
    subscription_id: int
    terminating: bool
    compression_type: int
    metrics: bytes

    def __init__(
        self,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics


@dataclass(slots=True, init=False, repr=False, eq=False)
class PushTelemetryResponse(Structure):
    """PushTelemetry, versions 0-0."""

    throttle_time_ms: int
    error_code: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def decode_request_v0(view: memoryview, position: int) -> tuple[PushTelemetryRequest, int]:
    (
        client_instance_id,
        subscription_id,
        terminating,
        compression_type,
        size,
    ) = unpack_16sitbB(view, position)
    position += 23
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    metrics = view[position:end].tobytes()
    position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = PushTelemetryRequest(
        client_instance_id,
        subscription_id,
        terminating,
        compression_type,
        metrics,
    )
    return message, position


def encode_request_v0(message: PushTelemetryRequest, out: bytearray) -> Chunks:
    metrics = message.metrics
    out += pack_16sitb(
        message.client_instance_id,
        message.subscription_id,
        message.terminating,
        message.compression_type,
    )
    size = len(metrics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += metrics
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[PushTelemetryResponse, int]:
    throttle_time_ms, error_code, tags = unpack_ihB(view, position)
    position += 7
    if tags:
        position = skip_tags(view, position, tags)
    return PushTelemetryResponse(throttle_time_ms, error_code), position


def encode_response_v0(message: PushTelemetryResponse, out: bytearray) -> Chunks:
    out += pack_ihx(message.throttle_time_ms, message.error_code)
    return [out]


PUSH_TELEMETRY = Api(
    72,
    "PushTelemetry",
    Message(
        "PushTelemetryRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "PushTelemetryResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
