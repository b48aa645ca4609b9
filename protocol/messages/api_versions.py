"""ApiVersions: generated from api_versions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class PeerHello(Structure):
    """Part of ApiVersions."""

    node_id: int
    session: int
    purpose: str
    number: int

    def __init__(
        self, node_id: int = 0, session: int = 0, purpose: str = "", number: int = 0
    ) -> None:
        self.node_id = node_id
        self.session = session
        self.purpose = purpose
        self.number = number


@dataclass(slots=True, init=False, repr=False, eq=False)
class ApiVersionsRequest(Structure):
    """ApiVersions, versions 0-4."""

    client_software_name: str
    client_software_version: str
    peer_hello: PeerHello | None

    def __init__(
        self, client_software_name: str = "", client_software_version: str = "",
        peer_hello: PeerHello | None = None,
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.peer_hello = peer_hello


@dataclass(slots=True, init=False, repr=False, eq=False)
class ApiVersion(Structure):
    """Part of ApiVersions."""

    api_key: int
    min_version: int
    max_version: int

    def __init__(self, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


@dataclass(slots=True, init=False, repr=False, eq=False)
class SupportedFeatureKey(Structure):
    """Part of ApiVersions."""

    name: str
    min_version: int
    max_version: int

    def __init__(self, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


@dataclass(slots=True, init=False, repr=False, eq=False)
class FinalizedFeatureKey(Structure):
    """Part of ApiVersions."""

    name: str
    max_version_level: int
    min_version_level: int

    def __init__(
        self, name: str = "", max_version_level: int = 0, min_version_level: int = 0
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


@dataclass(slots=True, init=False, repr=False, eq=False)
class ApiVersionsResponse(Structure):
    """ApiVersions, versions 0-4."""

    error_code: int
    api_keys: list[ApiVersion]
    throttle_time_ms: int
    supported_features: list[SupportedFeatureKey]
    finalized_features_epoch: int
    finalized_features: list[FinalizedFeatureKey]
    zk_migration_ready: bool

    def __init__(
        self, error_code: int = 0, api_keys: list[ApiVersion] = ABSENT, throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = ABSENT, finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = ABSENT, zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is ABSENT else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is ABSENT else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is ABSENT else finalized_features
        self.zk_migration_ready = zk_migration_ready


def read_peer_hello(reader: Reader, version: int) -> PeerHello:
    message = PeerHello(reader.int32(), reader.int64(), reader.string(), reader.int64())
    reader.skip_tags()
    return message


def write_peer_hello(writer: Writer, message: PeerHello, version: int) -> None:
    writer.int32(message.node_id)
    writer.int64(message.session)
    writer.string(message.purpose)
    writer.int64(message.number)
    writer.no_tags()


def read_api_versions_request(reader: Reader, version: int) -> ApiVersionsRequest:
    message = ApiVersionsRequest(
        reader.string() if version >= 3 else "",
        reader.string() if version >= 3 else "",
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.peer_hello = read_peer_hello(reader, version)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_api_versions_request(writer: Writer, message: ApiVersionsRequest, version: int) -> None:
    if version >= 3:
        writer.string(message.client_software_name)
    if version >= 3:
        writer.string(message.client_software_version)
    tagged = TaggedFields()
    if message.peer_hello is not None:
        write_peer_hello(tagged, message.peer_hello, version)
        tagged.end(1000)
    writer.tags(tagged)


def read_api_version(reader: Reader, version: int) -> ApiVersion:
    message = ApiVersion(reader.int16(), reader.int16(), reader.int16())
    reader.skip_tags()
    return message


def write_api_version(writer: Writer, message: ApiVersion, version: int) -> None:
    writer.int16(message.api_key)
    writer.int16(message.min_version)
    writer.int16(message.max_version)
    writer.no_tags()


def read_supported_feature_key(reader: Reader, version: int) -> SupportedFeatureKey:
    message = SupportedFeatureKey(reader.string(), reader.int16(), reader.int16())
    reader.skip_tags()
    return message


def write_supported_feature_key(writer: Writer, message: SupportedFeatureKey, version: int) -> None:
    writer.string(message.name)
    writer.int16(message.min_version)
    writer.int16(message.max_version)
    writer.no_tags()


def read_finalized_feature_key(reader: Reader, version: int) -> FinalizedFeatureKey:
    message = FinalizedFeatureKey(reader.string(), reader.int16(), reader.int16())
    reader.skip_tags()
    return message


def write_finalized_feature_key(writer: Writer, message: FinalizedFeatureKey, version: int) -> None:
    writer.string(message.name)
    writer.int16(message.max_version_level)
    writer.int16(message.min_version_level)
    writer.no_tags()


def read_api_versions_response(reader: Reader, version: int) -> ApiVersionsResponse:
    message = ApiVersionsResponse(
        reader.int16(),
        reader.array(read_api_version, version, 6),
        reader.int32() if version >= 1 else 0,
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.supported_features = reader.array(read_supported_feature_key, version, 6)
        elif tag == 1:
            message.finalized_features_epoch = reader.int64()
        elif tag == 2:
            message.finalized_features = reader.array(read_finalized_feature_key, version, 6)
        elif tag == 3:
            message.zk_migration_ready = reader.boolean()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_api_versions_response(writer: Writer, message: ApiVersionsResponse, version: int) -> None:
    writer.int16(message.error_code)
    writer.array(message.api_keys, write_api_version, version)
    if version >= 1:
        writer.int32(message.throttle_time_ms)
    tagged = TaggedFields()
    if message.supported_features:
        tagged.array(message.supported_features, write_supported_feature_key, version)
        tagged.end(0)
    if message.finalized_features_epoch != -1:
        tagged.int64(message.finalized_features_epoch)
        tagged.end(1)
    if message.finalized_features:
        tagged.array(message.finalized_features, write_finalized_feature_key, version)
        tagged.end(2)
    if message.zk_migration_ready:
        tagged.boolean(message.zk_migration_ready)
        tagged.end(3)
    writer.tags(tagged)


API_VERSIONS = Api(
    18,
    "ApiVersions",
    message_of_fields(
        "ApiVersionsRequest", (0, 4), 3, read_api_versions_request, write_api_versions_request,
        bounded=True,
    ),
    message_of_fields(
        "ApiVersionsResponse", (0, 4), 3, read_api_versions_response, write_api_versions_response
    ),
)
