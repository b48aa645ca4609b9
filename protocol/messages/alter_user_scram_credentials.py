"""AlterUserScramCredentials: generated from alter_user_scram_credentials.schema by protocol/generate. Do not edit."""

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

pack_bi = Struct(">bi").pack
pack_bx = Struct(">bx").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
unpack_bB = Struct(">bB").unpack_from
unpack_biB = Struct(">biB").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_iB = Struct(">iB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ScramCredentialDeletion(Structure):
    """Part of AlterUserScramCredentials."""

    name: str
    mechanism: int

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism


@dataclass(slots=True, init=False, repr=False, eq=False)
class ScramCredentialUpsertion(Structure):
    """Part of AlterUserScramCredentials."""

    name: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __init__(
        self,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterUserScramCredentialsRequest(Structure):
    """AlterUserScramCredentials, versions 0-0."""

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]

    def __init__(
        self,
        deletions: list[ScramCredentialDeletion] = ABSENT,
        upsertions: list[ScramCredentialUpsertion] = ABSENT,
    ) -> None:
        self.deletions = [] if deletions is ABSENT else deletions
        self.upsertions = [] if upsertions is ABSENT else upsertions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterUserScramCredentialsResult(Structure):
    """Part of AlterUserScramCredentials."""

    user: str
    error_code: int
    error_message: str | None

    def __init__(
        self,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterUserScramCredentialsResponse(Structure):
    """AlterUserScramCredentials, versions 0-0."""

    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterUserScramCredentialsResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[AlterUserScramCredentialsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    deletions: list[ScramCredentialDeletion] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        mechanism, tags = unpack_bB(view, position)
        position += 2
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        deletions.append(ScramCredentialDeletion(name, mechanism))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 9)
    upsertions: list[ScramCredentialUpsertion] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        upsertions_name = view[position:end].tobytes().decode()
        position = end
        upsertions_mechanism, iterations, size = unpack_biB(view, position)
        position += 6
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        salt = view[position:end].tobytes()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        salted_password = view[position:end].tobytes()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        upsertions.append(
            ScramCredentialUpsertion(
                upsertions_name,
                upsertions_mechanism,
                iterations,
                salt,
                salted_password,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterUserScramCredentialsRequest(deletions, upsertions), position


def encode_request_v0(message: AlterUserScramCredentialsRequest, out: bytearray) -> Chunks:
    deletions = message.deletions
    size = len(deletions) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for scram_credential_deletion in deletions:
        name = scram_credential_deletion.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_bx(scram_credential_deletion.mechanism)
    upsertions = message.upsertions
    size = len(upsertions) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for scram_credential_upsertion in upsertions:
        scram_credential_upsertion_name = scram_credential_upsertion.name
        data = scram_credential_upsertion_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        salt = scram_credential_upsertion.salt
        out += pack_bi(scram_credential_upsertion.mechanism, scram_credential_upsertion.iterations)
        size = len(salt) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += salt
        salted_password = scram_credential_upsertion.salted_password
        size = len(salted_password) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += salted_password
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AlterUserScramCredentialsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    results: list[AlterUserScramCredentialsResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        user = view[position:end].tobytes().decode()
        position = end
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
        results.append(AlterUserScramCredentialsResult(user, error_code, error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterUserScramCredentialsResponse(throttle_time_ms, results), position


def encode_response_v0(message: AlterUserScramCredentialsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for alter_user_scram_credentials_result in results:
        user = alter_user_scram_credentials_result.user
        data = user.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        error_message = alter_user_scram_credentials_result.error_message
        out += pack_h(alter_user_scram_credentials_result.error_code)
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


ALTER_USER_SCRAM_CREDENTIALS = Api(
    51,
    "AlterUserScramCredentials",
    Message(
        "AlterUserScramCredentialsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "AlterUserScramCredentialsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
