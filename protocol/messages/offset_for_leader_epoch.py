"""OffsetForLeaderEpoch: generated from offset_for_leader_epoch.schema by protocol/generate. Do not edit."""

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
pack_hiiq = Struct(">hiiq").pack
pack_hiiqx = Struct(">hiiqx").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
pack_iii = Struct(">iii").pack
pack_iiix = Struct(">iiix").pack
unpack_h = Struct(">h").unpack_from
unpack_hiiq = Struct(">hiiq").unpack_from
unpack_hiiqB = Struct(">hiiqB").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iii = Struct(">iii").unpack_from
unpack_iiiB = Struct(">iiiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderPartition(Structure):
    """Part of OffsetForLeaderEpoch."""

    partition: int
    current_leader_epoch: int
    leader_epoch: int

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderTopic(Structure):
    """Part of OffsetForLeaderEpoch."""

    topic: str
    partitions: list[OffsetForLeaderPartition]

    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderEpochRequest(Structure):
    """OffsetForLeaderEpoch, versions 2-4."""

    replica_id: int
    topics: list[OffsetForLeaderTopic]

    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] = ABSENT,
    ) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class EpochEndOffset(Structure):
    """Part of OffsetForLeaderEpoch."""

    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int

    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderTopicResult(Structure):
    """Part of OffsetForLeaderEpoch."""

    topic: str
    partitions: list[EpochEndOffset]

    def __init__(
        self,
        topic: str = "",
        partitions: list[EpochEndOffset] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderEpochResponse(Structure):
    """OffsetForLeaderEpoch, versions 2-4."""

    throttle_time_ms: int
    topics: list[OffsetForLeaderTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v2(view: memoryview, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetForLeaderTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 12)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[OffsetForLeaderPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, leader_epoch = unpack_iii(view, position)
            position += 12
            partitions.append(
                OffsetForLeaderPartition(partition, current_leader_epoch, leader_epoch)
            )
        topics.append(OffsetForLeaderTopic(topic, partitions))
    return OffsetForLeaderEpochRequest(-2, topics), position


def encode_request_v2(message: OffsetForLeaderEpochRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for offset_for_leader_topic in topics:
        topic = offset_for_leader_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_for_leader_topic.partitions
        out += pack_i(len(partitions))
        for offset_for_leader_partition in partitions:
            out += pack_iii(
                offset_for_leader_partition.partition,
                offset_for_leader_partition.current_leader_epoch,
                offset_for_leader_partition.leader_epoch,
            )
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    elements = 0
    replica_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetForLeaderTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetForLeaderTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 12)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[OffsetForLeaderPartition] = []
        for _ in range(count):
            partition, current_leader_epoch, leader_epoch = unpack_iii(view, position)
            position += 12
            partitions.append(
                OffsetForLeaderPartition(partition, current_leader_epoch, leader_epoch)
            )
        topics.append(OffsetForLeaderTopic(topic, partitions))
    return OffsetForLeaderEpochRequest(replica_id, topics), position


def encode_request_v3(message: OffsetForLeaderEpochRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.replica_id, len(topics))
    for offset_for_leader_topic in topics:
        topic = offset_for_leader_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_for_leader_topic.partitions
        out += pack_i(len(partitions))
        for offset_for_leader_partition in partitions:
            out += pack_iii(
                offset_for_leader_partition.partition,
                offset_for_leader_partition.current_leader_epoch,
                offset_for_leader_partition.leader_epoch,
            )
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[OffsetForLeaderEpochRequest, int]:
    elements = 0
    replica_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[OffsetForLeaderTopic] = []
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
            count, position = long_count(view, position, count, 13)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[OffsetForLeaderPartition] = []
        for _ in range(count - 1):
            partition, current_leader_epoch, leader_epoch, tags = unpack_iiiB(view, position)
            position += 13
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                OffsetForLeaderPartition(partition, current_leader_epoch, leader_epoch)
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(OffsetForLeaderTopic(topic, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetForLeaderEpochRequest(replica_id, topics), position


def encode_request_v4(message: OffsetForLeaderEpochRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.replica_id)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_for_leader_topic in topics:
        topic = offset_for_leader_topic.topic
        data = topic.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = offset_for_leader_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_for_leader_partition in partitions:
            out += pack_iiix(
                offset_for_leader_partition.partition,
                offset_for_leader_partition.current_leader_epoch,
                offset_for_leader_partition.leader_epoch,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetForLeaderTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetForLeaderTopicResult.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 18)
        partitions: list[EpochEndOffset] = []
        for _ in range(count):
            error_code, partition, leader_epoch, end_offset = unpack_hiiq(view, position)
            position += 18
            partitions.append(EpochEndOffset(error_code, partition, leader_epoch, end_offset))
        topics.append(OffsetForLeaderTopicResult(topic, partitions))
    return OffsetForLeaderEpochResponse(throttle_time_ms, topics), position


def encode_response_v2(message: OffsetForLeaderEpochResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for offset_for_leader_topic_result in topics:
        topic = offset_for_leader_topic_result.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_for_leader_topic_result.partitions
        out += pack_i(len(partitions))
        for epoch_end_offset in partitions:
            out += pack_hiiq(
                epoch_end_offset.error_code,
                epoch_end_offset.partition,
                epoch_end_offset.leader_epoch,
                epoch_end_offset.end_offset,
            )
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[OffsetForLeaderEpochResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[OffsetForLeaderTopicResult] = []
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
            count, position = long_count(view, position, count, 19)
        partitions: list[EpochEndOffset] = []
        for _ in range(count - 1):
            error_code, partition, leader_epoch, end_offset, tags = unpack_hiiqB(view, position)
            position += 19
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(EpochEndOffset(error_code, partition, leader_epoch, end_offset))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(OffsetForLeaderTopicResult(topic, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetForLeaderEpochResponse(throttle_time_ms, topics), position


def encode_response_v4(message: OffsetForLeaderEpochResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_for_leader_topic_result in topics:
        topic = offset_for_leader_topic_result.topic
        data = topic.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = offset_for_leader_topic_result.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for epoch_end_offset in partitions:
            out += pack_hiiqx(
                epoch_end_offset.error_code,
                epoch_end_offset.partition,
                epoch_end_offset.leader_epoch,
                epoch_end_offset.end_offset,
            )
        out.append(0)
    out.append(0)
    return [out]


OFFSET_FOR_LEADER_EPOCH = Api(
    23,
    "OffsetForLeaderEpoch",
    Message(
        "OffsetForLeaderEpochRequest",
        (2, 4),
        4,
        {
            2: (decode_request_v2, encode_request_v2),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
        },
    ),
    Message(
        "OffsetForLeaderEpochResponse",
        (2, 4),
        4,
        {
            2: (decode_response_v2, encode_response_v2),
            4: (decode_response_v4, encode_response_v4),
        },
    ),
)
