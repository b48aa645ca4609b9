"""DescribeDelegationToken: generated from describe_delegation_token.schema by protocol/generate. Do not edit."""

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
)

pack_h = Struct(">h").pack
pack_hi = Struct(">hi").pack
pack_i = Struct(">i").pack
pack_ix = Struct(">ix").pack
pack_qqq = Struct(">qqq").pack
pack_qqqh = Struct(">qqqh").pack
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hi = Struct(">hi").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_qqqB = Struct(">qqqB").unpack_from
unpack_qqqh = Struct(">qqqh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeDelegationTokenOwner(Structure):
    """Part of DescribeDelegationToken."""

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
class DescribeDelegationTokenRequest(Structure):
    """DescribeDelegationToken, versions 1-3."""

    owners: list[DescribeDelegationTokenOwner] | None

    def __init__(
        self,
        owners: list[DescribeDelegationTokenOwner] | None = ABSENT,
    ) -> None:
        self.owners = [] if owners is ABSENT else owners


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedDelegationTokenRenewer(Structure):
    """Part of DescribeDelegationToken."""

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
class DescribedDelegationToken(Structure):
    """Part of DescribeDelegationToken."""

    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: bytes
    renewers: list[DescribedDelegationTokenRenewer]

    def __init__(
        self,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: list[DescribedDelegationTokenRenewer] = ABSENT,
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = [] if renewers is ABSENT else renewers


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeDelegationTokenResponse(Structure):
    """DescribeDelegationToken, versions 1-3."""

    error_code: int
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: int

    def __init__(
        self,
        error_code: int = 0,
        tokens: list[DescribedDelegationToken] = ABSENT,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = [] if tokens is ABSENT else tokens
        self.throttle_time_ms = throttle_time_ms


def decode_request_v1(view: memoryview, position: int) -> tuple[DescribeDelegationTokenRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    owners: list[DescribeDelegationTokenOwner] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        owners = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribeDelegationTokenOwner.principal_type: negative length")
            end = position + size
            principal_type = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribeDelegationTokenOwner.principal_name: negative length")
            end = position + size
            principal_name = view[position:end].tobytes().decode()
            position = end
            owners.append(DescribeDelegationTokenOwner(principal_type, principal_name))
    return DescribeDelegationTokenRequest(owners), position


def encode_request_v1(message: DescribeDelegationTokenRequest, out: bytearray) -> Chunks:
    owners = message.owners
    out += pack_i(-1 if owners is None else len(owners))
    for describe_delegation_token_owner in owners or ():
        principal_type = describe_delegation_token_owner.principal_type
        data = principal_type.encode()
        out += pack_h(len(data))
        out += data
        principal_name = describe_delegation_token_owner.principal_name
        data = principal_name.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DescribeDelegationTokenRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    owners: list[DescribeDelegationTokenOwner] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        owners = []
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
            owners.append(DescribeDelegationTokenOwner(principal_type, principal_name))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeDelegationTokenRequest(owners), position


def encode_request_v2(message: DescribeDelegationTokenRequest, out: bytearray) -> Chunks:
    owners = message.owners
    if owners is None:
        out.append(0)
    else:
        size = len(owners) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_delegation_token_owner in owners:
            principal_type = describe_delegation_token_owner.principal_type
            data = principal_type.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            principal_name = describe_delegation_token_owner.principal_name
            data = principal_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeDelegationTokenResponse, int]:
    error_code, count = unpack_hi(view, position)
    position += 6
    if not 0 <= count < 0x80:
        check_count(view, position, count, 38)
    tokens: list[DescribedDelegationToken] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedDelegationToken.principal_type: negative length")
        end = position + size
        principal_type = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DescribedDelegationToken.principal_name: negative length")
        end = position + size
        principal_name = view[position:end].tobytes().decode()
        position = end
        issue_timestamp, expiry_timestamp, max_timestamp, size = unpack_qqqh(view, position)
        position += 26
        if size < 0:
            raise Malformed("DescribedDelegationToken.token_id: negative length")
        end = position + size
        token_id = view[position:end].tobytes().decode()
        position = end
        (size,) = unpack_i(view, position)
        position += 4
        if size < 0:
            raise Malformed("DescribedDelegationToken.hmac: negative length")
        end = position + size
        hmac = view[position:end].tobytes()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        renewers: list[DescribedDelegationTokenRenewer] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedDelegationTokenRenewer.principal_type: negative length")
            end = position + size
            renewers_principal_type = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribedDelegationTokenRenewer.principal_name: negative length")
            end = position + size
            renewers_principal_name = view[position:end].tobytes().decode()
            position = end
            renewers.append(
                DescribedDelegationTokenRenewer(renewers_principal_type, renewers_principal_name)
            )
        tokens.append(
            DescribedDelegationToken(
                principal_type,
                principal_name,
                "",
                "",
                issue_timestamp,
                expiry_timestamp,
                max_timestamp,
                token_id,
                hmac,
                renewers,
            )
        )
    (throttle_time_ms,) = unpack_i(view, position)
    position += 4
    return DescribeDelegationTokenResponse(error_code, tokens, throttle_time_ms), position


def encode_response_v1(message: DescribeDelegationTokenResponse, out: bytearray) -> Chunks:
    tokens = message.tokens
    out += pack_hi(message.error_code, len(tokens))
    for described_delegation_token in tokens:
        principal_type = described_delegation_token.principal_type
        data = principal_type.encode()
        out += pack_h(len(data))
        out += data
        principal_name = described_delegation_token.principal_name
        data = principal_name.encode()
        out += pack_h(len(data))
        out += data
        token_id = described_delegation_token.token_id
        data = token_id.encode()
        out += pack_qqqh(
            described_delegation_token.issue_timestamp,
            described_delegation_token.expiry_timestamp,
            described_delegation_token.max_timestamp,
            len(data),
        )
        out += data
        hmac = described_delegation_token.hmac
        out += pack_i(len(hmac))
        out += hmac
        renewers = described_delegation_token.renewers
        out += pack_i(len(renewers))
        for described_delegation_token_renewer in renewers:
            described_delegation_token_renewer_principal_type = described_delegation_token_renewer.principal_type
            data = described_delegation_token_renewer_principal_type.encode()
            out += pack_h(len(data))
            out += data
            described_delegation_token_renewer_principal_name = described_delegation_token_renewer.principal_name
            data = described_delegation_token_renewer_principal_name.encode()
            out += pack_h(len(data))
            out += data
    out += pack_i(message.throttle_time_ms)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DescribeDelegationTokenResponse, int]:
    error_code, count = unpack_hB(view, position)
    position += 3
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 30)
    tokens: list[DescribedDelegationToken] = []
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
        issue_timestamp, expiry_timestamp, max_timestamp, size = unpack_qqqB(view, position)
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
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        renewers: list[DescribedDelegationTokenRenewer] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            renewers_principal_type = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            renewers_principal_name = view[position:end].tobytes().decode()
            position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            renewers.append(
                DescribedDelegationTokenRenewer(renewers_principal_type, renewers_principal_name)
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        tokens.append(
            DescribedDelegationToken(
                principal_type,
                principal_name,
                "",
                "",
                issue_timestamp,
                expiry_timestamp,
                max_timestamp,
                token_id,
                hmac,
                renewers,
            )
        )
    throttle_time_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeDelegationTokenResponse(error_code, tokens, throttle_time_ms), position


def encode_response_v2(message: DescribeDelegationTokenResponse, out: bytearray) -> Chunks:
    tokens = message.tokens
    out += pack_h(message.error_code)
    size = len(tokens) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for described_delegation_token in tokens:
        principal_type = described_delegation_token.principal_type
        data = principal_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        principal_name = described_delegation_token.principal_name
        data = principal_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        token_id = described_delegation_token.token_id
        out += pack_qqq(
            described_delegation_token.issue_timestamp,
            described_delegation_token.expiry_timestamp,
            described_delegation_token.max_timestamp,
        )
        data = token_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        hmac = described_delegation_token.hmac
        size = len(hmac) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += hmac
        renewers = described_delegation_token.renewers
        size = len(renewers) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for described_delegation_token_renewer in renewers:
            described_delegation_token_renewer_principal_type = described_delegation_token_renewer.principal_type
            data = described_delegation_token_renewer_principal_type.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            described_delegation_token_renewer_principal_name = described_delegation_token_renewer.principal_name
            data = described_delegation_token_renewer_principal_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out.append(0)
        out.append(0)
    out += pack_ix(message.throttle_time_ms)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[DescribeDelegationTokenResponse, int]:
    error_code, count = unpack_hB(view, position)
    position += 3
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 32)
    tokens: list[DescribedDelegationToken] = []
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
        issue_timestamp, expiry_timestamp, max_timestamp, size = unpack_qqqB(view, position)
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
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        renewers: list[DescribedDelegationTokenRenewer] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            renewers_principal_type = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            renewers_principal_name = view[position:end].tobytes().decode()
            position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            renewers.append(
                DescribedDelegationTokenRenewer(renewers_principal_type, renewers_principal_name)
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        tokens.append(
            DescribedDelegationToken(
                principal_type,
                principal_name,
                token_requester_principal_type,
                token_requester_principal_name,
                issue_timestamp,
                expiry_timestamp,
                max_timestamp,
                token_id,
                hmac,
                renewers,
            )
        )
    throttle_time_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeDelegationTokenResponse(error_code, tokens, throttle_time_ms), position


def encode_response_v3(message: DescribeDelegationTokenResponse, out: bytearray) -> Chunks:
    tokens = message.tokens
    out += pack_h(message.error_code)
    size = len(tokens) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for described_delegation_token in tokens:
        principal_type = described_delegation_token.principal_type
        data = principal_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        principal_name = described_delegation_token.principal_name
        data = principal_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        token_requester_principal_type = described_delegation_token.token_requester_principal_type
        data = token_requester_principal_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        token_requester_principal_name = described_delegation_token.token_requester_principal_name
        data = token_requester_principal_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        token_id = described_delegation_token.token_id
        out += pack_qqq(
            described_delegation_token.issue_timestamp,
            described_delegation_token.expiry_timestamp,
            described_delegation_token.max_timestamp,
        )
        data = token_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        hmac = described_delegation_token.hmac
        size = len(hmac) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += hmac
        renewers = described_delegation_token.renewers
        size = len(renewers) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for described_delegation_token_renewer in renewers:
            described_delegation_token_renewer_principal_type = described_delegation_token_renewer.principal_type
            data = described_delegation_token_renewer_principal_type.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            described_delegation_token_renewer_principal_name = described_delegation_token_renewer.principal_name
            data = described_delegation_token_renewer_principal_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out.append(0)
        out.append(0)
    out += pack_ix(message.throttle_time_ms)
    return [out]


DESCRIBE_DELEGATION_TOKEN = Api(
    41,
    "DescribeDelegationToken",
    Message(
        "DescribeDelegationTokenRequest",
        (1, 3),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DescribeDelegationTokenResponse",
        (1, 3),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
            3: (decode_response_v3, encode_response_v3),
        },
    ),
)
