"""AlterShareGroupOffsets: generated from alter_share_group_offsets.schema by protocol/generate. Do not edit."""

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
pack_iqx = Struct(">iqx").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iqB = Struct(">iqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsRequestPartition(Structure):
    """Part of AlterShareGroupOffsets."""

    partition_index: int
    start_offset: int

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsRequestTopic(Structure):
    """Part of AlterShareGroupOffsets."""

    topic_name: str
    partitions: list[AlterShareGroupOffsetsRequestPartition]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsRequest(Structure):
    """AlterShareGroupOffsets, versions 0-0."""

    group_id: str
    topics: list[AlterShareGroupOffsetsRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsResponsePartition(Structure):
    """Part of AlterShareGroupOffsets."""

    partition_index: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsResponseTopic(Structure):
    """Part of AlterShareGroupOffsets."""

    topic_name: str
    topic_id: bytes
    partitions: list[AlterShareGroupOffsetsResponsePartition]

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterShareGroupOffsetsResponse(Structure):
    """AlterShareGroupOffsets, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[AlterShareGroupOffsetsResponseTopic]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is ABSENT else responses


def decode_request_v0(view: memoryview, position: int) -> tuple[AlterShareGroupOffsetsRequest, int]:
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
        count, position = long_count(view, position, count, 3)
    topics: list[AlterShareGroupOffsetsRequestTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 13)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[AlterShareGroupOffsetsRequestPartition] = []
        for _ in range(count - 1):
            partition_index, start_offset, tags = unpack_iqB(view, position)
            position += 13
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(AlterShareGroupOffsetsRequestPartition(partition_index, start_offset))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(AlterShareGroupOffsetsRequestTopic(topic_name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterShareGroupOffsetsRequest(group_id, topics), position


def encode_request_v0(message: AlterShareGroupOffsetsRequest, out: bytearray) -> Chunks:
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
    for alter_share_group_offsets_request_topic in topics:
        topic_name = alter_share_group_offsets_request_topic.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = alter_share_group_offsets_request_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for alter_share_group_offsets_request_partition in partitions:
            out += pack_iqx(
                alter_share_group_offsets_request_partition.partition_index,
                alter_share_group_offsets_request_partition.start_offset,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AlterShareGroupOffsetsResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 19)
    responses: list[AlterShareGroupOffsetsResponseTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 8)
        partitions: list[AlterShareGroupOffsetsResponsePartition] = []
        for _ in range(count - 1):
            partition_index, partitions_error_code, size = unpack_ihB(view, position)
            position += 7
            partitions_error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                partitions_error_message = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                AlterShareGroupOffsetsResponsePartition(
                    partition_index,
                    partitions_error_code,
                    partitions_error_message,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(AlterShareGroupOffsetsResponseTopic(topic_name, topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AlterShareGroupOffsetsResponse(throttle_time_ms, error_code, error_message, responses)
    return message, position


def encode_response_v0(message: AlterShareGroupOffsetsResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
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
    responses = message.responses
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for alter_share_group_offsets_response_topic in responses:
        topic_name = alter_share_group_offsets_response_topic.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = alter_share_group_offsets_response_topic.partitions
        out += pack_16s(alter_share_group_offsets_response_topic.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for alter_share_group_offsets_response_partition in partitions:
            alter_share_group_offsets_response_partition_error_message = alter_share_group_offsets_response_partition.error_message
            out += pack_ih(
                alter_share_group_offsets_response_partition.partition_index,
                alter_share_group_offsets_response_partition.error_code,
            )
            if alter_share_group_offsets_response_partition_error_message is None:
                out.append(0)
            else:
                data = alter_share_group_offsets_response_partition_error_message.encode()
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


ALTER_SHARE_GROUP_OFFSETS = Api(
    91,
    "AlterShareGroupOffsets",
    Message(
        "AlterShareGroupOffsetsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "AlterShareGroupOffsetsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
