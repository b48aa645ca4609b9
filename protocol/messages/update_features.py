"""UpdateFeatures: generated from update_features.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class FeatureUpdateKey(Structure):
    """Part of UpdateFeatures."""

    feature: str
    max_version_level: int
    allow_downgrade: bool
    upgrade_type: int

    def __init__(
        self, feature: str = "", max_version_level: int = 0, allow_downgrade: bool = False,
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
        self, timeout_ms: int = 60000, feature_updates: list[FeatureUpdateKey] = ABSENT,
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
        self, feature: str = "", error_code: int = 0, error_message: str | None = ""
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
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        results: list[UpdatableFeatureResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is ABSENT else results


def read_feature_update_key(reader: Reader, version: int) -> FeatureUpdateKey:
    message = FeatureUpdateKey(
        reader.string(),
        reader.int16(),
        reader.boolean() if version <= 0 else False,
        reader.int8() if version >= 1 else 1,
    )
    reader.skip_tags()
    return message


def write_feature_update_key(writer: Writer, message: FeatureUpdateKey, version: int) -> None:
    writer.string(message.feature)
    writer.int16(message.max_version_level)
    if version <= 0:
        writer.boolean(message.allow_downgrade)
    if version >= 1:
        writer.int8(message.upgrade_type)
    writer.no_tags()


def read_update_features_request(reader: Reader, version: int) -> UpdateFeaturesRequest:
    message = UpdateFeaturesRequest(
        reader.int32(),
        reader.array(read_feature_update_key, version, 5),
        reader.boolean() if version >= 1 else False,
    )
    reader.skip_tags()
    return message


def write_update_features_request(
    writer: Writer, message: UpdateFeaturesRequest, version: int
) -> None:
    writer.int32(message.timeout_ms)
    writer.array(message.feature_updates, write_feature_update_key, version)
    if version >= 1:
        writer.boolean(message.validate_only)
    writer.no_tags()


def read_updatable_feature_result(reader: Reader, version: int) -> UpdatableFeatureResult:
    message = UpdatableFeatureResult(reader.string(), reader.int16(), reader.optional_string())
    reader.skip_tags()
    return message


def write_updatable_feature_result(
    writer: Writer, message: UpdatableFeatureResult, version: int
) -> None:
    writer.string(message.feature)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_update_features_response(reader: Reader, version: int) -> UpdateFeaturesResponse:
    message = UpdateFeaturesResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_updatable_feature_result, version, 5) if version <= 1 else [],
    )
    reader.skip_tags()
    return message


def write_update_features_response(
    writer: Writer, message: UpdateFeaturesResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    if version <= 1:
        writer.array(message.results, write_updatable_feature_result, version)
    writer.no_tags()


UPDATE_FEATURES = Api(
    57,
    "UpdateFeatures",
    message_of_fields(
        "UpdateFeaturesRequest", (0, 2), 0, read_update_features_request, write_update_features_request,
        bounded=True,
    ),
    message_of_fields(
        "UpdateFeaturesResponse", (0, 2), 0, read_update_features_response,
        write_update_features_response,
    ),
)
