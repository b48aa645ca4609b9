"""ReadShareGroupStateSummary: generated from read_share_group_state_summary.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    check_elements,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16s = Struct(">16s").pack
pack_ih = Struct(">ih").pack
pack_iiqix = Struct(">iiqix").pack
pack_iiqx = Struct(">iiqx").pack
pack_iix = Struct(">iix").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iiqB = Struct(">iiqB").unpack_from
unpack_iiqiB = Struct(">iiqiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of ReadShareGroupStateSummary."""

    partition: int
    leader_epoch: int

    def __init__(
        self,
        partition: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReadStateSummaryData(Structure):
    """Part of ReadShareGroupStateSummary."""

    topic_id: bytes
    partitions: list[PartitionData]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReadShareGroupStateSummaryRequest(Structure):
    """ReadShareGroupStateSummary, versions 0-1."""

    group_id: str
    topics: list[ReadStateSummaryData]

    def __init__(
        self,
        group_id: str = "",
        topics: list[ReadStateSummaryData] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionResult(Structure):
    """Part of ReadShareGroupStateSummary."""

    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReadStateSummaryResult(Structure):
    """Part of ReadShareGroupStateSummary."""

    topic_id: bytes
    partitions: list[PartitionResult]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReadShareGroupStateSummaryResponse(Structure):
    """ReadShareGroupStateSummary, versions 0-1."""

    results: list[ReadStateSummaryResult]

    def __init__(
        self,
        results: list[ReadStateSummaryResult] = ABSENT,
    ) -> None:
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[ReadShareGroupStateSummaryRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[ReadStateSummaryData] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 9)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            partition, leader_epoch, tags = unpack_iiB(view, position)
            position += 9
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(PartitionData(partition, leader_epoch))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(ReadStateSummaryData(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ReadShareGroupStateSummaryRequest(group_id, topics), position


def encode_request_v0(message: ReadShareGroupStateSummaryRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
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
    for read_state_summary_data in topics:
        partitions = read_state_summary_data.partitions
        out += pack_16s(read_state_summary_data.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            out += pack_iix(partition_data.partition, partition_data.leader_epoch)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ReadShareGroupStateSummaryResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    results: list[ReadStateSummaryResult] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 24)
        partitions: list[PartitionResult] = []
        for _ in range(count - 1):
            partition, error_code, size = unpack_ihB(view, position)
            position += 7
            error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                error_message = view[position:end].tobytes().decode()
                position = end
            state_epoch, leader_epoch, start_offset, tags = unpack_iiqB(view, position)
            position += 17
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionResult(
                    partition,
                    error_code,
                    error_message,
                    state_epoch,
                    leader_epoch,
                    start_offset,
                    -1,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(ReadStateSummaryResult(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ReadShareGroupStateSummaryResponse(results), position


def encode_response_v0(message: ReadShareGroupStateSummaryResponse, out: bytearray) -> Chunks:
    results = message.results
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for read_state_summary_result in results:
        partitions = read_state_summary_result.partitions
        out += pack_16s(read_state_summary_result.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_result in partitions:
            error_message = partition_result.error_message
            out += pack_ih(partition_result.partition, partition_result.error_code)
            if error_message is None:
                out.append(0)
            else:
                data = error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out += pack_iiqx(
                partition_result.state_epoch,
                partition_result.leader_epoch,
                partition_result.start_offset,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ReadShareGroupStateSummaryResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    results: list[ReadStateSummaryResult] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 28)
        partitions: list[PartitionResult] = []
        for _ in range(count - 1):
            partition, error_code, size = unpack_ihB(view, position)
            position += 7
            error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                error_message = view[position:end].tobytes().decode()
                position = end
            (
                state_epoch,
                leader_epoch,
                start_offset,
                delivery_complete_count,
                tags,
            ) = unpack_iiqiB(view, position)
            position += 21
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionResult(
                    partition,
                    error_code,
                    error_message,
                    state_epoch,
                    leader_epoch,
                    start_offset,
                    delivery_complete_count,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(ReadStateSummaryResult(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ReadShareGroupStateSummaryResponse(results), position


def encode_response_v1(message: ReadShareGroupStateSummaryResponse, out: bytearray) -> Chunks:
    results = message.results
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for read_state_summary_result in results:
        partitions = read_state_summary_result.partitions
        out += pack_16s(read_state_summary_result.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_result in partitions:
            error_message = partition_result.error_message
            out += pack_ih(partition_result.partition, partition_result.error_code)
            if error_message is None:
                out.append(0)
            else:
                data = error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out += pack_iiqix(
                partition_result.state_epoch,
                partition_result.leader_epoch,
                partition_result.start_offset,
                partition_result.delivery_complete_count,
            )
        out.append(0)
    out.append(0)
    return [out]


READ_SHARE_GROUP_STATE_SUMMARY = Api(
    87,
    "ReadShareGroupStateSummary",
    Message(
        "ReadShareGroupStateSummaryRequest",
        (0, 1),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "ReadShareGroupStateSummaryResponse",
        (0, 1),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
