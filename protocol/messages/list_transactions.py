"""ListTransactions: generated from list_transactions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_ih = Struct(">ih").pack
pack_q = Struct(">q").pack
pack_qx = Struct(">qx").pack
unpack_ihB = Struct(">ihB").unpack_from
unpack_qB = Struct(">qB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListTransactionsRequest(Structure):
    """ListTransactions, versions 0-2."""

    state_filters: list[str]
    producer_id_filters: list[int]
    duration_filter: int
    transactional_id_pattern: str | None

    def __init__(
        self,
        state_filters: list[str] = ABSENT,
        producer_id_filters: list[int] = ABSENT,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters = [] if state_filters is ABSENT else state_filters
        self.producer_id_filters = [] if producer_id_filters is ABSENT else producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern


@dataclass(slots=True, init=False, repr=False, eq=False)
class TransactionState(Structure):
    """Part of ListTransactions."""

    transactional_id: str
    producer_id: int
    transaction_state: str

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListTransactionsResponse(Structure):
    """ListTransactions, versions 0-2."""

    throttle_time_ms: int
    error_code: int
    unknown_state_filters: list[str]
    transaction_states: list[TransactionState]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] = ABSENT,
        transaction_states: list[TransactionState] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = [] if unknown_state_filters is ABSENT else unknown_state_filters
        self.transaction_states = [] if transaction_states is ABSENT else transaction_states


def decode_request_v0(view: memoryview, position: int) -> tuple[ListTransactionsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    state_filters: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        state_filters_item = view[position:end].tobytes().decode()
        position = end
        state_filters.append(state_filters_item)
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    count -= 1
    producer_id_filters = list(unpack_from(f">{count}q", view, position))
    position += count * 8
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListTransactionsRequest(state_filters, producer_id_filters, -1, None), position


def encode_request_v0(message: ListTransactionsRequest, out: bytearray) -> Chunks:
    state_filters = message.state_filters
    size = len(state_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for state_filters_item in state_filters:
        data = state_filters_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    producer_id_filters = message.producer_id_filters
    size = len(producer_id_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += pack(f">{len(producer_id_filters)}q", *producer_id_filters)
    out.append(0)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[ListTransactionsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    state_filters: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        state_filters_item = view[position:end].tobytes().decode()
        position = end
        state_filters.append(state_filters_item)
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    count -= 1
    producer_id_filters = list(unpack_from(f">{count}q", view, position))
    position += count * 8
    duration_filter, tags = unpack_qB(view, position)
    position += 9
    if tags:
        position = skip_tags(view, position, tags)
    message = ListTransactionsRequest(state_filters, producer_id_filters, duration_filter, None)
    return message, position


def encode_request_v1(message: ListTransactionsRequest, out: bytearray) -> Chunks:
    state_filters = message.state_filters
    size = len(state_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for state_filters_item in state_filters:
        data = state_filters_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    producer_id_filters = message.producer_id_filters
    size = len(producer_id_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += pack(f">{len(producer_id_filters)}q", *producer_id_filters)
    out += pack_qx(message.duration_filter)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[ListTransactionsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    state_filters: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        state_filters_item = view[position:end].tobytes().decode()
        position = end
        state_filters.append(state_filters_item)
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    count -= 1
    producer_id_filters = list(unpack_from(f">{count}q", view, position))
    position += count * 8
    duration_filter, size = unpack_qB(view, position)
    position += 9
    transactional_id_pattern: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        transactional_id_pattern = view[position:end].tobytes().decode()
        position = end
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ListTransactionsRequest(
        state_filters,
        producer_id_filters,
        duration_filter,
        transactional_id_pattern,
    )
    return message, position


def encode_request_v2(message: ListTransactionsRequest, out: bytearray) -> Chunks:
    state_filters = message.state_filters
    size = len(state_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for state_filters_item in state_filters:
        data = state_filters_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    producer_id_filters = message.producer_id_filters
    size = len(producer_id_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += pack(f">{len(producer_id_filters)}q", *producer_id_filters)
    transactional_id_pattern = message.transactional_id_pattern
    out += pack_q(message.duration_filter)
    if transactional_id_pattern is None:
        out.append(0)
    else:
        data = transactional_id_pattern.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ListTransactionsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    unknown_state_filters: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        unknown_state_filters_item = view[position:end].tobytes().decode()
        position = end
        unknown_state_filters.append(unknown_state_filters_item)
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    transaction_states: list[TransactionState] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
        producer_id, size = unpack_qB(view, position)
        position += 9
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transaction_state = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        transaction_states.append(
            TransactionState(transactional_id, producer_id, transaction_state)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ListTransactionsResponse(
        throttle_time_ms,
        error_code,
        unknown_state_filters,
        transaction_states,
    )
    return message, position


def encode_response_v0(message: ListTransactionsResponse, out: bytearray) -> Chunks:
    unknown_state_filters = message.unknown_state_filters
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(unknown_state_filters) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for unknown_state_filters_item in unknown_state_filters:
        data = unknown_state_filters_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    transaction_states = message.transaction_states
    size = len(transaction_states) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for transaction_state in transaction_states:
        transactional_id = transaction_state.transactional_id
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        transaction_state_transaction_state = transaction_state.transaction_state
        out += pack_q(transaction_state.producer_id)
        data = transaction_state_transaction_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


LIST_TRANSACTIONS = Api(
    66,
    "ListTransactions",
    Message(
        "ListTransactionsRequest",
        (0, 2),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "ListTransactionsResponse",
        (0, 2),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
