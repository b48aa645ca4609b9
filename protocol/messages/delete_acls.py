"""DeleteAcls: generated from delete_acls.schema by protocol/generate. Do not edit."""

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
class DeleteAclsFilter(Structure):
    """Part of DeleteAcls."""

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
class DeleteAclsRequest(Structure):
    """DeleteAcls, versions 1-3."""

    filters: list[DeleteAclsFilter]

    def __init__(
        self,
        filters: list[DeleteAclsFilter] = ABSENT,
    ) -> None:
        self.filters = [] if filters is ABSENT else filters


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsMatchingAcl(Structure):
    """Part of DeleteAcls."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsFilterResult(Structure):
    """Part of DeleteAcls."""

    error_code: int
    error_message: str | None
    matching_acls: list[DeleteAclsMatchingAcl]

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: list[DeleteAclsMatchingAcl] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = [] if matching_acls is ABSENT else matching_acls


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteAclsResponse(Structure):
    """DeleteAcls, versions 1-3."""

    throttle_time_ms: int
    filter_results: list[DeleteAclsFilterResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        filter_results: list[DeleteAclsFilterResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = [] if filter_results is ABSENT else filter_results


def decode_request_v1(view: memoryview, position: int) -> tuple[DeleteAclsRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 10)
    filters: list[DeleteAclsFilter] = []
    for _ in range(count):
        resource_type_filter, size = unpack_bh(view, position)
        position += 3
        resource_name_filter: str | None = None
        if size >= 0:
            end = position + size
            resource_name_filter = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("DeleteAclsFilter.resource_name_filter: negative length")
        pattern_type_filter, size = unpack_bh(view, position)
        position += 3
        principal_filter: str | None = None
        if size >= 0:
            end = position + size
            principal_filter = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("DeleteAclsFilter.principal_filter: negative length")
        (size,) = unpack_h(view, position)
        position += 2
        host_filter: str | None = None
        if size >= 0:
            end = position + size
            host_filter = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("DeleteAclsFilter.host_filter: negative length")
        operation, permission_type = unpack_bb(view, position)
        position += 2
        filters.append(
            DeleteAclsFilter(
                resource_type_filter,
                resource_name_filter,
                pattern_type_filter,
                principal_filter,
                host_filter,
                operation,
                permission_type,
            )
        )
    return DeleteAclsRequest(filters), position


def encode_request_v1(message: DeleteAclsRequest, out: bytearray) -> Chunks:
    filters = message.filters
    out += pack_i(len(filters))
    for delete_acls_filter in filters:
        resource_name_filter = delete_acls_filter.resource_name_filter
        data = b"" if resource_name_filter is None else resource_name_filter.encode()
        out += pack_bh(
            delete_acls_filter.resource_type_filter,
            -1 if resource_name_filter is None else len(data),
        )
        out += data
        principal_filter = delete_acls_filter.principal_filter
        data = b"" if principal_filter is None else principal_filter.encode()
        out += pack_bh(
            delete_acls_filter.pattern_type_filter,
            -1 if principal_filter is None else len(data),
        )
        out += data
        host_filter = delete_acls_filter.host_filter
        data = b"" if host_filter is None else host_filter.encode()
        out += pack_h(-1 if host_filter is None else len(data))
        out += data
        out += pack_bb(delete_acls_filter.operation, delete_acls_filter.permission_type)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DeleteAclsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    filters: list[DeleteAclsFilter] = []
    for _ in range(count - 1):
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
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        filters.append(
            DeleteAclsFilter(
                resource_type_filter,
                resource_name_filter,
                pattern_type_filter,
                principal_filter,
                host_filter,
                operation,
                permission_type,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteAclsRequest(filters), position


def encode_request_v2(message: DeleteAclsRequest, out: bytearray) -> Chunks:
    filters = message.filters
    size = len(filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for delete_acls_filter in filters:
        resource_name_filter = delete_acls_filter.resource_name_filter
        out += pack_b(delete_acls_filter.resource_type_filter)
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
        principal_filter = delete_acls_filter.principal_filter
        out += pack_b(delete_acls_filter.pattern_type_filter)
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
        host_filter = delete_acls_filter.host_filter
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
        out += pack_bbx(delete_acls_filter.operation, delete_acls_filter.permission_type)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DeleteAclsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    filter_results: list[DeleteAclsFilterResult] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("DeleteAclsFilterResult.error_message: negative length")
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        matching_acls: list[DeleteAclsMatchingAcl] = []
        for _ in range(count):
            matching_acls_error_code, size = unpack_hh(view, position)
            position += 4
            matching_acls_error_message: str | None = None
            if size >= 0:
                end = position + size
                matching_acls_error_message = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("DeleteAclsMatchingAcl.error_message: negative length")
            resource_type, size = unpack_bh(view, position)
            position += 3
            if size < 0:
                raise Malformed("DeleteAclsMatchingAcl.resource_name: negative length")
            end = position + size
            resource_name = view[position:end].tobytes().decode()
            position = end
            pattern_type, size = unpack_bh(view, position)
            position += 3
            if size < 0:
                raise Malformed("DeleteAclsMatchingAcl.principal: negative length")
            end = position + size
            principal = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DeleteAclsMatchingAcl.host: negative length")
            end = position + size
            host = view[position:end].tobytes().decode()
            position = end
            operation, permission_type = unpack_bb(view, position)
            position += 2
            matching_acls.append(
                DeleteAclsMatchingAcl(
                    matching_acls_error_code,
                    matching_acls_error_message,
                    resource_type,
                    resource_name,
                    pattern_type,
                    principal,
                    host,
                    operation,
                    permission_type,
                )
            )
        filter_results.append(DeleteAclsFilterResult(error_code, error_message, matching_acls))
    return DeleteAclsResponse(throttle_time_ms, filter_results), position


def encode_response_v1(message: DeleteAclsResponse, out: bytearray) -> Chunks:
    filter_results = message.filter_results
    out += pack_ii(message.throttle_time_ms, len(filter_results))
    for delete_acls_filter_result in filter_results:
        error_message = delete_acls_filter_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(
            delete_acls_filter_result.error_code,
            -1 if error_message is None else len(data),
        )
        out += data
        matching_acls = delete_acls_filter_result.matching_acls
        out += pack_i(len(matching_acls))
        for delete_acls_matching_acl in matching_acls:
            delete_acls_matching_acl_error_message = delete_acls_matching_acl.error_message
            data = b"" if delete_acls_matching_acl_error_message is None else delete_acls_matching_acl_error_message.encode()
            out += pack_hh(
                delete_acls_matching_acl.error_code,
                -1 if delete_acls_matching_acl_error_message is None else len(data),
            )
            out += data
            resource_name = delete_acls_matching_acl.resource_name
            data = resource_name.encode()
            out += pack_bh(delete_acls_matching_acl.resource_type, len(data))
            out += data
            principal = delete_acls_matching_acl.principal
            data = principal.encode()
            out += pack_bh(delete_acls_matching_acl.pattern_type, len(data))
            out += data
            host = delete_acls_matching_acl.host
            data = host.encode()
            out += pack_h(len(data))
            out += data
            out += pack_bb(
                delete_acls_matching_acl.operation,
                delete_acls_matching_acl.permission_type,
            )
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DeleteAclsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    filter_results: list[DeleteAclsFilterResult] = []
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
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 11)
        matching_acls: list[DeleteAclsMatchingAcl] = []
        for _ in range(count - 1):
            matching_acls_error_code, size = unpack_hB(view, position)
            position += 3
            matching_acls_error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                matching_acls_error_message = view[position:end].tobytes().decode()
                position = end
            resource_type, size = unpack_bB(view, position)
            position += 2
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            resource_name = view[position:end].tobytes().decode()
            position = end
            pattern_type, size = unpack_bB(view, position)
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
                position = skip_tags(view, position, tags)
            matching_acls.append(
                DeleteAclsMatchingAcl(
                    matching_acls_error_code,
                    matching_acls_error_message,
                    resource_type,
                    resource_name,
                    pattern_type,
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
        filter_results.append(DeleteAclsFilterResult(error_code, error_message, matching_acls))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteAclsResponse(throttle_time_ms, filter_results), position


def encode_response_v2(message: DeleteAclsResponse, out: bytearray) -> Chunks:
    filter_results = message.filter_results
    out += pack_i(message.throttle_time_ms)
    size = len(filter_results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for delete_acls_filter_result in filter_results:
        error_message = delete_acls_filter_result.error_message
        out += pack_h(delete_acls_filter_result.error_code)
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
        matching_acls = delete_acls_filter_result.matching_acls
        size = len(matching_acls) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for delete_acls_matching_acl in matching_acls:
            delete_acls_matching_acl_error_message = delete_acls_matching_acl.error_message
            out += pack_h(delete_acls_matching_acl.error_code)
            if delete_acls_matching_acl_error_message is None:
                out.append(0)
            else:
                data = delete_acls_matching_acl_error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            resource_name = delete_acls_matching_acl.resource_name
            out += pack_b(delete_acls_matching_acl.resource_type)
            data = resource_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            principal = delete_acls_matching_acl.principal
            out += pack_b(delete_acls_matching_acl.pattern_type)
            data = principal.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            host = delete_acls_matching_acl.host
            data = host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out += pack_bbx(
                delete_acls_matching_acl.operation,
                delete_acls_matching_acl.permission_type,
            )
        out.append(0)
    out.append(0)
    return [out]


DELETE_ACLS = Api(
    31,
    "DeleteAcls",
    Message(
        "DeleteAclsRequest",
        (1, 3),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DeleteAclsResponse",
        (1, 3),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
