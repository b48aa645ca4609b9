"""AlterUserScramCredentials: generated from alter_user_scram_credentials.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ScramCredentialDeletion(Structure):
    """Part of AlterUserScramCredentials."""

    name: str
    mechanism: int

    def __init__(self, name: str = "", mechanism: int = 0) -> None:
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
        self, name: str = "", mechanism: int = 0, iterations: int = 0, salt: bytes = b"",
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
        self, deletions: list[ScramCredentialDeletion] = ABSENT,
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

    def __init__(self, user: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterUserScramCredentialsResponse(Structure):
    """AlterUserScramCredentials, versions 0-0."""

    throttle_time_ms: int
    results: list[AlterUserScramCredentialsResult]

    def __init__(
        self, throttle_time_ms: int = 0, results: list[AlterUserScramCredentialsResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def read_scram_credential_deletion(reader: Reader, version: int) -> ScramCredentialDeletion:
    message = ScramCredentialDeletion(reader.string(), reader.int8())
    reader.skip_tags()
    return message


def write_scram_credential_deletion(
    writer: Writer, message: ScramCredentialDeletion, version: int
) -> None:
    writer.string(message.name)
    writer.int8(message.mechanism)
    writer.no_tags()


def read_scram_credential_upsertion(reader: Reader, version: int) -> ScramCredentialUpsertion:
    message = ScramCredentialUpsertion(
        reader.string(),
        reader.int8(),
        reader.int32(),
        reader.blob(),
        reader.blob(),
    )
    reader.skip_tags()
    return message


def write_scram_credential_upsertion(
    writer: Writer, message: ScramCredentialUpsertion, version: int
) -> None:
    writer.string(message.name)
    writer.int8(message.mechanism)
    writer.int32(message.iterations)
    writer.blob(message.salt)
    writer.blob(message.salted_password)
    writer.no_tags()


def read_alter_user_scram_credentials_request(
    reader: Reader, version: int
) -> AlterUserScramCredentialsRequest:
    message = AlterUserScramCredentialsRequest(
        reader.array(read_scram_credential_deletion, version, 3),
        reader.array(read_scram_credential_upsertion, version, 9),
    )
    reader.skip_tags()
    return message


def write_alter_user_scram_credentials_request(
    writer: Writer, message: AlterUserScramCredentialsRequest, version: int
) -> None:
    writer.array(message.deletions, write_scram_credential_deletion, version)
    writer.array(message.upsertions, write_scram_credential_upsertion, version)
    writer.no_tags()


def read_alter_user_scram_credentials_result(
    reader: Reader, version: int
) -> AlterUserScramCredentialsResult:
    message = AlterUserScramCredentialsResult(
        reader.string(),
        reader.int16(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_alter_user_scram_credentials_result(
    writer: Writer, message: AlterUserScramCredentialsResult, version: int
) -> None:
    writer.string(message.user)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_alter_user_scram_credentials_response(
    reader: Reader, version: int
) -> AlterUserScramCredentialsResponse:
    message = AlterUserScramCredentialsResponse(
        reader.int32(),
        reader.array(read_alter_user_scram_credentials_result, version, 5),
    )
    reader.skip_tags()
    return message


def write_alter_user_scram_credentials_response(
    writer: Writer, message: AlterUserScramCredentialsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.results, write_alter_user_scram_credentials_result, version)
    writer.no_tags()


ALTER_USER_SCRAM_CREDENTIALS = Api(
    51,
    "AlterUserScramCredentials",
    message_of_fields(
        "AlterUserScramCredentialsRequest", (0, 0), 0, read_alter_user_scram_credentials_request,
        write_alter_user_scram_credentials_request, bounded=True,
    ),
    message_of_fields(
        "AlterUserScramCredentialsResponse", (0, 0), 0, read_alter_user_scram_credentials_response,
        write_alter_user_scram_credentials_response,
    ),
)
