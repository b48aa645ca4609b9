"""AddOffsetsToTxn: generated from add_offsets_to_txn.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, long_size, put_varint, skip_tags

pack_h = Struct(">h").pack
pack_ih = Struct(">ih").pack
pack_ihx = Struct(">ihx").pack
pack_qh = Struct(">qh").pack
pack_qhh = Struct(">qhh").pack
unpack_h = Struct(">h").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_qhB = Struct(">qhB").unpack_from
unpack_qhh = Struct(">qhh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddOffsetsToTxnRequest(Structure):
    """AddOffsetsToTxn, versions 0-4."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    group_id: str

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddOffsetsToTxnResponse(Structure):
    """AddOffsetsToTxn, versions 0-4."""

    throttle_time_ms: int
    error_code: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code


def decode_request_v0(view: memoryview, position: int) -> tuple[AddOffsetsToTxnRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("AddOffsetsToTxnRequest.transactional_id: negative length")
    end = position + size
    transactional_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, size = unpack_qhh(view, position)
    position += 12
    if size < 0:
        raise Malformed("AddOffsetsToTxnRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    message = AddOffsetsToTxnRequest(transactional_id, producer_id, producer_epoch, group_id)
    return message, position


def encode_request_v0(message: AddOffsetsToTxnRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    out += pack_h(len(data))
    out += data
    group_id = message.group_id
    data = group_id.encode()
    out += pack_qhh(message.producer_id, message.producer_epoch, len(data))
    out += data
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[AddOffsetsToTxnRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    transactional_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, size = unpack_qhB(view, position)
    position += 11
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AddOffsetsToTxnRequest(transactional_id, producer_id, producer_epoch, group_id)
    return message, position


def encode_request_v3(message: AddOffsetsToTxnRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    group_id = message.group_id
    out += pack_qh(message.producer_id, message.producer_epoch)
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AddOffsetsToTxnResponse, int]:
    throttle_time_ms, error_code = unpack_ih(view, position)
    position += 6
    return AddOffsetsToTxnResponse(throttle_time_ms, error_code), position


def encode_response_v0(message: AddOffsetsToTxnResponse, out: bytearray) -> Chunks:
    out += pack_ih(message.throttle_time_ms, message.error_code)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[AddOffsetsToTxnResponse, int]:
    throttle_time_ms, error_code, tags = unpack_ihB(view, position)
    position += 7
    if tags:
        position = skip_tags(view, position, tags)
    return AddOffsetsToTxnResponse(throttle_time_ms, error_code), position


def encode_response_v3(message: AddOffsetsToTxnResponse, out: bytearray) -> Chunks:
    out += pack_ihx(message.throttle_time_ms, message.error_code)
    return [out]


ADD_OFFSETS_TO_TXN = Api(
    25,
    "AddOffsetsToTxn",
    Message(
        "AddOffsetsToTxnRequest",
        (0, 4),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
        },
    ),
    Message(
        "AddOffsetsToTxnResponse",
        (0, 4),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            3: (decode_response_v3, encode_response_v3),
        },
    ),
)
