"""InitializeShareGroupState: generated from initialize_share_group_state.schema by protocol/generate. Do not edit."""

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
pack_iiqx = Struct(">iiqx").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiqB = Struct(">iiqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of InitializeShareGroupState."""

    partition: int
    state_epoch: int
    start_offset: int

    def __init__(
        self,
        partition: int = 0,
        state_epoch: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class InitializeStateData(Structure):
    """Part of InitializeShareGroupState."""

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
class InitializeShareGroupStateRequest(Structure):
    """InitializeShareGroupState, versions 0-0."""

    group_id: str
    topics: list[InitializeStateData]

    def __init__(
        self,
        group_id: str = "",
        topics: list[InitializeStateData] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionResult(Structure):
    """Part of InitializeShareGroupState."""

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
class InitializeStateResult(Structure):
    """Part of InitializeShareGroupState."""

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
class InitializeShareGroupStateResponse(Structure):
    """InitializeShareGroupState, versions 0-0."""

    results: list[InitializeStateResult]

    def __init__(
        self,
        results: list[InitializeStateResult] = ABSENT,
    ) -> None:
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[InitializeShareGroupStateRequest, int]:
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
    topics: list[InitializeStateData] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 17)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            partition, state_epoch, start_offset, tags = unpack_iiqB(view, position)
            position += 17
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(PartitionData(partition, state_epoch, start_offset))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(InitializeStateData(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return InitializeShareGroupStateRequest(group_id, topics), position


def encode_request_v0(message: InitializeShareGroupStateRequest, out: bytearray) -> Chunks:
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
    for initialize_state_data in topics:
        partitions = initialize_state_data.partitions
        out += pack_16s(initialize_state_data.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            out += pack_iiqx(
                partition_data.partition,
                partition_data.state_epoch,
                partition_data.start_offset,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[InitializeShareGroupStateResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    results: list[InitializeStateResult] = []
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
        results.append(InitializeStateResult(topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return InitializeShareGroupStateResponse(results), position


def encode_response_v0(message: InitializeShareGroupStateResponse, out: bytearray) -> Chunks:
    results = message.results
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for initialize_state_result in results:
        partitions = initialize_state_result.partitions
        out += pack_16s(initialize_state_result.topic_id)
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


INITIALIZE_SHARE_GROUP_STATE = Api(
    83,
    "InitializeShareGroupState",
    Message(
        "InitializeShareGroupStateRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "InitializeShareGroupStateResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
