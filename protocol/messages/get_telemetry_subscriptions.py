"""GetTelemetrySubscriptions: generated from get_telemetry_subscriptions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
)

pack_16sx = Struct(">16sx").pack
pack_ih16si = Struct(">ih16si").pack
pack_iit = Struct(">ii?").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_ih16siB = Struct(">ih16siB").unpack_from
unpack_iitB = Struct(">ii?B").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class GetTelemetrySubscriptionsRequest(Structure):
    """GetTelemetrySubscriptions, versions 0-0."""

    client_instance_id: bytes

    def __init__(
        self,
        client_instance_id: bytes = ZERO_UUID,
    ) -> None:
        self.client_instance_id = client_instance_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class GetTelemetrySubscriptionsResponse(Structure):
    """GetTelemetrySubscriptions, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    client_instance_id: bytes
    subscription_id: int
    accepted_compression_types: list[int]
    push_interval_ms: int
    telemetry_max_bytes: int
    delta_temporality: bool
    requested_metrics: list[str]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] = ABSENT,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = [] if accepted_compression_types is ABSENT else accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = [] if requested_metrics is ABSENT else requested_metrics


def decode_request_v0(view: memoryview, position: int) -> tuple[GetTelemetrySubscriptionsRequest, int]:
    client_instance_id, tags = unpack_16sB(view, position)
    position += 17
    if tags:
        position = skip_tags(view, position, tags)
    return GetTelemetrySubscriptionsRequest(client_instance_id), position


def encode_request_v0(message: GetTelemetrySubscriptionsRequest, out: bytearray) -> Chunks:
    out += pack_16sx(message.client_instance_id)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[GetTelemetrySubscriptionsResponse, int]:
    (
        throttle_time_ms,
        error_code,
        client_instance_id,
        subscription_id,
        count,
    ) = unpack_ih16siB(view, position)
    position += 27
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    count -= 1
    accepted_compression_types = list(unpack_from(f">{count}b", view, position))
    position += count
    push_interval_ms, telemetry_max_bytes, delta_temporality, count = unpack_iitB(view, position)
    position += 10
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    requested_metrics: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        requested_metrics_item = view[position:end].tobytes().decode()
        position = end
        requested_metrics.append(requested_metrics_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = GetTelemetrySubscriptionsResponse(
        throttle_time_ms,
        error_code,
        client_instance_id,
        subscription_id,
        accepted_compression_types,
        push_interval_ms,
        telemetry_max_bytes,
        delta_temporality,
        requested_metrics,
    )
    return message, position


def encode_response_v0(message: GetTelemetrySubscriptionsResponse, out: bytearray) -> Chunks:
    accepted_compression_types = message.accepted_compression_types
    out += pack_ih16si(
        message.throttle_time_ms,
        message.error_code,
        message.client_instance_id,
        message.subscription_id,
    )
    size = len(accepted_compression_types) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += pack(f">{len(accepted_compression_types)}b", *accepted_compression_types)
    requested_metrics = message.requested_metrics
    out += pack_iit(
        message.push_interval_ms,
        message.telemetry_max_bytes,
        message.delta_temporality,
    )
    size = len(requested_metrics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for requested_metrics_item in requested_metrics:
        data = requested_metrics_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


GET_TELEMETRY_SUBSCRIPTIONS = Api(
    71,
    "GetTelemetrySubscriptions",
    Message(
        "GetTelemetrySubscriptionsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "GetTelemetrySubscriptionsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
