"""DescribeUserScramCredentials: generated from describe_user_scram_credentials.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class UserName(Structure):
    """Part of DescribeUserScramCredentials."""

    name: str

    def __init__(self, name: str = "") -> None:
        self.name = name


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeUserScramCredentialsRequest(Structure):
    """DescribeUserScramCredentials, versions 0-0."""

    users: list[UserName] | None

    def __init__(self, users: list[UserName] | None = ABSENT) -> None:
        self.users = [] if users is ABSENT else users


@dataclass(slots=True, init=False, repr=False, eq=False)
class CredentialInfo(Structure):
    """Part of DescribeUserScramCredentials."""

    mechanism: int
    iterations: int

    def __init__(self, mechanism: int = 0, iterations: int = 0) -> None:
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
        self, user: str = "", error_code: int = 0, error_message: str | None = "",
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
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        results: list[DescribeUserScramCredentialsResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = [] if results is ABSENT else results


def read_user_name(reader: Reader, version: int) -> UserName:
    message = UserName(reader.string())
    reader.skip_tags()
    return message


def write_user_name(writer: Writer, message: UserName, version: int) -> None:
    writer.string(message.name)
    writer.no_tags()


def read_describe_user_scram_credentials_request(
    reader: Reader, version: int
) -> DescribeUserScramCredentialsRequest:
    message = DescribeUserScramCredentialsRequest(reader.optional_array(read_user_name, version, 2))
    reader.skip_tags()
    return message


def write_describe_user_scram_credentials_request(
    writer: Writer, message: DescribeUserScramCredentialsRequest, version: int
) -> None:
    writer.optional_array(message.users, write_user_name, version)
    writer.no_tags()


def read_credential_info(reader: Reader, version: int) -> CredentialInfo:
    message = CredentialInfo(reader.int8(), reader.int32())
    reader.skip_tags()
    return message


def write_credential_info(writer: Writer, message: CredentialInfo, version: int) -> None:
    writer.int8(message.mechanism)
    writer.int32(message.iterations)
    writer.no_tags()


def read_describe_user_scram_credentials_result(
    reader: Reader, version: int
) -> DescribeUserScramCredentialsResult:
    message = DescribeUserScramCredentialsResult(
        reader.string(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_credential_info, version, 6),
    )
    reader.skip_tags()
    return message


def write_describe_user_scram_credentials_result(
    writer: Writer, message: DescribeUserScramCredentialsResult, version: int
) -> None:
    writer.string(message.user)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.credential_infos, write_credential_info, version)
    writer.no_tags()


def read_describe_user_scram_credentials_response(
    reader: Reader, version: int
) -> DescribeUserScramCredentialsResponse:
    message = DescribeUserScramCredentialsResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_describe_user_scram_credentials_result, version, 6),
    )
    reader.skip_tags()
    return message


def write_describe_user_scram_credentials_response(
    writer: Writer, message: DescribeUserScramCredentialsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.results, write_describe_user_scram_credentials_result, version)
    writer.no_tags()


DESCRIBE_USER_SCRAM_CREDENTIALS = Api(
    50,
    "DescribeUserScramCredentials",
    message_of_fields(
        "DescribeUserScramCredentialsRequest", (0, 0), 0, read_describe_user_scram_credentials_request,
        write_describe_user_scram_credentials_request, bounded=True,
    ),
    message_of_fields(
        "DescribeUserScramCredentialsResponse", (0, 0), 0,
        read_describe_user_scram_credentials_response, write_describe_user_scram_credentials_response,
    ),
)
