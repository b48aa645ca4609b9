"""RequestHeader: generated from request_header.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, skip_tags

pack_hhih = Struct(">hhih").pack
unpack_hhih = Struct(">hhih").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class RequestHeader(Structure):
    """RequestHeader, versions 1-2."""

    request_api_key: int
    request_api_version: int
    correlation_id: int
    client_id: str | None

    def __init__(
        self, request_api_key: int = 0, request_api_version: int = 0, correlation_id: int = 0,
        client_id: str | None = "",
    ) -> None:
        self.request_api_key = request_api_key
        self.request_api_version = request_api_version
        self.correlation_id = correlation_id
        self.client_id = client_id


def decode_v1(view: memoryview, position: int) -> tuple[RequestHeader, int]:
    request_api_key, request_api_version, correlation_id, size = unpack_hhih(view, position)
    position += 10
    client_id: str | None = None
    if size >= 0:
        end = position + size
        client_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("RequestHeader.client_id: negative length")
    message = RequestHeader(request_api_key, request_api_version, correlation_id, client_id)
    return message, position


def encode_v1(message: RequestHeader, out: bytearray) -> Chunks:
    client_id = message.client_id
    data = b"" if client_id is None else client_id.encode()
    out += pack_hhih(
        message.request_api_key,
        message.request_api_version,
        message.correlation_id,
        -1 if client_id is None else len(data),
    )
    out += data
    return [out]


def decode_v2(view: memoryview, position: int) -> tuple[RequestHeader, int]:
    request_api_key, request_api_version, correlation_id, size = unpack_hhih(view, position)
    position += 10
    client_id: str | None = None
    if size >= 0:
        end = position + size
        client_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("RequestHeader.client_id: negative length")
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = RequestHeader(request_api_key, request_api_version, correlation_id, client_id)
    return message, position


def encode_v2(message: RequestHeader, out: bytearray) -> Chunks:
    client_id = message.client_id
    data = b"" if client_id is None else client_id.encode()
    out += pack_hhih(
        message.request_api_key,
        message.request_api_version,
        message.correlation_id,
        -1 if client_id is None else len(data),
    )
    out += data
    out.append(0)
    return [out]


REQUEST_HEADER = Message(
    "RequestHeader",
    (1, 2),
    2,
    {
        1: (decode_v1, encode_v1),
        2: (decode_v2, encode_v2),
    },
)
