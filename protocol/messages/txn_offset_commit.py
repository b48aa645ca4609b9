"""TxnOffsetCommit: generated from txn_offset_commit.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

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
    varint_tail,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihx = Struct(">ihx").pack
pack_ii = Struct(">ii").pack
pack_iqh = Struct(">iqh").pack
pack_iqi = Struct(">iqi").pack
pack_iqih = Struct(">iqih").pack
pack_qhi = Struct(">qhi").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iqh = Struct(">iqh").unpack_from
unpack_iqiB = Struct(">iqiB").unpack_from
unpack_iqih = Struct(">iqih").unpack_from
unpack_qhi = Struct(">qhi").unpack_from
unpack_qhiB = Struct(">qhiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class TxnOffsetCommitRequestPartition(Structure):
    """Part of TxnOffsetCommit."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None

    def __init__(
        self, partition_index: int = 0, committed_offset: int = 0, committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class TxnOffsetCommitRequestTopic(Structure):
    """Part of TxnOffsetCommit."""

    name: str
    partitions: list[TxnOffsetCommitRequestPartition]

    def __init__(
        self, name: str = "", partitions: list[TxnOffsetCommitRequestPartition] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class TxnOffsetCommitRequest(Structure):
    """TxnOffsetCommit, versions 0-5."""

    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topics: list[TxnOffsetCommitRequestTopic]

    def __init__(
        self, transactional_id: str = "", group_id: str = "", producer_id: int = 0,
        producer_epoch: int = 0, generation_id: int = -1, member_id: str = "",
        group_instance_id: str | None = None, topics: list[TxnOffsetCommitRequestTopic] = ABSENT,
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class TxnOffsetCommitResponsePartition(Structure):
    """Part of TxnOffsetCommit."""

    partition_index: int
    error_code: int

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class TxnOffsetCommitResponseTopic(Structure):
    """Part of TxnOffsetCommit."""

    name: str
    partitions: list[TxnOffsetCommitResponsePartition]

    def __init__(
        self, name: str = "", partitions: list[TxnOffsetCommitResponsePartition] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class TxnOffsetCommitResponse(Structure):
    """TxnOffsetCommit, versions 0-5."""

    throttle_time_ms: int
    topics: list[TxnOffsetCommitResponseTopic]

    def __init__(
        self, throttle_time_ms: int = 0, topics: list[TxnOffsetCommitResponseTopic] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v0(view: memoryview, position: int) -> tuple[TxnOffsetCommitRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("TxnOffsetCommitRequest.transactional_id: negative length")
    end = position + size
    transactional_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("TxnOffsetCommitRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, count = unpack_qhi(view, position)
    position += 14
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TxnOffsetCommitRequestTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[TxnOffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = unpack_iqh(view, position)
            position += 14
            committed_metadata: str | None = None
            if size >= 0:
                end = position + size
                committed_metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("TxnOffsetCommitRequestPartition.committed_metadata: negative length")
            partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    -1,
                    committed_metadata,
                )
            )
        topics.append(TxnOffsetCommitRequestTopic(name, partitions))
    message = TxnOffsetCommitRequest(
        transactional_id,
        group_id,
        producer_id,
        producer_epoch,
        -1,
        "",
        None,
        topics,
    )
    return message, position


def encode_request_v0(message: TxnOffsetCommitRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    out += pack_h(len(data))
    out += data
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    topics = message.topics
    out += pack_qhi(message.producer_id, message.producer_epoch, len(topics))
    for txn_offset_commit_request_topic in topics:
        name = txn_offset_commit_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = txn_offset_commit_request_topic.partitions
        out += pack_i(len(partitions))
        for txn_offset_commit_request_partition in partitions:
            committed_metadata = txn_offset_commit_request_partition.committed_metadata
            data = b"" if committed_metadata is None else committed_metadata.encode()
            out += pack_iqh(
                txn_offset_commit_request_partition.partition_index,
                txn_offset_commit_request_partition.committed_offset,
                -1 if committed_metadata is None else len(data),
            )
            out += data
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[TxnOffsetCommitRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("TxnOffsetCommitRequest.transactional_id: negative length")
    end = position + size
    transactional_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("TxnOffsetCommitRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, count = unpack_qhi(view, position)
    position += 14
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[TxnOffsetCommitRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TxnOffsetCommitRequestTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 18)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[TxnOffsetCommitRequestPartition] = []
        for _ in range(count):
            (
                partition_index,
                committed_offset,
                committed_leader_epoch,
                size,
            ) = unpack_iqih(view, position)
            position += 18
            committed_metadata: str | None = None
            if size >= 0:
                end = position + size
                committed_metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("TxnOffsetCommitRequestPartition.committed_metadata: negative length")
            partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    committed_metadata,
                )
            )
        topics.append(TxnOffsetCommitRequestTopic(name, partitions))
    message = TxnOffsetCommitRequest(
        transactional_id,
        group_id,
        producer_id,
        producer_epoch,
        -1,
        "",
        None,
        topics,
    )
    return message, position


def encode_request_v2(message: TxnOffsetCommitRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    out += pack_h(len(data))
    out += data
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    topics = message.topics
    out += pack_qhi(message.producer_id, message.producer_epoch, len(topics))
    for txn_offset_commit_request_topic in topics:
        name = txn_offset_commit_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = txn_offset_commit_request_topic.partitions
        out += pack_i(len(partitions))
        for txn_offset_commit_request_partition in partitions:
            committed_metadata = txn_offset_commit_request_partition.committed_metadata
            data = b"" if committed_metadata is None else committed_metadata.encode()
            out += pack_iqih(
                txn_offset_commit_request_partition.partition_index,
                txn_offset_commit_request_partition.committed_offset,
                txn_offset_commit_request_partition.committed_leader_epoch,
                -1 if committed_metadata is None else len(data),
            )
            out += data
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[TxnOffsetCommitRequest, int]:
    elements = 0
    size = view[position]
    position += 1
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
    group_id = view[position:end].tobytes().decode()
    position = end
    producer_id, producer_epoch, generation_id, size = unpack_qhiB(view, position)
    position += 15
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    member_id = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    group_instance_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        group_instance_id = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[TxnOffsetCommitRequestTopic] = []
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
            count, position = long_count(view, position, count, 18)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[TxnOffsetCommitRequestPartition] = []
        for _ in range(count - 1):
            (
                partition_index,
                committed_offset,
                committed_leader_epoch,
                size,
            ) = unpack_iqiB(view, position)
            position += 17
            committed_metadata: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                committed_metadata = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                TxnOffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    committed_metadata,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(TxnOffsetCommitRequestTopic(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = TxnOffsetCommitRequest(
        transactional_id,
        group_id,
        producer_id,
        producer_epoch,
        generation_id,
        member_id,
        group_instance_id,
        topics,
    )
    return message, position


def encode_request_v3(message: TxnOffsetCommitRequest, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_qhi(message.producer_id, message.producer_epoch, message.generation_id)
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    group_instance_id = message.group_instance_id
    if group_instance_id is None:
        out.append(0)
    else:
        data = group_instance_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for txn_offset_commit_request_topic in topics:
        name = txn_offset_commit_request_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = txn_offset_commit_request_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for txn_offset_commit_request_partition in partitions:
            committed_metadata = txn_offset_commit_request_partition.committed_metadata
            out += pack_iqi(
                txn_offset_commit_request_partition.partition_index,
                txn_offset_commit_request_partition.committed_offset,
                txn_offset_commit_request_partition.committed_leader_epoch,
            )
            if committed_metadata is None:
                out.append(0)
            else:
                data = committed_metadata.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[TxnOffsetCommitResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[TxnOffsetCommitResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TxnOffsetCommitResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        partitions: list[TxnOffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code = unpack_ih(view, position)
            position += 6
            partitions.append(TxnOffsetCommitResponsePartition(partition_index, error_code))
        topics.append(TxnOffsetCommitResponseTopic(name, partitions))
    return TxnOffsetCommitResponse(throttle_time_ms, topics), position


def encode_response_v0(message: TxnOffsetCommitResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for txn_offset_commit_response_topic in topics:
        name = txn_offset_commit_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = txn_offset_commit_response_topic.partitions
        out += pack_i(len(partitions))
        for txn_offset_commit_response_partition in partitions:
            out += pack_ih(
                txn_offset_commit_response_partition.partition_index,
                txn_offset_commit_response_partition.error_code,
            )
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[TxnOffsetCommitResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[TxnOffsetCommitResponseTopic] = []
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
        partitions: list[TxnOffsetCommitResponsePartition] = []
        for _ in range(count - 1):
            partition_index, error_code, tags = unpack_ihB(view, position)
            position += 7
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(TxnOffsetCommitResponsePartition(partition_index, error_code))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(TxnOffsetCommitResponseTopic(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return TxnOffsetCommitResponse(throttle_time_ms, topics), position


def encode_response_v3(message: TxnOffsetCommitResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for txn_offset_commit_response_topic in topics:
        name = txn_offset_commit_response_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = txn_offset_commit_response_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for txn_offset_commit_response_partition in partitions:
            out += pack_ihx(
                txn_offset_commit_response_partition.partition_index,
                txn_offset_commit_response_partition.error_code,
            )
        out.append(0)
    out.append(0)
    return [out]


TXN_OFFSET_COMMIT = Api(
    28,
    "TxnOffsetCommit",
    Message(
        "TxnOffsetCommitRequest",
        (0, 5),
        3,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
            3: (decode_request_v3, encode_request_v3),
        },
    ),
    Message(
        "TxnOffsetCommitResponse",
        (0, 5),
        3,
        {
            0: (decode_response_v0, encode_response_v0),
            3: (decode_response_v3, encode_response_v3),
        },
    ),
)
