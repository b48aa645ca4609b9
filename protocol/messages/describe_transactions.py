"""DescribeTransactions: generated from describe_transactions.schema by protocol/generate. Do not edit."""

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
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    varint_tail,
    wrong_tag_size,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_iqqh = Struct(">iqqh").pack
unpack_hB = Struct(">hB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_iqqhB = Struct(">iqqhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTransactionsRequest(Structure):
    """DescribeTransactions, versions 0-0."""

    transactional_ids: list[str]

    def __init__(
        self,
        transactional_ids: list[str] = ABSENT,
    ) -> None:
        self.transactional_ids = [] if transactional_ids is ABSENT else transactional_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicData(Structure):
    """Part of DescribeTransactions."""

    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class TransactionState(Structure):
    """Part of DescribeTransactions."""

    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    producer_id: int
    producer_epoch: int
    topics: list[TopicData]
    client_id: str | None
    client_host: str | None

    def __init__(
        self,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] = ABSENT,
        client_id: str | None = None,
        client_host: str | None = None,
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = [] if topics is ABSENT else topics
        self.client_id = client_id
        self.client_host = client_host


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTransactionsResponse(Structure):
    """DescribeTransactions, versions 0-0."""

    throttle_time_ms: int
    transaction_states: list[TransactionState]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = [] if transaction_states is ABSENT else transaction_states


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeTransactionsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    transactional_ids: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transactional_ids_item = view[position:end].tobytes().decode()
        position = end
        transactional_ids.append(transactional_ids_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeTransactionsRequest(transactional_ids), position


def encode_request_v0(message: DescribeTransactionsRequest, out: bytearray) -> Chunks:
    transactional_ids = message.transactional_ids
    size = len(transactional_ids) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for transactional_ids_item in transactional_ids:
        data = transactional_ids_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeTransactionsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 28)
    transaction_states: list[TransactionState] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transaction_state = view[position:end].tobytes().decode()
        position = end
        (
            transaction_timeout_ms,
            transaction_start_time_ms,
            producer_id,
            producer_epoch,
            count,
        ) = unpack_iqqhB(view, position)
        position += 23
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics: list[TopicData] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            topic = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(TopicData(topic, partitions))
        transaction_states_tags = view[position]
        position += 1
        client_id: str | None = None
        client_host: str | None = None
        if transaction_states_tags:
            transaction_states_tags, position = tag_count(view, position, transaction_states_tags)
            for _ in range(transaction_states_tags):
                tag, position, transaction_states_tag_end = read_tag(view, position)
                if tag == 1000:
                    size = view[position]
                    position += 1
                    tagged_client_id: str | None = None
                    if size:
                        if size >= 0x80:
                            size, position = varint_tail(view, position, size)
                        end = position + size - 1
                        tagged_client_id = view[position:end].tobytes().decode()
                        position = end
                    client_id = tagged_client_id
                    if position != transaction_states_tag_end:
                        raise wrong_tag_size(1000)
                elif tag == 1001:
                    size = view[position]
                    position += 1
                    tagged_client_host: str | None = None
                    if size:
                        if size >= 0x80:
                            size, position = varint_tail(view, position, size)
                        end = position + size - 1
                        tagged_client_host = view[position:end].tobytes().decode()
                        position = end
                    client_host = tagged_client_host
                    if position != transaction_states_tag_end:
                        raise wrong_tag_size(1001)
                position = transaction_states_tag_end
        transaction_states.append(
            TransactionState(
                error_code,
                transactional_id,
                transaction_state,
                transaction_timeout_ms,
                transaction_start_time_ms,
                producer_id,
                producer_epoch,
                topics,
                client_id,
                client_host,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeTransactionsResponse(throttle_time_ms, transaction_states), position


def encode_response_v0(message: DescribeTransactionsResponse, out: bytearray) -> Chunks:
    transaction_states = message.transaction_states
    out += pack_i(message.throttle_time_ms)
    size = len(transaction_states) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for transaction_state in transaction_states:
        transactional_id = transaction_state.transactional_id
        out += pack_h(transaction_state.error_code)
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        transaction_state_transaction_state = transaction_state.transaction_state
        data = transaction_state_transaction_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = transaction_state.topics
        out += pack_iqqh(
            transaction_state.transaction_timeout_ms,
            transaction_state.transaction_start_time_ms,
            transaction_state.producer_id,
            transaction_state.producer_epoch,
        )
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for topic_data in topics:
            topic = topic_data.topic
            data = topic.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = topic_data.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partitions)}i", *partitions)
            out.append(0)
        if transaction_state.client_id is None and transaction_state.client_host is None:
            out.append(0)
        else:
            transaction_state_tags = 0
            transaction_state_tagged = bytearray()
            if transaction_state.client_id is not None:
                transaction_state_tags += 1
                client_id_body = bytearray()
                client_id = transaction_state.client_id
                data = client_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    client_id_body.append(size)
                else:
                    put_varint(client_id_body, size)
                client_id_body += data
                put_tag(transaction_state_tagged, 1000, client_id_body)
            if transaction_state.client_host is not None:
                transaction_state_tags += 1
                client_host_body = bytearray()
                client_host = transaction_state.client_host
                data = client_host.encode()
                size = len(data) + 1
                if size < 0x80:
                    client_host_body.append(size)
                else:
                    put_varint(client_host_body, size)
                client_host_body += data
                put_tag(transaction_state_tagged, 1001, client_host_body)
            out.append(transaction_state_tags)
            out += transaction_state_tagged
    out.append(0)
    return [out]


DESCRIBE_TRANSACTIONS = Api(
    65,
    "DescribeTransactions",
    Message(
        "DescribeTransactionsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "DescribeTransactionsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
