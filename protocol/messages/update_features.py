"""UpdateFeatures: generated from update_features.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
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
pack_h = Struct(">h").pack
pack_htx = Struct(">h?x").pack
pack_hbx = Struct(">hbx").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
unpack_tB = Struct(">?B").unpack_from
unpack_htB = Struct(">h?B").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hbB = Struct(">hbB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class FeatureUpdateKey(Structure):
    """Part of UpdateFeatures."""

    feature: str
    max_version_level: int
    allow_downgrade: bool
    upgrade_type: int

    def __init__(
        self,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,
        upgrade_type: int = 1,
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class UpdateFeaturesRequest(Structure):
    """UpdateFeatures, versions 0-2."""

    timeout_ms: int
    feature_updates: list[FeatureUpdateKey]
    validate_only: bool

    def __init__(
        self,
        timeout_ms: int = 60000,
        feature_updates: list[FeatureUpdateKey] = ABSENT,
        validate_only: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = [] if feature_updates is ABSENT else feature_updates
        self.validate_only = validate_only


@dataclass(slots=True, init=False, repr=False, eq=False)
class UpdatableFeatureResult(Structure):
    """Part of UpdateFeatures."""

    feature: str
    error_code: int
    error_message: str | None

    def __init__(
        self,
        feature: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class UpdateFeaturesResponse(Structure):
    """UpdateFeatures, versions 0-2."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[UpdatableFeatureResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[UpdatableFeatureResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[UpdateFeaturesRequest, int]:
    elements = 0
    timeout_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    feature_updates: list[FeatureUpdateKey] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        feature = view[position:end].tobytes().decode()
        position = end
        max_version_level, allow_downgrade, tags = unpack_htB(view, position)
        position += 4
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        feature_updates.append(FeatureUpdateKey(feature, max_version_level, allow_downgrade, 1))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return UpdateFeaturesRequest(timeout_ms, feature_updates, False), position


def encode_request_v0(message: UpdateFeaturesRequest, out: bytearray) -> Chunks:
    feature_updates = message.feature_updates
    out += pack_i(message.timeout_ms)
    size = len(feature_updates) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for feature_update_key in feature_updates:
        feature = feature_update_key.feature
        data = feature.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_htx(feature_update_key.max_version_level, feature_update_key.allow_downgrade)
    out.append(0)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[UpdateFeaturesRequest, int]:
    elements = 0
    timeout_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    feature_updates: list[FeatureUpdateKey] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        feature = view[position:end].tobytes().decode()
        position = end
        max_version_level, upgrade_type, tags = unpack_hbB(view, position)
        position += 4
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        feature_updates.append(FeatureUpdateKey(feature, max_version_level, False, upgrade_type))
    validate_only, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return UpdateFeaturesRequest(timeout_ms, feature_updates, validate_only), position


def encode_request_v1(message: UpdateFeaturesRequest, out: bytearray) -> Chunks:
    feature_updates = message.feature_updates
    out += pack_i(message.timeout_ms)
    size = len(feature_updates) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for feature_update_key in feature_updates:
        feature = feature_update_key.feature
        data = feature.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_hbx(feature_update_key.max_version_level, feature_update_key.upgrade_type)
    out += pack_tx(message.validate_only)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[UpdateFeaturesResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    results: list[UpdatableFeatureResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        feature = view[position:end].tobytes().decode()
        position = end
        results_error_code, size = unpack_hB(view, position)
        position += 3
        results_error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            results_error_message = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(UpdatableFeatureResult(feature, results_error_code, results_error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = UpdateFeaturesResponse(throttle_time_ms, error_code, error_message, results)
    return message, position


def encode_response_v0(message: UpdateFeaturesResponse, out: bytearray) -> Chunks:
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
    results = message.results
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for updatable_feature_result in results:
        feature = updatable_feature_result.feature
        data = feature.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        updatable_feature_result_error_message = updatable_feature_result.error_message
        out += pack_h(updatable_feature_result.error_code)
        if updatable_feature_result_error_message is None:
            out.append(0)
        else:
            data = updatable_feature_result_error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[UpdateFeaturesResponse, int]:
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
    return UpdateFeaturesResponse(throttle_time_ms, error_code, error_message, []), position


def encode_response_v2(message: UpdateFeaturesResponse, out: bytearray) -> Chunks:
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


UPDATE_FEATURES = Api(
    57,
    "UpdateFeatures",
    Message(
        "UpdateFeaturesRequest",
        (0, 2),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "UpdateFeaturesResponse",
        (0, 2),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
