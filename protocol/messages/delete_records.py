"""DeleteRecords: generated from delete_records.schema by protocol/generate. Do not edit."""

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
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
pack_iq = Struct(">iq").pack
pack_iqh = Struct(">iqh").pack
pack_iqhx = Struct(">iqhx").pack
pack_iqx = Struct(">iqx").pack
pack_ix = Struct(">ix").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iq = Struct(">iq").unpack_from
unpack_iqB = Struct(">iqB").unpack_from
unpack_iqh = Struct(">iqh").unpack_from
unpack_iqhB = Struct(">iqhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsPartition(Structure):
    """Part of DeleteRecords."""

    partition_index: int
    offset: int

    def __init__(
        self,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsTopic(Structure):
    """Part of DeleteRecords."""

    name: str
    partitions: list[DeleteRecordsPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsRequest(Structure):
    """DeleteRecords, versions 0-2."""

    topics: list[DeleteRecordsTopic]
    timeout_ms: int

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] = ABSENT,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsPartitionResult(Structure):
    """Part of DeleteRecords."""

    partition_index: int
    low_watermark: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsTopicResult(Structure):
    """Part of DeleteRecords."""

    name: str
    partitions: list[DeleteRecordsPartitionResult]

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartitionResult] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsResponse(Structure):
    """DeleteRecords, versions 0-2."""

    throttle_time_ms: int
    topics: list[DeleteRecordsTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DeleteRecordsTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v0(view: memoryview, position: int) -> tuple[DeleteRecordsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[DeleteRecordsTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DeleteRecordsTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 12)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[DeleteRecordsPartition] = []
        for _ in range(count):
            partition_index, offset = unpack_iq(view, position)
            position += 12
            partitions.append(DeleteRecordsPartition(partition_index, offset))
        topics.append(DeleteRecordsTopic(name, partitions))
    (timeout_ms,) = unpack_i(view, position)
    position += 4
    return DeleteRecordsRequest(topics, timeout_ms), position


def encode_request_v0(message: DeleteRecordsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for delete_records_topic in topics:
        name = delete_records_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = delete_records_topic.partitions
        out += pack_i(len(partitions))
        for delete_records_partition in partitions:
            out += pack_iq(
                delete_records_partition.partition_index,
                delete_records_partition.offset,
            )
    out += pack_i(message.timeout_ms)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DeleteRecordsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[DeleteRecordsTopic] = []
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
            count, position = long_count(view, position, count, 13)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[DeleteRecordsPartition] = []
        for _ in range(count - 1):
            partition_index, offset, tags = unpack_iqB(view, position)
            position += 13
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(DeleteRecordsPartition(partition_index, offset))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(DeleteRecordsTopic(name, partitions))
    timeout_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteRecordsRequest(topics, timeout_ms), position


def encode_request_v2(message: DeleteRecordsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for delete_records_topic in topics:
        name = delete_records_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = delete_records_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for delete_records_partition in partitions:
            out += pack_iqx(
                delete_records_partition.partition_index,
                delete_records_partition.offset,
            )
        out.append(0)
    out += pack_ix(message.timeout_ms)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DeleteRecordsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[DeleteRecordsTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DeleteRecordsTopicResult.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        partitions: list[DeleteRecordsPartitionResult] = []
        for _ in range(count):
            partition_index, low_watermark, error_code = unpack_iqh(view, position)
            position += 14
            partitions.append(
                DeleteRecordsPartitionResult(partition_index, low_watermark, error_code)
            )
        topics.append(DeleteRecordsTopicResult(name, partitions))
    return DeleteRecordsResponse(throttle_time_ms, topics), position


def encode_response_v0(message: DeleteRecordsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for delete_records_topic_result in topics:
        name = delete_records_topic_result.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = delete_records_topic_result.partitions
        out += pack_i(len(partitions))
        for delete_records_partition_result in partitions:
            out += pack_iqh(
                delete_records_partition_result.partition_index,
                delete_records_partition_result.low_watermark,
                delete_records_partition_result.error_code,
            )
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DeleteRecordsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[DeleteRecordsTopicResult] = []
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
            count, position = long_count(view, position, count, 15)
        partitions: list[DeleteRecordsPartitionResult] = []
        for _ in range(count - 1):
            partition_index, low_watermark, error_code, tags = unpack_iqhB(view, position)
            position += 15
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                DeleteRecordsPartitionResult(partition_index, low_watermark, error_code)
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(DeleteRecordsTopicResult(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteRecordsResponse(throttle_time_ms, topics), position


def encode_response_v2(message: DeleteRecordsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for delete_records_topic_result in topics:
        name = delete_records_topic_result.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = delete_records_topic_result.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for delete_records_partition_result in partitions:
            out += pack_iqhx(
                delete_records_partition_result.partition_index,
                delete_records_partition_result.low_watermark,
                delete_records_partition_result.error_code,
            )
        out.append(0)
    out.append(0)
    return [out]


DELETE_RECORDS = Api(
    21,
    "DeleteRecords",
    Message(
        "DeleteRecordsRequest",
        (0, 2),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DeleteRecordsResponse",
        (0, 2),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
