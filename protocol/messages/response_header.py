"""ResponseHeader: generated from response_header.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Message
from barnabas.protocol.wire import Chunks, Structure, skip_tags

pack_i = Struct(">i").pack
pack_ix = Struct(">ix").pack
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ResponseHeader(Structure):
    """ResponseHeader, versions 0-1."""

    correlation_id: int

    def __init__(
        self,
        correlation_id: int = 0,
    ) -> None:
        self.correlation_id = correlation_id


def decode_v0(view: memoryview, position: int) -> tuple[ResponseHeader, int]:
    (correlation_id,) = unpack_i(view, position)
    position += 4
    return ResponseHeader(correlation_id), position


def encode_v0(message: ResponseHeader, out: bytearray) -> Chunks:
    out += pack_i(message.correlation_id)
    return [out]


def decode_v1(view: memoryview, position: int) -> tuple[ResponseHeader, int]:
    correlation_id, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return ResponseHeader(correlation_id), position


def encode_v1(message: ResponseHeader, out: bytearray) -> Chunks:
    out += pack_ix(message.correlation_id)
    return [out]


RESPONSE_HEADER = Message(
    "ResponseHeader",
    (0, 1),
    1,
    {
        0: (decode_v0, encode_v0),
        1: (decode_v1, encode_v1),
    },
)
