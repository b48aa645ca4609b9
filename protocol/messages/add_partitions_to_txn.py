"""AddPartitionsToTxn: generated from add_partitions_to_txn.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    Chunks,
    Structure,
    add_tags,
    check_count,
    check_elements,
    long_count,
    long_size,
    put_varint,
    skip_tags,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihx = Struct(">ihx").pack
pack_ii = Struct(">ii").pack
pack_qh = Struct(">qh").pack
pack_qht = Struct(">qh?").pack
pack_qhi = Struct(">qhi").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_qhtB = Struct(">qh?B").unpack_from
unpack_qhB = Struct(">qhB").unpack_from
unpack_qhi = Struct(">qhi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnTopic(Structure):
    """Part of AddPartitionsToTxn."""

    name: str
    partitions: list[int]

    def __init__(self, name: str = "", partitions: list[int] = ABSENT) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnTransaction(Structure):
    """Part of AddPartitionsToTxn."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: list[AddPartitionsToTxnTopic]

    def __init__(
        self, transactional_id: str = "", producer_id: int = 0, producer_epoch: int = 0,
        verify_only: bool = False, topics: list[AddPartitionsToTxnTopic] = ABSENT,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnRequest(Structure):
    """AddPartitionsToTxn, versions 0-5."""

    transactions: list[AddPartitionsToTxnTransaction]
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: list[AddPartitionsToTxnTopic]

    def __init__(
        self, transactions: list[AddPartitionsToTxnTransaction] = ABSENT,
        v3_and_below_transactional_id: str = "", v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] = ABSENT,
    ) -> None:
        self.transactions = [] if transactions is ABSENT else transactions
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = [] if v3_and_below_topics is ABSENT else v3_and_below_topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnPartitionResult(Structure):
    """Part of AddPartitionsToTxn."""

    partition_index: int
    partition_error_code: int

    def __init__(self, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnTopicResult(Structure):
    """Part of AddPartitionsToTxn."""

    name: str
    results_by_partition: list[AddPartitionsToTxnPartitionResult]

    def __init__(
        self, name: str = "", results_by_partition: list[AddPartitionsToTxnPartitionResult] = ABSENT
    ) -> None:
        self.name = name
        self.results_by_partition = [] if results_by_partition is ABSENT else results_by_partition


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnResult(Structure):
    """Part of AddPartitionsToTxn."""

    transactional_id: str
    topic_results: list[AddPartitionsToTxnTopicResult]

    def __init__(
        self, transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] = ABSENT,
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = [] if topic_results is ABSENT else topic_results


@dataclass(slots=True, init=False, repr=False, eq=False)
class AddPartitionsToTxnResponse(Structure):
    """AddPartitionsToTxn, versions 0-5."""

    throttle_time_ms: int
    error_code: int
    results_by_transaction: list[AddPartitionsToTxnResult]
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] = ABSENT,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results_by_transaction = [] if results_by_transaction is ABSENT else results_by_transaction
        self.results_by_topic_v3_and_below = [] if results_by_topic_v3_and_below is ABSENT else results_by_topic_v3_and_below


