"""InitProducerId: generated from init_producer_id.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, put_varint, skip_tags, varint_tail

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ihqh = Struct(">ihqh").pack
pack_ihqhqhx = Struct(">ihqhqhx").pack
pack_ihqhx = Struct(">ihqhx").pack
pack_iqhttx = Struct(">iqh??x").pack
pack_iqhx = Struct(">iqhx").pack
pack_ix = Struct(">ix").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihqh = Struct(">ihqh").unpack_from
unpack_ihqhB = Struct(">ihqhB").unpack_from
unpack_ihqhqhB = Struct(">ihqhqhB").unpack_from
unpack_iqhttB = Struct(">iqh??B").unpack_from
unpack_iqhB = Struct(">iqhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class InitProducerIdRequest(Structure):
    """InitProducerId, versions 0-6."""

    transactional_id: str | None
    transaction_timeout_ms: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool

    def __init__(
        self, transactional_id: str | None = "", transaction_timeout_ms: int = 0,
        producer_id: int = -1, producer_epoch: int = -1, enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn


@dataclass(slots=True, init=False, repr=False, eq=False)
class InitProducerIdResponse(Structure):
    """InitProducerId, versions 0-6."""

    throttle_time_ms: int
    error_code: int
    producer_id: int
    producer_epoch: int
    ongoing_txn_producer_id: int
    ongoing_txn_producer_epoch: int

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, producer_id: int = -1,
        producer_epoch: int = 0, ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch


def decode_request_v0(view: memoryview, position: int) -> tuple[InitProducerIdRequest, int]:
    (size,) = unpack_h(view, position)
    position += 2
    transactional_id: str | None = None
    if size >= 0:
        end = position + size
        transactional_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("InitProducerIdRequest.transactional_id: negative length")
    (transaction_timeout_ms,) = unpack_i(view, position)
    position += 4
    message = InitProducerIdRequest(transactional_id, transaction_timeout_ms, -1, -1, False, False)
    return message, position


def encode_request_v0(message: InitProducerIdRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = b"" if transactional_id is None else transactional_id.encode()
    out += pack_h(-1 if transactional_id is None else len(data))
    out += data
    out += pack_i(message.transaction_timeout_ms)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[InitProducerIdRequest, int]:
    size = view[position]
    position += 1
    transactional_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
    transaction_timeout_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = InitProducerIdRequest(transactional_id, transaction_timeout_ms, -1, -1, False, False)
    return message, position


def encode_request_v2(message: InitProducerIdRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    if transactional_id is None:
        out.append(0)
    else:
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_ix(message.transaction_timeout_ms)
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[InitProducerIdRequest, int]:
    size = view[position]
    position += 1
    transactional_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
    transaction_timeout_ms, producer_id, producer_epoch, tags = unpack_iqhB(view, position)
    position += 15
    if tags:
        position = skip_tags(view, position, tags)
    message = InitProducerIdRequest(
        transactional_id,
        transaction_timeout_ms,
        producer_id,
        producer_epoch,
        False,
        False,
    )
    return message, position


def encode_request_v3(message: InitProducerIdRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    if transactional_id is None:
        out.append(0)
    else:
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_iqhx(message.transaction_timeout_ms, message.producer_id, message.producer_epoch)
    return [out]


def decode_request_v6(view: memoryview, position: int) -> tuple[InitProducerIdRequest, int]:
    size = view[position]
    position += 1
    transactional_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
    (
        transaction_timeout_ms,
        producer_id,
        producer_epoch,
        enable2_pc,
        keep_prepared_txn,
        tags,
    ) = unpack_iqhttB(view, position)
    position += 17
    if tags:
        position = skip_tags(view, position, tags)
    message = InitProducerIdRequest(
        transactional_id,
        transaction_timeout_ms,
        producer_id,
        producer_epoch,
        enable2_pc,
        keep_prepared_txn,
    )
    return message, position


def encode_request_v6(message: InitProducerIdRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    if transactional_id is None:
        out.append(0)
    else:
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_iqhttx(
        message.transaction_timeout_ms,
        message.producer_id,
        message.producer_epoch,
        message.enable2_pc,
        message.keep_prepared_txn,
    )
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[InitProducerIdResponse, int]:
    throttle_time_ms, error_code, producer_id, producer_epoch = unpack_ihqh(view, position)
    position += 16
    message = InitProducerIdResponse(
        throttle_time_ms,
        error_code,
        producer_id,
        producer_epoch,
        -1,
        -1,
    )
    return message, position


def encode_response_v0(message: InitProducerIdResponse, out: bytearray) -> Chunks:
    out += pack_ihqh(
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
    )
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[InitProducerIdResponse, int]:
    throttle_time_ms, error_code, producer_id, producer_epoch, tags = unpack_ihqhB(view, position)
    position += 17
    if tags:
        position = skip_tags(view, position, tags)
    message = InitProducerIdResponse(
        throttle_time_ms,
        error_code,
        producer_id,
        producer_epoch,
        -1,
        -1,
    )
    return message, position


def encode_response_v2(message: InitProducerIdResponse, out: bytearray) -> Chunks:
    out += pack_ihqhx(
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
    )
    return [out]


def decode_response_v6(view: memoryview, position: int) -> tuple[InitProducerIdResponse, int]:
    (
        throttle_time_ms,
        error_code,
        producer_id,
        producer_epoch,
        ongoing_txn_producer_id,
        ongoing_txn_producer_epoch,
        tags,
    ) = unpack_ihqhqhB(view, position)
    position += 27
    if tags:
        position = skip_tags(view, position, tags)
    message = InitProducerIdResponse(
        throttle_time_ms,
        error_code,
        producer_id,
        producer_epoch,
        ongoing_txn_producer_id,
        ongoing_txn_producer_epoch,
    )
    return message, position


def encode_response_v6(message: InitProducerIdResponse, out: bytearray) -> Chunks:
    out += pack_ihqhqhx(
        message.throttle_time_ms,
        message.error_code,
        message.producer_id,
        message.producer_epoch,
        message.ongoing_txn_producer_id,
        message.ongoing_txn_producer_epoch,
    )
    return [out]


INIT_PRODUCER_ID = Api(
    22,
    "InitProducerId",
    Message(
        "InitProducerIdRequest",
        (0, 6),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
            3: (decode_request_v3, encode_request_v3),
            6: (decode_request_v6, encode_request_v6),
        },
    ),
    Message(
        "InitProducerIdResponse",
        (0, 6),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
            6: (decode_response_v6, encode_response_v6),
        },
    ),
)
