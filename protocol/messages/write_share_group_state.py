"""WriteShareGroupState: generated from write_share_group_state.schema by protocol/generate. Do not edit."""

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
pack_iiiq = Struct(">iiiq").pack
pack_iiiqi = Struct(">iiiqi").pack
pack_qqbhx = Struct(">qqbhx").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiiqB = Struct(">iiiqB").unpack_from
unpack_iiiqiB = Struct(">iiiqiB").unpack_from
unpack_qqbhB = Struct(">qqbhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StateBatch(Structure):
    """Part of WriteShareGroupState."""

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
class PartitionData(Structure):
    """Part of WriteShareGroupState."""

    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: list[StateBatch]

    def __init__(
        self,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] = ABSENT,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = [] if state_batches is ABSENT else state_batches


@dataclass(slots=True, init=False, repr=False, eq=False)
class WriteStateData(Structure):
    """Part of WriteShareGroupState."""

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
class WriteShareGroupStateRequest(Structure):
    """WriteShareGroupState, versions 0-1."""

    group_id: str
    topics: list[WriteStateData]

    def __init__(
        self,
        group_id: str = "",
        topics: list[WriteStateData] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionResult(Structure):
    """Part of WriteShareGroupState."""

    partition: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class WriteStateResult(Structure):
    """Part of WriteShareGroupState."""

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
class WriteShareGroupStateResponse(Structure):
    """WriteShareGroupState, versions 0-1."""

    results: list[WriteStateResult]

    def __init__(
        self,
        results: list[WriteStateResult] = ABSENT,
    ) -> None:
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[WriteShareGroupStateRequest, int]:
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
    topics: list[WriteStateData] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 22)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            partition, state_epoch, leader_epoch, start_offset, count = unpack_iiiqB(view, position)
            position += 21
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 20)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
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
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                state_batches.append(
                    StateBatch(first_offset, last_offset, delivery_state, delivery_count)
                )
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionData(partition, state_epoch, leader_epoch, start_offset, -1, state_batches)
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(WriteStateData(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return WriteShareGroupStateRequest(group_id, topics), position


def encode_request_v0(message: WriteShareGroupStateRequest, out: bytearray) -> Chunks:
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
    for write_state_data in topics:
        partitions = write_state_data.partitions
        out += pack_16s(write_state_data.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            state_batches = partition_data.state_batches
            out += pack_iiiq(
                partition_data.partition,
                partition_data.state_epoch,
                partition_data.leader_epoch,
                partition_data.start_offset,
            )
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


def decode_request_v1(view: memoryview, position: int) -> tuple[WriteShareGroupStateRequest, int]:
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
    topics: list[WriteStateData] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 26)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            (
                partition,
                state_epoch,
                leader_epoch,
                start_offset,
                delivery_complete_count,
                count,
            ) = unpack_iiiqiB(view, position)
            position += 25
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 20)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
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
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                state_batches.append(
                    StateBatch(first_offset, last_offset, delivery_state, delivery_count)
                )
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionData(
                    partition,
                    state_epoch,
                    leader_epoch,
                    start_offset,
                    delivery_complete_count,
                    state_batches,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(WriteStateData(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return WriteShareGroupStateRequest(group_id, topics), position


def encode_request_v1(message: WriteShareGroupStateRequest, out: bytearray) -> Chunks:
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
    for write_state_data in topics:
        partitions = write_state_data.partitions
        out += pack_16s(write_state_data.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            state_batches = partition_data.state_batches
            out += pack_iiiqi(
                partition_data.partition,
                partition_data.state_epoch,
                partition_data.leader_epoch,
                partition_data.start_offset,
                partition_data.delivery_complete_count,
            )
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


def decode_response_v0(view: memoryview, position: int) -> tuple[WriteShareGroupStateResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    results: list[WriteStateResult] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 8)
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
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(PartitionResult(partition, error_code, error_message))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(WriteStateResult(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return WriteShareGroupStateResponse(results), position


def encode_response_v0(message: WriteShareGroupStateResponse, out: bytearray) -> Chunks:
    results = message.results
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for write_state_result in results:
        partitions = write_state_result.partitions
        out += pack_16s(write_state_result.topic_id)
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
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


WRITE_SHARE_GROUP_STATE = Api(
    85,
    "WriteShareGroupState",
    Message(
        "WriteShareGroupStateRequest",
        (0, 1),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "WriteShareGroupStateResponse",
        (0, 1),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