def decode_request_v0(view: memoryview, position: int) -> tuple[AddPartitionsToTxnRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("AddPartitionsToTxnRequest.v3_and_below_transactional_id: negative length")
    end = position + size
    v3_and_below_transactional_id = view[position:end].tobytes().decode()
    position = end
    v3_and_below_producer_id, v3_and_below_producer_epoch, count = unpack_qhi(view, position)
    position += 14
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("AddPartitionsToTxnTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        v3_and_below_topics.append(AddPartitionsToTxnTopic(name, partitions))
    message = AddPartitionsToTxnRequest(
        [],
        v3_and_below_transactional_id,
        v3_and_below_producer_id,
        v3_and_below_producer_epoch,
        v3_and_below_topics,
    )
    return message, position


def encode_request_v0(message: AddPartitionsToTxnRequest, out: bytearray) -> Chunks:
    v3_and_below_transactional_id = message.v3_and_below_transactional_id
    data = v3_and_below_transactional_id.encode()
    out += pack_h(len(data))
    out += data
    v3_and_below_topics = message.v3_and_below_topics
    out += pack_qhi(
        message.v3_and_below_producer_id,
        message.v3_and_below_producer_epoch,
        len(v3_and_below_topics),
    )
    for add_partitions_to_txn_topic in v3_and_below_topics:
        name = add_partitions_to_txn_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = add_partitions_to_txn_topic.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[AddPartitionsToTxnRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    v3_and_below_transactional_id = view[position:end].tobytes().decode()
    position = end
    v3_and_below_producer_id, v3_and_below_producer_epoch, count = unpack_qhB(view, position)
    position += 11
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        count -= 1
        partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        v3_and_below_topics.append(AddPartitionsToTxnTopic(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AddPartitionsToTxnRequest(
        [],
        v3_and_below_transactional_id,
        v3_and_below_producer_id,
        v3_and_below_producer_epoch,
        v3_and_below_topics,
    )
    return message, position


def encode_request_v3(message: AddPartitionsToTxnRequest, out: bytearray) -> Chunks:
    v3_and_below_transactional_id = message.v3_and_below_transactional_id
    data = v3_and_below_transactional_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    v3_and_below_topics = message.v3_and_below_topics
    out += pack_qh(message.v3_and_below_producer_id, message.v3_and_below_producer_epoch)
    size = len(v3_and_below_topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for add_partitions_to_txn_topic in v3_and_below_topics:
        name = add_partitions_to_txn_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = add_partitions_to_txn_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions)}i", *partitions)
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[AddPartitionsToTxnRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 14)
    transactions: list[AddPartitionsToTxnTransaction] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
        producer_id, producer_epoch, verify_only, count = unpack_qhtB(view, position)
        position += 12
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        topics: list[AddPartitionsToTxnTopic] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(AddPartitionsToTxnTopic(name, partitions))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        transactions.append(
            AddPartitionsToTxnTransaction(
                transactional_id,
                producer_id,
                producer_epoch,
                verify_only,
                topics,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AddPartitionsToTxnRequest(transactions, "", 0, 0, []), position


def encode_request_v4(message: AddPartitionsToTxnRequest, out: bytearray) -> Chunks:
    transactions = message.transactions
    size = len(transactions) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for add_partitions_to_txn_transaction in transactions:
        transactional_id = add_partitions_to_txn_transaction.transactional_id
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = add_partitions_to_txn_transaction.topics
        out += pack_qht(
            add_partitions_to_txn_transaction.producer_id,
            add_partitions_to_txn_transaction.producer_epoch,
            add_partitions_to_txn_transaction.verify_only,
        )
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for add_partitions_to_txn_topic in topics:
            name = add_partitions_to_txn_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = add_partitions_to_txn_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partitions)}i", *partitions)
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AddPartitionsToTxnResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("AddPartitionsToTxnTopicResult.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
        for _ in range(count):
            partition_index, partition_error_code = unpack_ih(view, position)
            position += 6
            results_by_partition.append(
                AddPartitionsToTxnPartitionResult(partition_index, partition_error_code)
            )
        results_by_topic_v3_and_below.append(
            AddPartitionsToTxnTopicResult(name, results_by_partition)
        )
    message = AddPartitionsToTxnResponse(throttle_time_ms, 0, [], results_by_topic_v3_and_below)
    return message, position


def encode_response_v0(message: AddPartitionsToTxnResponse, out: bytearray) -> Chunks:
    results_by_topic_v3_and_below = message.results_by_topic_v3_and_below
    out += pack_ii(message.throttle_time_ms, len(results_by_topic_v3_and_below))
    for add_partitions_to_txn_topic_result in results_by_topic_v3_and_below:
        name = add_partitions_to_txn_topic_result.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        results_by_partition = add_partitions_to_txn_topic_result.results_by_partition
        out += pack_i(len(results_by_partition))
        for add_partitions_to_txn_partition_result in results_by_partition:
            out += pack_ih(
                add_partitions_to_txn_partition_result.partition_index,
                add_partitions_to_txn_partition_result.partition_error_code,
            )
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[AddPartitionsToTxnResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 7)
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
        for _ in range(count - 1):
            partition_index, partition_error_code, tags = unpack_ihB(view, position)
            position += 7
            if tags:
                position = skip_tags(view, position, tags)
            results_by_partition.append(
                AddPartitionsToTxnPartitionResult(partition_index, partition_error_code)
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results_by_topic_v3_and_below.append(
            AddPartitionsToTxnTopicResult(name, results_by_partition)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AddPartitionsToTxnResponse(throttle_time_ms, 0, [], results_by_topic_v3_and_below)
    return message, position


def encode_response_v3(message: AddPartitionsToTxnResponse, out: bytearray) -> Chunks:
    results_by_topic_v3_and_below = message.results_by_topic_v3_and_below
    out += pack_i(message.throttle_time_ms)
    size = len(results_by_topic_v3_and_below) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for add_partitions_to_txn_topic_result in results_by_topic_v3_and_below:
        name = add_partitions_to_txn_topic_result.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        results_by_partition = add_partitions_to_txn_topic_result.results_by_partition
        size = len(results_by_partition) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for add_partitions_to_txn_partition_result in results_by_partition:
            out += pack_ihx(
                add_partitions_to_txn_partition_result.partition_index,
                add_partitions_to_txn_partition_result.partition_error_code,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[AddPartitionsToTxnResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    results_by_transaction: list[AddPartitionsToTxnResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topic_results: list[AddPartitionsToTxnTopicResult] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 7)
            results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
            for _ in range(count - 1):
                partition_index, partition_error_code, tags = unpack_ihB(view, position)
                position += 7
                if tags:
                    position = skip_tags(view, position, tags)
                results_by_partition.append(
                    AddPartitionsToTxnPartitionResult(partition_index, partition_error_code)
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topic_results.append(AddPartitionsToTxnTopicResult(name, results_by_partition))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results_by_transaction.append(AddPartitionsToTxnResult(transactional_id, topic_results))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AddPartitionsToTxnResponse(throttle_time_ms, error_code, results_by_transaction, [])
    return message, position


def encode_response_v4(message: AddPartitionsToTxnResponse, out: bytearray) -> Chunks:
    results_by_transaction = message.results_by_transaction
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(results_by_transaction) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for add_partitions_to_txn_result in results_by_transaction:
        transactional_id = add_partitions_to_txn_result.transactional_id
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topic_results = add_partitions_to_txn_result.topic_results
        size = len(topic_results) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for add_partitions_to_txn_topic_result in topic_results:
            name = add_partitions_to_txn_topic_result.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            results_by_partition = add_partitions_to_txn_topic_result.results_by_partition
            size = len(results_by_partition) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for add_partitions_to_txn_partition_result in results_by_partition:
                out += pack_ihx(
                    add_partitions_to_txn_partition_result.partition_index,
                    add_partitions_to_txn_partition_result.partition_error_code,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


ADD_PARTITIONS_TO_TXN = Api(
    24,
    "AddPartitionsToTxn",
    Message(
        "AddPartitionsToTxnRequest",
        (0, 5),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
        },
    ),
    Message(
        "AddPartitionsToTxnResponse",
        (0, 5),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
        },
    ),
)
