"""SaslHandshake: generated from sasl_handshake.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslHandshakeRequest(Structure):
    """SaslHandshake, versions 0-1."""

    mechanism: str

    def __init__(self, mechanism: str = "") -> None:
        self.mechanism = mechanism


@dataclass(slots=True, init=False, repr=False, eq=False)
class SaslHandshakeResponse(Structure):
    """SaslHandshake, versions 0-1."""

    error_code: int
    mechanisms: list[str]

    def __init__(self, error_code: int = 0, mechanisms: list[str] = ABSENT) -> None:
        self.error_code = error_code
        self.mechanisms = [] if mechanisms is ABSENT else mechanisms


def read_sasl_handshake_request(reader: Reader, version: int) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(reader.string())


def write_sasl_handshake_request(
    writer: Writer, message: SaslHandshakeRequest, version: int
) -> None:
    writer.string(message.mechanism)


def read_sasl_handshake_response(reader: Reader, version: int) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(reader.int16(), reader.values(reader.string, 2))


def write_sasl_handshake_response(
    writer: Writer, message: SaslHandshakeResponse, version: int
) -> None:
    writer.int16(message.error_code)
    writer.values(message.mechanisms, writer.string)


SASL_HANDSHAKE = Api(
    17,
    "SaslHandshake",
    message_of_fields(
        "SaslHandshakeRequest", (0, 1), NEVER, read_sasl_handshake_request,
        write_sasl_handshake_request, bounded=True,
    ),
    message_of_fields(
        "SaslHandshakeResponse", (0, 1), NEVER, read_sasl_handshake_response,
        write_sasl_handshake_response,
    ),
)
