"""ApiVersions: generated from api_versions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    add_tags,
    check_count,
    long_count,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    wrong_tag_size,
)

pack_t = Struct(">?").pack
pack_h = Struct(">h").pack
pack_hhh = Struct(">hhh").pack
pack_hhhx = Struct(">hhhx").pack
pack_hhx = Struct(">hhx").pack
pack_hi = Struct(">hi").pack
pack_i = Struct(">i").pack
pack_iq = Struct(">iq").pack
pack_q = Struct(">q").pack
pack_qx = Struct(">qx").pack
unpack_t = Struct(">?").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hhB = Struct(">hhB").unpack_from
unpack_hhh = Struct(">hhh").unpack_from
unpack_hhhB = Struct(">hhhB").unpack_from
unpack_hi = Struct(">hi").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_iqB = Struct(">iqB").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qB = Struct(">qB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PeerHello(Structure):
    """Part of ApiVersions."""

    node_id: int
    session: int
    purpose: str
    number: int

    def __init__(
        self,
        node_id: int = 0,
        session: int = 0,
        purpose: str = "",
        number: int = 0,
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
        self,
        client_software_name: str = "",
        client_software_version: str = "",
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

    def __init__(
        self,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


@dataclass(slots=True, init=False, repr=False, eq=False)
class SupportedFeatureKey(Structure):
    """Part of ApiVersions."""

    name: str
    min_version: int
    max_version: int

    def __init__(
        self,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
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
        self,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
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
        self,
        error_code: int = 0,
        api_keys: list[ApiVersion] = ABSENT,
        throttle_time_ms: int = 0,
        supported_features: list[SupportedFeatureKey] = ABSENT,
        finalized_features_epoch: int = -1,
        finalized_features: list[FinalizedFeatureKey] = ABSENT,
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = [] if api_keys is ABSENT else api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = [] if supported_features is ABSENT else supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = [] if finalized_features is ABSENT else finalized_features
        self.zk_migration_ready = zk_migration_ready


def decode_request_v0(view: memoryview, position: int) -> tuple[ApiVersionsRequest, int]:
    return ApiVersionsRequest("", "", None), position


def encode_request_v0(message: ApiVersionsRequest, out: bytearray) -> Chunks:
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[ApiVersionsRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    client_software_name = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    client_software_version = view[position:end].tobytes().decode()
    position = end
    api_versions_request_tags = view[position]
    position += 1
    peer_hello: PeerHello | None = None
    if api_versions_request_tags:
        api_versions_request_tags, position = tag_count(view, position, api_versions_request_tags)
        for _ in range(api_versions_request_tags):
            tag, position, api_versions_request_tag_end = read_tag(view, position)
            if tag == 1000:
                node_id, session, size = unpack_iqB(view, position)
                position += 13
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                purpose = view[position:end].tobytes().decode()
                position = end
                number, tags = unpack_qB(view, position)
                position += 9
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                peer_hello = PeerHello(node_id, session, purpose, number)
                if position != api_versions_request_tag_end:
                    raise wrong_tag_size(1000)
            position = api_versions_request_tag_end
    message = ApiVersionsRequest(client_software_name, client_software_version, peer_hello)
    return message, position


def encode_request_v3(message: ApiVersionsRequest, out: bytearray) -> Chunks:
    client_software_name = message.client_software_name
    data = client_software_name.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    client_software_version = message.client_software_version
    data = client_software_version.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    if message.peer_hello is None:
        out.append(0)
    else:
        api_versions_request_tags = 0
        api_versions_request_tagged = bytearray()
        if message.peer_hello is not None:
            api_versions_request_tags += 1
            peer_hello_body = bytearray()
            peer_hello = message.peer_hello
            purpose = peer_hello.purpose
            peer_hello_body += pack_iq(peer_hello.node_id, peer_hello.session)
            data = purpose.encode()
            size = len(data) + 1
            if size < 0x80:
                peer_hello_body.append(size)
            else:
                put_varint(peer_hello_body, size)
            peer_hello_body += data
            peer_hello_body += pack_qx(peer_hello.number)
            put_tag(api_versions_request_tagged, 1000, peer_hello_body)
        out.append(api_versions_request_tags)
        out += api_versions_request_tagged
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ApiVersionsResponse, int]:
    error_code, count = unpack_hi(view, position)
    position += 6
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    api_keys: list[ApiVersion] = []
    for _ in range(count):
        api_key, min_version, max_version = unpack_hhh(view, position)
        position += 6
        api_keys.append(ApiVersion(api_key, min_version, max_version))
    return ApiVersionsResponse(error_code, api_keys, 0, [], -1, [], False), position


def encode_response_v0(message: ApiVersionsResponse, out: bytearray) -> Chunks:
    api_keys = message.api_keys
    out += pack_hi(message.error_code, len(api_keys))
    for api_version in api_keys:
        out += pack_hhh(api_version.api_key, api_version.min_version, api_version.max_version)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ApiVersionsResponse, int]:
    error_code, count = unpack_hi(view, position)
    position += 6
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    api_keys: list[ApiVersion] = []
    for _ in range(count):
        api_key, min_version, max_version = unpack_hhh(view, position)
        position += 6
        api_keys.append(ApiVersion(api_key, min_version, max_version))
    (throttle_time_ms,) = unpack_i(view, position)
    position += 4
    message = ApiVersionsResponse(error_code, api_keys, throttle_time_ms, [], -1, [], False)
    return message, position


def encode_response_v1(message: ApiVersionsResponse, out: bytearray) -> Chunks:
    api_keys = message.api_keys
    out += pack_hi(message.error_code, len(api_keys))
    for api_version in api_keys:
        out += pack_hhh(api_version.api_key, api_version.min_version, api_version.max_version)
    out += pack_i(message.throttle_time_ms)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[ApiVersionsResponse, int]:
    error_code, count = unpack_hB(view, position)
    position += 3
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 7)
    api_keys: list[ApiVersion] = []
    for _ in range(count - 1):
        api_key, min_version, max_version, tags = unpack_hhhB(view, position)
        position += 7
        if tags:
            position = skip_tags(view, position, tags)
        api_keys.append(ApiVersion(api_key, min_version, max_version))
    throttle_time_ms, api_versions_response_tags = unpack_iB(view, position)
    position += 5
    supported_features: list[SupportedFeatureKey] = []
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = []
    zk_migration_ready: bool = False
    if api_versions_response_tags:
        api_versions_response_tags, position = tag_count(view, position, api_versions_response_tags)
        for _ in range(api_versions_response_tags):
            tag, position, api_versions_response_tag_end = read_tag(view, position)
            if tag == 0:
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 6)
                tagged_supported_features: list[SupportedFeatureKey] = []
                for _ in range(count - 1):
                    size = view[position]
                    position += 1
                    if not 0 < size < 0x80:
                        size, position = long_size(view, position, size)
                    end = position + size - 1
                    name = view[position:end].tobytes().decode()
                    position = end
                    (
                        tagged_supported_features_min_version,
                        tagged_supported_features_max_version,
                        tags,
                    ) = unpack_hhB(view, position)
                    position += 5
                    if tags:
                        position = skip_tags(view, position, tags)
                    tagged_supported_features.append(
                        SupportedFeatureKey(
                            name,
                            tagged_supported_features_min_version,
                            tagged_supported_features_max_version,
                        )
                    )
                supported_features = tagged_supported_features
                if position != api_versions_response_tag_end:
                    raise wrong_tag_size(0)
            elif tag == 1:
                (finalized_features_epoch,) = unpack_q(view, position)
                position += 8
                if position != api_versions_response_tag_end:
                    raise wrong_tag_size(1)
            elif tag == 2:
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 6)
                tagged_finalized_features: list[FinalizedFeatureKey] = []
                for _ in range(count - 1):
                    size = view[position]
                    position += 1
                    if not 0 < size < 0x80:
                        size, position = long_size(view, position, size)
                    end = position + size - 1
                    tagged_finalized_features_name = view[position:end].tobytes().decode()
                    position = end
                    max_version_level, min_version_level, tags = unpack_hhB(view, position)
                    position += 5
                    if tags:
                        position = skip_tags(view, position, tags)
                    tagged_finalized_features.append(
                        FinalizedFeatureKey(
                            tagged_finalized_features_name,
                            max_version_level,
                            min_version_level,
                        )
                    )
                finalized_features = tagged_finalized_features
                if position != api_versions_response_tag_end:
                    raise wrong_tag_size(2)
            elif tag == 3:
                (zk_migration_ready,) = unpack_t(view, position)
                position += 1
                if position != api_versions_response_tag_end:
                    raise wrong_tag_size(3)
            position = api_versions_response_tag_end
    message = ApiVersionsResponse(
        error_code,
        api_keys,
        throttle_time_ms,
        supported_features,
        finalized_features_epoch,
        finalized_features,
        zk_migration_ready,
    )
    return message, position


def encode_response_v3(message: ApiVersionsResponse, out: bytearray) -> Chunks:
    api_keys = message.api_keys
    out += pack_h(message.error_code)
    size = len(api_keys) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for api_version in api_keys:
        out += pack_hhhx(api_version.api_key, api_version.min_version, api_version.max_version)
    out += pack_i(message.throttle_time_ms)
    if (
        not message.supported_features
        and message.finalized_features_epoch == -1
        and not message.finalized_features
        and not message.zk_migration_ready
    ):
        out.append(0)
    else:
        api_versions_response_tags = 0
        api_versions_response_tagged = bytearray()
        if message.supported_features:
            api_versions_response_tags += 1
            supported_features_body = bytearray()
            supported_features = message.supported_features
            size = len(supported_features) + 1
            if size < 0x80:
                supported_features_body.append(size)
            else:
                put_varint(supported_features_body, size)
            for supported_feature_key in supported_features:
                name = supported_feature_key.name
                data = name.encode()
                size = len(data) + 1
                if size < 0x80:
                    supported_features_body.append(size)
                else:
                    put_varint(supported_features_body, size)
                supported_features_body += data
                supported_features_body += pack_hhx(
                    supported_feature_key.min_version,
                    supported_feature_key.max_version,
                )
            put_tag(api_versions_response_tagged, 0, supported_features_body)
        if message.finalized_features_epoch != -1:
            api_versions_response_tags += 1
            finalized_features_epoch_body = bytearray()
            finalized_features_epoch = message.finalized_features_epoch
            finalized_features_epoch_body += pack_q(finalized_features_epoch)
            put_tag(api_versions_response_tagged, 1, finalized_features_epoch_body)
        if message.finalized_features:
            api_versions_response_tags += 1
            finalized_features_body = bytearray()
            finalized_features = message.finalized_features
            size = len(finalized_features) + 1
            if size < 0x80:
                finalized_features_body.append(size)
            else:
                put_varint(finalized_features_body, size)
            for finalized_feature_key in finalized_features:
                finalized_feature_key_name = finalized_feature_key.name
                data = finalized_feature_key_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    finalized_features_body.append(size)
                else:
                    put_varint(finalized_features_body, size)
                finalized_features_body += data
                finalized_features_body += pack_hhx(
                    finalized_feature_key.max_version_level,
                    finalized_feature_key.min_version_level,
                )
            put_tag(api_versions_response_tagged, 2, finalized_features_body)
        if message.zk_migration_ready:
            api_versions_response_tags += 1
            zk_migration_ready_body = bytearray()
            zk_migration_ready = message.zk_migration_ready
            zk_migration_ready_body += pack_t(zk_migration_ready)
            put_tag(api_versions_response_tagged, 3, zk_migration_ready_body)
        out.append(api_versions_response_tags)
        out += api_versions_response_tagged
    return [out]


API_VERSIONS = Api(
    18,
    "ApiVersions",
    Message(
        "ApiVersionsRequest",
        (0, 4),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
        },
    ),
    Message(
        "ApiVersionsResponse",
        (0, 4),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            3: (decode_response_v3, encode_response_v3),
        },
    ),
)
