"""DescribeUserScramCredentials: generated from describe_user_scram_credentials.schema by protocol/generate. Do not edit."""

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

pack_bix = Struct(">bix").pack
pack_h = Struct(">h").pack
pack_ih = Struct(">ih").pack
unpack_biB = Struct(">biB").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class UserName(Structure):
    """Part of DescribeUserScramCredentials."""

    name: str

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeUserScramCredentialsRequest(Structure):
    """DescribeUserScramCredentials, versions 0-0."""

    users: list[UserName] | None

    def __init__(
        self,
        users: list[UserName] | None = ABSENT,
    ) -> None:
        self.users = [] if users is ABSENT else users


@dataclass(slots=True, init=False, repr=False, eq=False)
class CredentialInfo(Structure):
    """Part of DescribeUserScramCredentials."""

    mechanism: int
    iterations: int

    def __init__(
        self,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeUserScramCredentialsResult(Structure):
    """Part of DescribeUserScramCredentials."""

    user: str
    error_code: int
    error_message: str | None
    credential_infos: list[CredentialInfo]

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: list[CredentialInfo] = ABSENT,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = [] if credential_infos is ABSENT else credential_infos


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeUserScramCredentialsResponse(Structure):
    """DescribeUserScramCredentials, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    results: list[DescribeUserScramCredentialsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeUserScramCredentialsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    users: list[UserName] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 2)
        users = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            users.append(UserName(name))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeUserScramCredentialsRequest(users), position


def encode_request_v0(message: DescribeUserScramCredentialsRequest, out: bytearray) -> Chunks:
    users = message.users
    if users is None:
        out.append(0)
    else:
        size = len(users) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for user_name in users:
            name = user_name.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeUserScramCredentialsResponse, int]:
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
        count, position = long_count(view, position, count, 6)
    results: list[DescribeUserScramCredentialsResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        user = view[position:end].tobytes().decode()
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
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        credential_infos: list[CredentialInfo] = []
        for _ in range(count - 1):
            mechanism, iterations, tags = unpack_biB(view, position)
            position += 6
            if tags:
                position = skip_tags(view, position, tags)
            credential_infos.append(CredentialInfo(mechanism, iterations))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(
            DescribeUserScramCredentialsResult(
                user,
                results_error_code,
                results_error_message,
                credential_infos,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeUserScramCredentialsResponse(
        throttle_time_ms,
        error_code,
        error_message,
        results,
    )
    return message, position


def encode_response_v0(message: DescribeUserScramCredentialsResponse, out: bytearray) -> Chunks:
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
    for describe_user_scram_credentials_result in results:
        user = describe_user_scram_credentials_result.user
        data = user.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        describe_user_scram_credentials_result_error_message = describe_user_scram_credentials_result.error_message
        out += pack_h(describe_user_scram_credentials_result.error_code)
        if describe_user_scram_credentials_result_error_message is None:
            out.append(0)
        else:
            data = describe_user_scram_credentials_result_error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        credential_infos = describe_user_scram_credentials_result.credential_infos
        size = len(credential_infos) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for credential_info in credential_infos:
            out += pack_bix(credential_info.mechanism, credential_info.iterations)
        out.append(0)
    out.append(0)
    return [out]


DESCRIBE_USER_SCRAM_CREDENTIALS = Api(
    50,
    "DescribeUserScramCredentials",
    Message(
        "DescribeUserScramCredentialsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "DescribeUserScramCredentialsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
