"""DescribeAcls: generated from describe_acls.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
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
pack_bi = Struct(">bi").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihh = Struct(">ihh").pack
unpack_bB = Struct(">bB").unpack_from
unpack_bb = Struct(">bb").unpack_from
unpack_bbB = Struct(">bbB").unpack_from
unpack_bh = Struct(">bh").unpack_from
unpack_bi = Struct(">bi").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihh = Struct(">ihh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeAclsRequest(Structure):
    """DescribeAcls, versions 1-3."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int

    def __init__(
        self,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class AclDescription(Structure):
    """Part of DescribeAcls."""

    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeAclsResource(Structure):
    """Part of DescribeAcls."""

    resource_type: int
    resource_name: str
    pattern_type: int
    acls: list[AclDescription]

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: list[AclDescription] = ABSENT,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = [] if acls is ABSENT else acls


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeAclsResponse(Structure):
    """DescribeAcls, versions 1-3."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    resources: list[DescribeAclsResource]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        resources: list[DescribeAclsResource] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = [] if resources is ABSENT else resources


def decode_request_v1(view: memoryview, position: int) -> tuple[DescribeAclsRequest, int]:
    resource_type_filter, size = unpack_bh(view, position)
    position += 3
    resource_name_filter: str | None = None
    if size >= 0:
        end = position + size
        resource_name_filter = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("DescribeAclsRequest.resource_name_filter: negative length")
    pattern_type_filter, size = unpack_bh(view, position)
    position += 3
    principal_filter: str | None = None
    if size >= 0:
        end = position + size
        principal_filter = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("DescribeAclsRequest.principal_filter: negative length")
    (size,) = unpack_h(view, position)
    position += 2
    host_filter: str | None = None
    if size >= 0:
        end = position + size
        host_filter = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("DescribeAclsRequest.host_filter: negative length")
    operation, permission_type = unpack_bb(view, position)
    position += 2
    message = DescribeAclsRequest(
        resource_type_filter,
        resource_name_filter,
        pattern_type_filter,
        principal_filter,
        host_filter,
        operation,
        permission_type,
    )
    return message, position


def encode_request_v1(message: DescribeAclsRequest, out: bytearray) -> Chunks:
    resource_name_filter = message.resource_name_filter
    data = b"" if resource_name_filter is None else resource_name_filter.encode()
    out += pack_bh(message.resource_type_filter, -1 if resource_name_filter is None else len(data))
    out += data
    principal_filter = message.principal_filter
    data = b"" if principal_filter is None else principal_filter.encode()
    out += pack_bh(message.pattern_type_filter, -1 if principal_filter is None else len(data))
    out += data
    host_filter = message.host_filter
    data = b"" if host_filter is None else host_filter.encode()
    out += pack_h(-1 if host_filter is None else len(data))
    out += data
    out += pack_bb(message.operation, message.permission_type)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DescribeAclsRequest, int]:
    resource_type_filter, size = unpack_bB(view, position)
    position += 2
    resource_name_filter: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        resource_name_filter = view[position:end].tobytes().decode()
        position = end
    pattern_type_filter, size = unpack_bB(view, position)
    position += 2
    principal_filter: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        principal_filter = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    host_filter: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        host_filter = view[position:end].tobytes().decode()
        position = end
    operation, permission_type, tags = unpack_bbB(view, position)
    position += 3
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeAclsRequest(
        resource_type_filter,
        resource_name_filter,
        pattern_type_filter,
        principal_filter,
        host_filter,
        operation,
        permission_type,
    )
    return message, position


def encode_request_v2(message: DescribeAclsRequest, out: bytearray) -> Chunks:
    resource_name_filter = message.resource_name_filter
    out += pack_b(message.resource_type_filter)
    if resource_name_filter is None:
        out.append(0)
    else:
        data = resource_name_filter.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    principal_filter = message.principal_filter
    out += pack_b(message.pattern_type_filter)
    if principal_filter is None:
        out.append(0)
    else:
        data = principal_filter.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    host_filter = message.host_filter
    if host_filter is None:
        out.append(0)
    else:
        data = host_filter.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_bbx(message.operation, message.permission_type)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeAclsResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihh(view, position)
    position += 8
    error_message: str | None = None
    if size >= 0:
        end = position + size
        error_message = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("DescribeAclsResponse.error_message: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    resources: list[DescribeAclsResource] = []
    for _ in range(count):
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("DescribeAclsResource.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        pattern_type, count = unpack_bi(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        acls: list[AclDescription] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("AclDescription.principal: negative length")
            end = position + size
            principal = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("AclDescription.host: negative length")
            end = position + size
            host = view[position:end].tobytes().decode()
            position = end
            operation, permission_type = unpack_bb(view, position)
            position += 2
            acls.append(AclDescription(principal, host, operation, permission_type))
        resources.append(DescribeAclsResource(resource_type, resource_name, pattern_type, acls))
    message = DescribeAclsResponse(throttle_time_ms, error_code, error_message, resources)
    return message, position


def encode_response_v1(message: DescribeAclsResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    data = b"" if error_message is None else error_message.encode()
    out += pack_ihh(
        message.throttle_time_ms,
        message.error_code,
        -1 if error_message is None else len(data),
    )
    out += data
    resources = message.resources
    out += pack_i(len(resources))
    for describe_acls_resource in resources:
        resource_name = describe_acls_resource.resource_name
        data = resource_name.encode()
        out += pack_bh(describe_acls_resource.resource_type, len(data))
        out += data
        acls = describe_acls_resource.acls
        out += pack_bi(describe_acls_resource.pattern_type, len(acls))
        for acl_description in acls:
            principal = acl_description.principal
            data = principal.encode()
            out += pack_h(len(data))
            out += data
            host = acl_description.host
            data = host.encode()
            out += pack_h(len(data))
            out += data
            out += pack_bb(acl_description.operation, acl_description.permission_type)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DescribeAclsResponse, int]:
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
    resources: list[DescribeAclsResource] = []
    for _ in range(count - 1):
        resource_type, size = unpack_bB(view, position)
        position += 2
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        resource_name = view[position:end].tobytes().decode()
        position = end
        pattern_type, count = unpack_bB(view, position)
        position += 2
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 5)
        acls: list[AclDescription] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
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
                position = skip_tags(view, position, tags)
            acls.append(AclDescription(principal, host, operation, permission_type))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        resources.append(DescribeAclsResource(resource_type, resource_name, pattern_type, acls))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeAclsResponse(throttle_time_ms, error_code, error_message, resources)
    return message, position


def encode_response_v2(message: DescribeAclsResponse, out: bytearray) -> Chunks:
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
    resources = message.resources
    size = len(resources) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_acls_resource in resources:
        resource_name = describe_acls_resource.resource_name
        out += pack_b(describe_acls_resource.resource_type)
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        acls = describe_acls_resource.acls
        out += pack_b(describe_acls_resource.pattern_type)
        size = len(acls) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for acl_description in acls:
            principal = acl_description.principal
            data = principal.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            host = acl_description.host
            data = host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out += pack_bbx(acl_description.operation, acl_description.permission_type)
        out.append(0)
    out.append(0)
    return [out]


DESCRIBE_ACLS = Api(
    29,
    "DescribeAcls",
    Message(
        "DescribeAclsRequest",
        (1, 3),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DescribeAclsResponse",
        (1, 3),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
