"""EndTxn: generated from end_txn.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, long_size, put_varint, skip_tags

pack_h = Struct(">h").pack
pack_ih = Struct(">ih").pack
pack_ihqhx = Struct(">ihqhx").pack
pack_ihx = Struct(">ihx").pack
pack_qht = Struct(">qh?").pack
pack_qhtx = Struct(">qh?x").pack
unpack_h = Struct(">h").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihqhB = Struct(">ihqhB").unpack_from
unpack_qht = Struct(">qh?").unpack_from
unpack_qhtB = Struct(">qh?B").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class EndTxnRequest(Structure):
    """EndTxn, versions 0-5."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool

    def __init__(
        self, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed


@dataclass(slots=True, init=False, repr=False, eq=False)
class EndTxnResponse(Structure):
    """EndTxn, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1,
        producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch


def decode_request_v0(view: memoryview, position: int) -> tuple[EndTxnRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("EndTxnRequest.transactional_id: negative length")
    end = position + size
    transactional_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, committed = unpack_qht(view, position)
    position += 11
    return EndTxnRequest(transactional_id, producer_id, producer_epoch, committed), position


def encode_request_v0(message: EndTxnRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    out += pack_h(len(data))
    out += data
    out += pack_qht(message.producer_id, message.producer_epoch, message.committed)
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[EndTxnRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    transactional_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, committed, tags = unpack_qhtB(view, position)
    position += 12
    if tags:
        position = skip_tags(view, position, tags)
    return EndTxnRequest(transactional_id, producer_id, producer_epoch, committed), position


def encode_request_v3(message: EndTxnRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    out += pack_qhtx(message.producer_id, message.producer_epoch, message.committed)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[EndTxnResponse, int]:
    throttle_time_ms, error_code = unpack_ih(view, position)
    position += 6
    return EndTxnResponse(throttle_time_ms, error_code, -1, -1), position


def encode_response_v0(message: EndTxnResponse, out: bytearray) -> Chunks:
    out += pack_ih(message.throttle_time_ms, message.error_code)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[EndTxnResponse, int]:
    throttle_time_ms, error_code, tags = unpack_ihB(view, position)
    position += 7
    if tags:
        position = skip_tags(view, position, tags)
    return EndTxnResponse(throttle_time_ms, error_code, -1, -1), position


def encode_response_v3(message: EndTxnResponse, out: bytearray) -> Chunks:
    out += pack_ihx(message.throttle_time_ms, message.error_code)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[EndTxnResponse, int]:
    throttle_time_ms, error_code, producer_id, producer_epoch, tags = unpack_ihqhB(view, position)
    position += 17
    if tags:
        position = skip_tags(view, position, tags)
    return EndTxnResponse(throttle_time_ms, error_code, producer_id, producer_epoch), position


def encode_response_v5(message: EndTxnResponse, out: bytearray) -> Chunks:
    out += pack_ihqhx(
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
    )
    return [out]


END_TXN = Api(
    26,
    "EndTxn",
    Message(
        "EndTxnRequest",
        (0, 5),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
        },
    ),
    Message(
        "EndTxnResponse",
        (0, 5),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            3: (decode_response_v3, encode_response_v3),
            5: (decode_response_v5, encode_response_v5),
        },
    ),
)
