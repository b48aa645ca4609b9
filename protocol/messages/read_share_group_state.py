"""ReadShareGroupState: generated from read_share_group_state.schema by protocol/generate. Do not edit."""

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
pack_iix = Struct(">iix").pack
pack_iq = Struct(">iq").pack
pack_qqbhx = Struct(">qqbhx").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iqB = Struct(">iqB").unpack_from
unpack_qqbhB = Struct(">qqbhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of ReadShareGroupState."""

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
class ReadStateData(Structure):
    """Part of ReadShareGroupState."""

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
class ReadShareGroupStateRequest(Structure):
    """ReadShareGroupState, versions 0-0."""

    group_id: str
    topics: list[ReadStateData]

    def __init__(
        self,
        group_id: str = "",
        topics: list[ReadStateData] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class StateBatch(Structure):
    """Part of ReadShareGroupState."""

    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionResult(Structure):
    """Part of ReadShareGroupState."""

    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    start_offset: int
    state_batches: list[StateBatch]

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] = ABSENT,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches = [] if state_batches is ABSENT else state_batches


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReadStateResult(Structure):
    """Part of ReadShareGroupState."""

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
class ReadShareGroupStateResponse(Structure):
    """ReadShareGroupState, versions 0-0."""

    results: list[ReadStateResult]

    def __init__(
        self,
        results: list[ReadStateResult] = ABSENT,
    ) -> None:
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[ReadShareGroupStateRequest, int]:
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
    topics: list[ReadStateData] = []
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
        topics.append(ReadStateData(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ReadShareGroupStateRequest(group_id, topics), position


def encode_request_v0(message: ReadShareGroupStateRequest, out: bytearray) -> Chunks:
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
    for read_state_data in topics:
        partitions = read_state_data.partitions
        out += pack_16s(read_state_data.topic_id)
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


def decode_response_v0(view: memoryview, position: int) -> tuple[ReadShareGroupStateResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    results: list[ReadStateResult] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 21)
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
            state_epoch, start_offset, count = unpack_iqB(view, position)
            position += 13
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 20)
            state_batches: list[StateBatch] = []
            for _ in range(count - 1):
                (
                    first_offset,
                    last_offset,
                    delivery_state,
                    delivery_count,
                    tags,
                ) = unpack_qqbhB(view, position)
                position += 20
                if tags:
                    position = skip_tags(view, position, tags)
                state_batches.append(
                    StateBatch(first_offset, last_offset, delivery_state, delivery_count)
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionResult(
                    partition,
                    error_code,
                    error_message,
                    state_epoch,
                    start_offset,
                    state_batches,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(ReadStateResult(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ReadShareGroupStateResponse(results), position


def encode_response_v0(message: ReadShareGroupStateResponse, out: bytearray) -> Chunks:
    results = message.results
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for read_state_result in results:
        partitions = read_state_result.partitions
        out += pack_16s(read_state_result.topic_id)
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
            state_batches = partition_result.state_batches
            out += pack_iq(partition_result.state_epoch, partition_result.start_offset)
            size = len(state_batches) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for state_batch in state_batches:
                out += pack_qqbhx(
                    state_batch.first_offset,
                    state_batch.last_offset,
                    state_batch.delivery_state,
                    state_batch.delivery_count,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


READ_SHARE_GROUP_STATE = Api(
    84,
    "ReadShareGroupState",
    Message(
        "ReadShareGroupStateRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "ReadShareGroupStateResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
