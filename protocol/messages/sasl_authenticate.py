"""SaslAuthenticate: generated from sasl_authenticate.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslAuthenticateRequest(Structure):
    """SaslAuthenticate, versions 0-2."""

    auth_bytes: bytes

    def __init__(self, auth_bytes: bytes = b"") -> None:
        self.auth_bytes = auth_bytes


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslAuthenticateResponse(Structure):
    """SaslAuthenticate, versions 0-2."""

    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime_ms: int

    def __init__(
        self, error_code: int = 0, error_message: str | None = "", auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms


def read_sasl_authenticate_request(reader: Reader, version: int) -> SaslAuthenticateRequest:
    message = SaslAuthenticateRequest(reader.blob())
    reader.skip_tags()
    return message


def write_sasl_authenticate_request(
    writer: Writer, message: SaslAuthenticateRequest, version: int
) -> None:
    writer.blob(message.auth_bytes)
    writer.no_tags()


def read_sasl_authenticate_response(reader: Reader, version: int) -> SaslAuthenticateResponse:
    message = SaslAuthenticateResponse(
        reader.int16(),
        reader.optional_string(),
        reader.blob(),
        reader.int64() if version >= 1 else 0,
    )
    reader.skip_tags()
    return message


def write_sasl_authenticate_response(
    writer: Writer, message: SaslAuthenticateResponse, version: int
) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.blob(message.auth_bytes)
    if version >= 1:
        writer.int64(message.session_lifetime_ms)
    writer.no_tags()


SASL_AUTHENTICATE = Api(
    36,
    "SaslAuthenticate",
    message_of_fields(
        "SaslAuthenticateRequest", (0, 2), 2, read_sasl_authenticate_request,
        write_sasl_authenticate_request, bounded=True,
    ),
    message_of_fields(
        "SaslAuthenticateResponse", (0, 2), 2, read_sasl_authenticate_response,
        write_sasl_authenticate_response,
    ),
)
