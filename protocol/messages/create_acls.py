"""CreateAcls: generated from create_acls.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    add_tags,
    check_count,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_b = Struct(">b").pack
pack_bb = Struct(">bb").pack
pack_bbx = Struct(">bbx").pack
pack_bh = Struct(">bh").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
unpack_bB = Struct(">bB").unpack_from
unpack_bb = Struct(">bb").unpack_from
unpack_bbB = Struct(">bbB").unpack_from
unpack_bh = Struct(">bh").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AclCreation(Structure):
    """Part of CreateAcls."""

    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateAclsRequest(Structure):
    """CreateAcls, versions 1-3."""

    creations: list[AclCreation]

    def __init__(
        self,
        creations: list[AclCreation] = ABSENT,
    ) -> None:
        self.creations = [] if creations is ABSENT else creations


@dataclass(slots=True, init=False, repr=False, eq=False)
class AclCreationResult(Structure):
    """Part of CreateAcls."""

    error_code: int
    error_message: str | None

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateAclsResponse(Structure):
    """CreateAcls, versions 1-3."""

    throttle_time_ms: int
    results: list[AclCreationResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def decode_request_v1(view: memoryview, position: int) -> tuple[CreateAclsRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 10)
    creations: list[AclCreation] = []
    for _ in range(count):
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("AclCreation.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        resource_pattern_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("AclCreation.principal: negative length")
        end = position + size
        principal = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("AclCreation.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        operation, permission_type = unpack_bb(view, position)
        position += 2
        creations.append(
            AclCreation(
                resource_type,
                resource_name,
                resource_pattern_type,
                principal,
                host,
                operation,
                permission_type,
            )
        )
    return CreateAclsRequest(creations), position


def encode_request_v1(message: CreateAclsRequest, out: bytearray) -> Chunks:
    creations = message.creations
    out += pack_i(len(creations))
    for acl_creation in creations:
        resource_name = acl_creation.resource_name
        data = resource_name.encode()
        out += pack_bh(acl_creation.resource_type, len(data))
        out += data
        principal = acl_creation.principal
        data = principal.encode()
        out += pack_bh(acl_creation.resource_pattern_type, len(data))
        out += data
        host = acl_creation.host
        data = host.encode()
        out += pack_h(len(data))
        out += data
        out += pack_bb(acl_creation.operation, acl_creation.permission_type)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[CreateAclsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    creations: list[AclCreation] = []
    for _ in range(count - 1):
        resource_type, size = unpack_bB(view, position)
        position += 2
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        resource_name = view[position:end].tobytes().decode()
        position = end
        resource_pattern_type, size = unpack_bB(view, position)
        position += 2
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        principal = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        operation, permission_type, tags = unpack_bbB(view, position)
        position += 3
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        creations.append(
            AclCreation(
                resource_type,
                resource_name,
                resource_pattern_type,
                principal,
                host,
                operation,
                permission_type,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return CreateAclsRequest(creations), position


def encode_request_v2(message: CreateAclsRequest, out: bytearray) -> Chunks:
    creations = message.creations
    size = len(creations) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for acl_creation in creations:
        resource_name = acl_creation.resource_name
        out += pack_b(acl_creation.resource_type)
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        principal = acl_creation.principal
        out += pack_b(acl_creation.resource_pattern_type)
        data = principal.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        host = acl_creation.host
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_bbx(acl_creation.operation, acl_creation.permission_type)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[CreateAclsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    results: list[AclCreationResult] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("AclCreationResult.error_message: negative length")
        results.append(AclCreationResult(error_code, error_message))
    return CreateAclsResponse(throttle_time_ms, results), position


def encode_response_v1(message: CreateAclsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for acl_creation_result in results:
        error_message = acl_creation_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(acl_creation_result.error_code, -1 if error_message is None else len(data))
        out += data
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[CreateAclsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    results: list[AclCreationResult] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
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
        results.append(AclCreationResult(error_code, error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return CreateAclsResponse(throttle_time_ms, results), position


def encode_response_v2(message: CreateAclsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for acl_creation_result in results:
        error_message = acl_creation_result.error_message
        out += pack_h(acl_creation_result.error_code)
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
    out.append(0)
    return [out]


CREATE_ACLS = Api(
    30,
    "CreateAcls",
    Message(
        "CreateAclsRequest",
        (1, 3),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "CreateAclsResponse",
        (1, 3),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
