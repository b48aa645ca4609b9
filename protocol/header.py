"""Request headers v1 and v2, response headers v0 and v1, and whole frames.

A header is flexible (ends with tagged fields) when the version of its API is. The response of
ApiVersions is a permanent exception: it has header v0, so that a client can read it before it knows
the broker's versions.
"""

from __future__ import annotations

import dataclasses
import struct
from typing import Final, TypeVar

from barnabas.protocol.api import BROKEN_BYTES, NEVER, Api
from barnabas.protocol.errors import Malformed
from barnabas.protocol.messages import ENTRIES
from barnabas.protocol.wire import Chunks, skip_tags

Request = TypeVar("Request")
Response = TypeVar("Response")

API_VERSIONS_KEY: Final = 18

_FLEXIBLE_FROM: Final = {entry.key: entry.flexible_from for entry in ENTRIES.values()}
_REQUEST_HEADER: Final = struct.Struct(">hhih")
_unpack_request_header = _REQUEST_HEADER.unpack_from
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AND_CORRELATION_ID: Final = struct.Struct(">ii")


@dataclasses.dataclass(slots=True)
class RequestHeader:
    """The header of every request. ``client_id`` may be null on the wire."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def is_flexible(api_key: int, api_version: int) -> bool:
    """Whether the request header of this API and version ends with tagged fields.

    True for versions above the known ones, so that an ApiVersions request from a later client gets
    a response; False for an unknown API.
    """
    return api_version >= _FLEXIBLE_FROM.get(api_key, NEVER)


def decode_request_header(view: memoryview) -> tuple[RequestHeader, int]:
    """Decode the header of a frame without its length; return it and the start of the body.

    Key and version are not checked, and tagged fields of the header are skipped (KIP-482). Raises
    Malformed.
    """
    try:
        api_key, api_version, correlation_id, size = _unpack_request_header(view)
        position = _REQUEST_HEADER.size
        client_id: str | None = None
        if size >= 0:
            end = position + size
            client_id = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("request header: negative length of the client id")
        if api_version >= _FLEXIBLE_FROM.get(api_key, NEVER):
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
    except BROKEN_BYTES as error:
        raise Malformed(f"request header: {error}") from error
    if position > len(view):
        raise Malformed("request header is cut short")
    return RequestHeader(api_key, api_version, correlation_id, client_id), position


def encode_request_header(header: RequestHeader) -> bytearray:
    """Encode a request header."""
    out = bytearray()
    _put_request_header(out, header)
    return out


def _put_request_header(out: bytearray, header: RequestHeader) -> None:
    client_id = b"" if header.client_id is None else header.client_id.encode()
    out += _REQUEST_HEADER.pack(
        header.api_key,
        header.api_version,
        header.correlation_id,
        -1 if header.client_id is None else len(client_id),
    )
    out += client_id
    if is_flexible(header.api_key, header.api_version):
        out.append(0)


def has_flexible_response_header(api_key: int, api_version: int) -> bool:
    """Whether the response header of this API and version ends with tagged fields."""
    return api_key != API_VERSIONS_KEY and is_flexible(api_key, api_version)


def encode_response_header(api_key: int, api_version: int, correlation_id: int) -> bytes:
    """Encode the response header that belongs to a request of this API and version."""
    encoded = _LENGTH.pack(correlation_id)
    return encoded + b"\0" if has_flexible_response_header(api_key, api_version) else encoded


def decode_response_header(view: memoryview, api_key: int, api_version: int) -> tuple[int, int]:
    """Decode the header of a response frame; return correlation ID and the start of the body."""
    try:
        (correlation_id,) = _LENGTH.unpack_from(view)
        position = _LENGTH.size
        if has_flexible_response_header(api_key, api_version):
            position = skip_tags(view, position + 1, view[position])
    except BROKEN_BYTES as error:
        raise Malformed(f"response header: {error}") from error
    return correlation_id, position


def request_frame(api: Api[Request, Response], header: RequestHeader, request: Request) -> Chunks:
    """Encode a whole request frame: length, header, body."""
    out = bytearray(_LENGTH.size)
    _put_request_header(out, header)
    chunks = api.encode_request(request, header.api_version, out)
    _LENGTH.pack_into(out, 0, sum(map(len, chunks)) - _LENGTH.size)
    return chunks


def response_frame(
    api: Api[Request, Response], version: int, correlation_id: int, response: Response
) -> Chunks:
    """Encode a whole response frame: length, header, body. Records are passed on by reference."""
    flexible = version >= api.flexible_from and api.key != API_VERSIONS_KEY
    out = bytearray(9 if flexible else 8)
    chunks = api.encode_response(response, version, out)
    size = len(out) if len(chunks) == 1 else sum(map(len, chunks))
    _LENGTH_AND_CORRELATION_ID.pack_into(out, 0, size - _LENGTH.size, correlation_id)
    return chunks
