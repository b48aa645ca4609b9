"""ListOffsets: generated from list_offsets.schema by protocol/generate. Do not edit."""

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
pack_ib = Struct(">ib").pack
pack_ibi = Struct(">ibi").pack
pack_ihqq = Struct(">ihqq").pack
pack_ihqqi = Struct(">ihqqi").pack
pack_ihqqix = Struct(">ihqqix").pack
pack_ii = Struct(">ii").pack
pack_iiq = Struct(">iiq").pack
pack_iiqx = Struct(">iiqx").pack
pack_iq = Struct(">iq").pack
pack_ix = Struct(">ix").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ibB = Struct(">ibB").unpack_from
unpack_ibi = Struct(">ibi").unpack_from
unpack_ihqq = Struct(">ihqq").unpack_from
unpack_ihqqi = Struct(">ihqqi").unpack_from
unpack_ihqqiB = Struct(">ihqqiB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iiq = Struct(">iiq").unpack_from
unpack_iiqB = Struct(">iiqB").unpack_from
unpack_iq = Struct(">iq").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsPartition(Structure):
    """Part of ListOffsets."""

    partition_index: int
    current_leader_epoch: int
    timestamp: int

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsTopic(Structure):
    """Part of ListOffsets."""

    name: str
    partitions: list[ListOffsetsPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsRequest(Structure):
    """ListOffsets, versions 1-11."""

    replica_id: int
    isolation_level: int
    topics: list[ListOffsetsTopic]
    timeout_ms: int

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] = ABSENT,
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = [] if topics is ABSENT else topics
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsPartitionResponse(Structure):
    """Part of ListOffsets."""

    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsTopicResponse(Structure):
    """Part of ListOffsets."""

    name: str
    partitions: list[ListOffsetsPartitionResponse]

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListOffsetsResponse(Structure):
    """ListOffsets, versions 1-11."""

    throttle_time_ms: int
    topics: list[ListOffsetsTopicResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v1(view: memoryview, position: int) -> tuple[ListOffsetsRequest, int]:
    elements = 0
    replica_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListOffsetsTopic.name: negative length")
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
        partitions: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, timestamp = unpack_iq(view, position)
            position += 12
            partitions.append(ListOffsetsPartition(partition_index, -1, timestamp))
        topics.append(ListOffsetsTopic(name, partitions))
    return ListOffsetsRequest(replica_id, 0, topics, 0), position


def encode_request_v1(message: ListOffsetsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.replica_id, len(topics))
    for list_offsets_topic in topics:
        name = list_offsets_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = list_offsets_topic.partitions
        out += pack_i(len(partitions))
        for list_offsets_partition in partitions:
            out += pack_iq(list_offsets_partition.partition_index, list_offsets_partition.timestamp)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[ListOffsetsRequest, int]:
    elements = 0
    replica_id, isolation_level, count = unpack_ibi(view, position)
    position += 9
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListOffsetsTopic.name: negative length")
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
        partitions: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, timestamp = unpack_iq(view, position)
            position += 12
            partitions.append(ListOffsetsPartition(partition_index, -1, timestamp))
        topics.append(ListOffsetsTopic(name, partitions))
    return ListOffsetsRequest(replica_id, isolation_level, topics, 0), position


def encode_request_v2(message: ListOffsetsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ibi(message.replica_id, message.isolation_level, len(topics))
    for list_offsets_topic in topics:
        name = list_offsets_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = list_offsets_topic.partitions
        out += pack_i(len(partitions))
        for list_offsets_partition in partitions:
            out += pack_iq(list_offsets_partition.partition_index, list_offsets_partition.timestamp)
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[ListOffsetsRequest, int]:
    elements = 0
    replica_id, isolation_level, count = unpack_ibi(view, position)
    position += 9
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[ListOffsetsTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListOffsetsTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 16)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[ListOffsetsPartition] = []
        for _ in range(count):
            partition_index, current_leader_epoch, timestamp = unpack_iiq(view, position)
            position += 16
            partitions.append(
                ListOffsetsPartition(partition_index, current_leader_epoch, timestamp)
            )
        topics.append(ListOffsetsTopic(name, partitions))
    return ListOffsetsRequest(replica_id, isolation_level, topics, 0), position


def encode_request_v4(message: ListOffsetsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ibi(message.replica_id, message.isolation_level, len(topics))
    for list_offsets_topic in topics:
        name = list_offsets_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = list_offsets_topic.partitions
        out += pack_i(len(partitions))
        for list_offsets_partition in partitions:
            out += pack_iiq(
                list_offsets_partition.partition_index,
                list_offsets_partition.current_leader_epoch,
                list_offsets_partition.timestamp,
            )
    return [out]


def decode_request_v6(view: memoryview, position: int) -> tuple[ListOffsetsRequest, int]:
    elements = 0
    replica_id, isolation_level, count = unpack_ibB(view, position)
    position += 6
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[ListOffsetsTopic] = []
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
            count, position = long_count(view, position, count, 17)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[ListOffsetsPartition] = []
        for _ in range(count - 1):
            partition_index, current_leader_epoch, timestamp, tags = unpack_iiqB(view, position)
            position += 17
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                ListOffsetsPartition(partition_index, current_leader_epoch, timestamp)
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(ListOffsetsTopic(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListOffsetsRequest(replica_id, isolation_level, topics, 0), position


def encode_request_v6(message: ListOffsetsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ib(message.replica_id, message.isolation_level)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for list_offsets_topic in topics:
        name = list_offsets_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = list_offsets_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for list_offsets_partition in partitions:
            out += pack_iiqx(
                list_offsets_partition.partition_index,
                list_offsets_partition.current_leader_epoch,
                list_offsets_partition.timestamp,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v10(view: memoryview, position: int) -> tuple[ListOffsetsRequest, int]:
    elements = 0
    replica_id, isolation_level, count = unpack_ibB(view, position)
    position += 6
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[ListOffsetsTopic] = []
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
            count, position = long_count(view, position, count, 17)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[ListOffsetsPartition] = []
        for _ in range(count - 1):
            partition_index, current_leader_epoch, timestamp, tags = unpack_iiqB(view, position)
            position += 17
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                ListOffsetsPartition(partition_index, current_leader_epoch, timestamp)
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(ListOffsetsTopic(name, partitions))
    timeout_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return ListOffsetsRequest(replica_id, isolation_level, topics, timeout_ms), position


def encode_request_v10(message: ListOffsetsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ib(message.replica_id, message.isolation_level)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for list_offsets_topic in topics:
        name = list_offsets_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = list_offsets_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for list_offsets_partition in partitions:
            out += pack_iiqx(
                list_offsets_partition.partition_index,
                list_offsets_partition.current_leader_epoch,
                list_offsets_partition.timestamp,
            )
        out.append(0)
    out += pack_ix(message.timeout_ms)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ListOffsetsResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListOffsetsTopicResponse.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 22)
        partitions: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partition_index, error_code, timestamp, offset = unpack_ihqq(view, position)
            position += 22
            partitions.append(
                ListOffsetsPartitionResponse(partition_index, error_code, timestamp, offset, -1)
            )
        topics.append(ListOffsetsTopicResponse(name, partitions))
    return ListOffsetsResponse(0, topics), position


def encode_response_v1(message: ListOffsetsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for list_offsets_topic_response in topics:
        name = list_offsets_topic_response.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = list_offsets_topic_response.partitions
        out += pack_i(len(partitions))
        for list_offsets_partition_response in partitions:
            out += pack_ihqq(
                list_offsets_partition_response.partition_index,
                list_offsets_partition_response.error_code,
                list_offsets_partition_response.timestamp,
                list_offsets_partition_response.offset,
            )
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[ListOffsetsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListOffsetsTopicResponse.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 22)
        partitions: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            partition_index, error_code, timestamp, offset = unpack_ihqq(view, position)
            position += 22
            partitions.append(
                ListOffsetsPartitionResponse(partition_index, error_code, timestamp, offset, -1)
            )
        topics.append(ListOffsetsTopicResponse(name, partitions))
    return ListOffsetsResponse(throttle_time_ms, topics), position


def encode_response_v2(message: ListOffsetsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for list_offsets_topic_response in topics:
        name = list_offsets_topic_response.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = list_offsets_topic_response.partitions
        out += pack_i(len(partitions))
        for list_offsets_partition_response in partitions:
            out += pack_ihqq(
                list_offsets_partition_response.partition_index,
                list_offsets_partition_response.error_code,
                list_offsets_partition_response.timestamp,
                list_offsets_partition_response.offset,
            )
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[ListOffsetsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[ListOffsetsTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ListOffsetsTopicResponse.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 26)
        partitions: list[ListOffsetsPartitionResponse] = []
        for _ in range(count):
            (
                partition_index,
                error_code,
                timestamp,
                offset,
                leader_epoch,
            ) = unpack_ihqqi(view, position)
            position += 26
            partitions.append(
                ListOffsetsPartitionResponse(
                    partition_index,
                    error_code,
                    timestamp,
                    offset,
                    leader_epoch,
                )
            )
        topics.append(ListOffsetsTopicResponse(name, partitions))
    return ListOffsetsResponse(throttle_time_ms, topics), position


def encode_response_v4(message: ListOffsetsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for list_offsets_topic_response in topics:
        name = list_offsets_topic_response.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = list_offsets_topic_response.partitions
        out += pack_i(len(partitions))
        for list_offsets_partition_response in partitions:
            out += pack_ihqqi(
                list_offsets_partition_response.partition_index,
                list_offsets_partition_response.error_code,
                list_offsets_partition_response.timestamp,
                list_offsets_partition_response.offset,
                list_offsets_partition_response.leader_epoch,
            )
    return [out]


def decode_response_v6(view: memoryview, position: int) -> tuple[ListOffsetsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[ListOffsetsTopicResponse] = []
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
            count, position = long_count(view, position, count, 27)
        partitions: list[ListOffsetsPartitionResponse] = []
        for _ in range(count - 1):
            (
                partition_index,
                error_code,
                timestamp,
                offset,
                leader_epoch,
                tags,
            ) = unpack_ihqqiB(view, position)
            position += 27
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                ListOffsetsPartitionResponse(
                    partition_index,
                    error_code,
                    timestamp,
                    offset,
                    leader_epoch,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(ListOffsetsTopicResponse(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListOffsetsResponse(throttle_time_ms, topics), position


def encode_response_v6(message: ListOffsetsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for list_offsets_topic_response in topics:
        name = list_offsets_topic_response.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = list_offsets_topic_response.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for list_offsets_partition_response in partitions:
            out += pack_ihqqix(
                list_offsets_partition_response.partition_index,
                list_offsets_partition_response.error_code,
                list_offsets_partition_response.timestamp,
                list_offsets_partition_response.offset,
                list_offsets_partition_response.leader_epoch,
            )
        out.append(0)
    out.append(0)
    return [out]


LIST_OFFSETS = Api(
    2,
    "ListOffsets",
    Message(
        "ListOffsetsRequest",
        (1, 11),
        6,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
            4: (decode_request_v4, encode_request_v4),
            6: (decode_request_v6, encode_request_v6),
            10: (decode_request_v10, encode_request_v10),
        },
    ),
    Message(
        "ListOffsetsResponse",
        (1, 11),
        6,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
            4: (decode_response_v4, encode_response_v4),
            6: (decode_response_v6, encode_response_v6),
        },
    ),
)
