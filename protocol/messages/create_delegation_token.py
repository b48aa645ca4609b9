"""CreateDelegationToken: generated from create_delegation_token.schema by protocol/generate. Do not edit."""

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

pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ix = Struct(">ix").pack
pack_q = Struct(">q").pack
pack_qqq = Struct(">qqq").pack
pack_qqqh = Struct(">qqqh").pack
pack_qx = Struct(">qx").pack
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qB = Struct(">qB").unpack_from
unpack_qqqB = Struct(">qqqB").unpack_from
unpack_qqqh = Struct(">qqqh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableRenewers(Structure):
    """Part of CreateDelegationToken."""

    principal_type: str
    principal_name: str

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateDelegationTokenRequest(Structure):
    """CreateDelegationToken, versions 1-3."""

    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: list[CreatableRenewers]
    max_lifetime_ms: int

    def __init__(
        self,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: list[CreatableRenewers] = ABSENT,
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = [] if renewers is ABSENT else renewers
        self.max_lifetime_ms = max_lifetime_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateDelegationTokenResponse(Structure):
    """CreateDelegationToken, versions 1-3."""

    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp_ms: int
    expiry_timestamp_ms: int
    max_timestamp_ms: int
    token_id: str
    hmac: bytes
    throttle_time_ms: int

    def __init__(
        self,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms


def decode_request_v1(view: memoryview, position: int) -> tuple[CreateDelegationTokenRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    renewers: list[CreatableRenewers] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("CreatableRenewers.principal_type: negative length")
        end = position + size
        principal_type = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("CreatableRenewers.principal_name: negative length")
        end = position + size
        principal_name = view[position:end].tobytes().decode()
        position = end
        renewers.append(CreatableRenewers(principal_type, principal_name))
    (max_lifetime_ms,) = unpack_q(view, position)
    position += 8
    return CreateDelegationTokenRequest("", "", renewers, max_lifetime_ms), position


def encode_request_v1(message: CreateDelegationTokenRequest, out: bytearray) -> Chunks:
    renewers = message.renewers
    out += pack_i(len(renewers))
    for creatable_renewers in renewers:
        principal_type = creatable_renewers.principal_type
        data = principal_type.encode()
        out += pack_h(len(data))
        out += data
        principal_name = creatable_renewers.principal_name
        data = principal_name.encode()
        out += pack_h(len(data))
        out += data
    out += pack_q(message.max_lifetime_ms)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[CreateDelegationTokenRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    renewers: list[CreatableRenewers] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        principal_type = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        principal_name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        renewers.append(CreatableRenewers(principal_type, principal_name))
    max_lifetime_ms, tags = unpack_qB(view, position)
    position += 9
    if tags:
        position = skip_tags(view, position, tags)
    return CreateDelegationTokenRequest("", "", renewers, max_lifetime_ms), position


def encode_request_v2(message: CreateDelegationTokenRequest, out: bytearray) -> Chunks:
    renewers = message.renewers
    size = len(renewers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for creatable_renewers in renewers:
        principal_type = creatable_renewers.principal_type
        data = principal_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        principal_name = creatable_renewers.principal_name
        data = principal_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out += pack_qx(message.max_lifetime_ms)
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[CreateDelegationTokenRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    owner_principal_type: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        owner_principal_type = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    owner_principal_name: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        owner_principal_name = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    renewers: list[CreatableRenewers] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        principal_type = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        principal_name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        renewers.append(CreatableRenewers(principal_type, principal_name))
    max_lifetime_ms, tags = unpack_qB(view, position)
    position += 9
    if tags:
        position = skip_tags(view, position, tags)
    message = CreateDelegationTokenRequest(
        owner_principal_type,
        owner_principal_name,
        renewers,
        max_lifetime_ms,
    )
    return message, position


def encode_request_v3(message: CreateDelegationTokenRequest, out: bytearray) -> Chunks:
    owner_principal_type = message.owner_principal_type
    if owner_principal_type is None:
        out.append(0)
    else:
        data = owner_principal_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    owner_principal_name = message.owner_principal_name
    if owner_principal_name is None:
        out.append(0)
    else:
        data = owner_principal_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    renewers = message.renewers
    size = len(renewers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for creatable_renewers in renewers:
        principal_type = creatable_renewers.principal_type
        data = principal_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        principal_name = creatable_renewers.principal_name
        data = principal_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out += pack_qx(message.max_lifetime_ms)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[CreateDelegationTokenResponse, int]:
    error_code, size = unpack_hh(view, position)
    position += 4
    if size < 0:
        raise Malformed("CreateDelegationTokenResponse.principal_type: negative length")
    end = position + size
    principal_type = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("CreateDelegationTokenResponse.principal_name: negative length")
    end = position + size
    principal_name = view[position:end].tobytes().decode()
    position = end
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms, size = unpack_qqqh(view, position)
    position += 26
    if size < 0:
        raise Malformed("CreateDelegationTokenResponse.token_id: negative length")
    end = position + size
    token_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_i(view, position)
    position += 4
    if size < 0:
        raise Malformed("CreateDelegationTokenResponse.hmac: negative length")
    end = position + size
    hmac = view[position:end].tobytes()
    position = end
    (throttle_time_ms,) = unpack_i(view, position)
    position += 4
    message = CreateDelegationTokenResponse(
        error_code,
        principal_type,
        principal_name,
        "",
        "",
        issue_timestamp_ms,
        expiry_timestamp_ms,
        max_timestamp_ms,
        token_id,
        hmac,
        throttle_time_ms,
    )
    return message, position


def encode_response_v1(message: CreateDelegationTokenResponse, out: bytearray) -> Chunks:
    principal_type = message.principal_type
    data = principal_type.encode()
    out += pack_hh(message.error_code, len(data))
    out += data
    principal_name = message.principal_name
    data = principal_name.encode()
    out += pack_h(len(data))
    out += data
    token_id = message.token_id
    data = token_id.encode()
    out += pack_qqqh(
        message.issue_timestamp_ms,
        message.expiry_timestamp_ms,
        message.max_timestamp_ms,
        len(data),
    )
    out += data
    hmac = message.hmac
    out += pack_i(len(hmac))
    out += hmac
    out += pack_i(message.throttle_time_ms)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[CreateDelegationTokenResponse, int]:
    error_code, size = unpack_hB(view, position)
    position += 3
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    principal_type = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    principal_name = view[position:end].tobytes().decode()
    position = end
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms, size = unpack_qqqB(view, position)
    position += 25
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    token_id = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    hmac = view[position:end].tobytes()
    position = end
    throttle_time_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = CreateDelegationTokenResponse(
        error_code,
        principal_type,
        principal_name,
        "",
        "",
        issue_timestamp_ms,
        expiry_timestamp_ms,
        max_timestamp_ms,
        token_id,
        hmac,
        throttle_time_ms,
    )
    return message, position


def encode_response_v2(message: CreateDelegationTokenResponse, out: bytearray) -> Chunks:
    principal_type = message.principal_type
    out += pack_h(message.error_code)
    data = principal_type.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    principal_name = message.principal_name
    data = principal_name.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    token_id = message.token_id
    out += pack_qqq(
        message.issue_timestamp_ms,
        message.expiry_timestamp_ms,
        message.max_timestamp_ms,
    )
    data = token_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    hmac = message.hmac
    size = len(hmac) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += hmac
    out += pack_ix(message.throttle_time_ms)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[CreateDelegationTokenResponse, int]:
    error_code, size = unpack_hB(view, position)
    position += 3
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    principal_type = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    principal_name = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    token_requester_principal_type = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    token_requester_principal_name = view[position:end].tobytes().decode()
    position = end
    issue_timestamp_ms, expiry_timestamp_ms, max_timestamp_ms, size = unpack_qqqB(view, position)
    position += 25
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    token_id = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    hmac = view[position:end].tobytes()
    position = end
    throttle_time_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = CreateDelegationTokenResponse(
        error_code,
        principal_type,
        principal_name,
        token_requester_principal_type,
        token_requester_principal_name,
        issue_timestamp_ms,
        expiry_timestamp_ms,
        max_timestamp_ms,
        token_id,
        hmac,
        throttle_time_ms,
    )
    return message, position


def encode_response_v3(message: CreateDelegationTokenResponse, out: bytearray) -> Chunks:
    principal_type = message.principal_type
    out += pack_h(message.error_code)
    data = principal_type.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    principal_name = message.principal_name
    data = principal_name.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    token_requester_principal_type = message.token_requester_principal_type
    data = token_requester_principal_type.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    token_requester_principal_name = message.token_requester_principal_name
    data = token_requester_principal_name.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    token_id = message.token_id
    out += pack_qqq(
        message.issue_timestamp_ms,
        message.expiry_timestamp_ms,
        message.max_timestamp_ms,
    )
    data = token_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    hmac = message.hmac
    size = len(hmac) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += hmac
    out += pack_ix(message.throttle_time_ms)
    return [out]


CREATE_DELEGATION_TOKEN = Api(
    38,
    "CreateDelegationToken",
    Message(
        "CreateDelegationTokenRequest",
        (1, 3),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
            3: (decode_request_v3, encode_request_v3),
        },
    ),
    Message(
        "CreateDelegationTokenResponse",
        (1, 3),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
            3: (decode_response_v3, encode_response_v3),
        },
    ),
)
