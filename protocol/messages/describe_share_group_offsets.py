"""DescribeShareGroupOffsets: generated from describe_share_group_offsets.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

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
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_iqih = Struct(">iqih").pack
pack_iqiqh = Struct(">iqiqh").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_iqihB = Struct(">iqihB").unpack_from
unpack_iqiqhB = Struct(">iqiqhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsRequestTopic(Structure):
    """Part of DescribeShareGroupOffsets."""

    topic_name: str
    partitions: list[int]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsRequestGroup(Structure):
    """Part of DescribeShareGroupOffsets."""

    group_id: str
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsRequest(Structure):
    """DescribeShareGroupOffsets, versions 0-1."""

    groups: list[DescribeShareGroupOffsetsRequestGroup]

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] = ABSENT,
    ) -> None:
        self.groups = [] if groups is ABSENT else groups


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponsePartition(Structure):
    """Part of DescribeShareGroupOffsets."""

    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponseTopic(Structure):
    """Part of DescribeShareGroupOffsets."""

    topic_name: str
    topic_id: bytes
    partitions: list[DescribeShareGroupOffsetsResponsePartition]

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponseGroup(Structure):
    """Part of DescribeShareGroupOffsets."""

    group_id: str
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] = ABSENT,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeShareGroupOffsetsResponse(Structure):
    """DescribeShareGroupOffsets, versions 0-1."""

    throttle_time_ms: int
    groups: list[DescribeShareGroupOffsetsResponseGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeShareGroupOffsetsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    groups: list[DescribeShareGroupOffsetsRequestGroup] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None
        if count:
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            topics = []
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
                topics.append(DescribeShareGroupOffsetsRequestTopic(topic_name, partitions))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        groups.append(DescribeShareGroupOffsetsRequestGroup(group_id, topics))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeShareGroupOffsetsRequest(groups), position


def encode_request_v0(message: DescribeShareGroupOffsetsRequest, out: bytearray) -> Chunks:
    groups = message.groups
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_share_group_offsets_request_group in groups:
        group_id = describe_share_group_offsets_request_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_share_group_offsets_request_group.topics
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_share_group_offsets_request_topic in topics:
                topic_name = describe_share_group_offsets_request_topic.topic_name
                data = topic_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                partitions = describe_share_group_offsets_request_topic.partitions
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


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 6)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(count - 1):
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
            count, position = long_count(view, position, count, 19)
        topics: list[DescribeShareGroupOffsetsResponseTopic] = []
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
                count, position = long_count(view, position, count, 20)
            partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    start_offset,
                    leader_epoch,
                    partitions_error_code,
                    size,
                ) = unpack_iqihB(view, position)
                position += 19
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
                    DescribeShareGroupOffsetsResponsePartition(
                        partition_index,
                        start_offset,
                        leader_epoch,
                        -1,
                        partitions_error_code,
                        partitions_error_message,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(DescribeShareGroupOffsetsResponseTopic(topic_name, topic_id, partitions))
        error_code, size = unpack_hB(view, position)
        position += 3
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
        groups.append(
            DescribeShareGroupOffsetsResponseGroup(group_id, topics, error_code, error_message)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeShareGroupOffsetsResponse(throttle_time_ms, groups), position


def encode_response_v0(message: DescribeShareGroupOffsetsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_share_group_offsets_response_group in groups:
        group_id = describe_share_group_offsets_response_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_share_group_offsets_response_group.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_share_group_offsets_response_topic in topics:
            topic_name = describe_share_group_offsets_response_topic.topic_name
            data = topic_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describe_share_group_offsets_response_topic.partitions
            out += pack_16s(describe_share_group_offsets_response_topic.topic_id)
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_share_group_offsets_response_partition in partitions:
                error_message = describe_share_group_offsets_response_partition.error_message
                out += pack_iqih(
                    describe_share_group_offsets_response_partition.partition_index,
                    describe_share_group_offsets_response_partition.start_offset,
                    describe_share_group_offsets_response_partition.leader_epoch,
                    describe_share_group_offsets_response_partition.error_code,
                )
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
        describe_share_group_offsets_response_group_error_message = describe_share_group_offsets_response_group.error_message
        out += pack_h(describe_share_group_offsets_response_group.error_code)
        if describe_share_group_offsets_response_group_error_message is None:
            out.append(0)
        else:
            data = describe_share_group_offsets_response_group_error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeShareGroupOffsetsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 6)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = []
    for _ in range(count - 1):
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
            count, position = long_count(view, position, count, 19)
        topics: list[DescribeShareGroupOffsetsResponseTopic] = []
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
                count, position = long_count(view, position, count, 28)
            partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    start_offset,
                    leader_epoch,
                    lag,
                    partitions_error_code,
                    size,
                ) = unpack_iqiqhB(view, position)
                position += 27
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
                    DescribeShareGroupOffsetsResponsePartition(
                        partition_index,
                        start_offset,
                        leader_epoch,
                        lag,
                        partitions_error_code,
                        partitions_error_message,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(DescribeShareGroupOffsetsResponseTopic(topic_name, topic_id, partitions))
        error_code, size = unpack_hB(view, position)
        position += 3
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
        groups.append(
            DescribeShareGroupOffsetsResponseGroup(group_id, topics, error_code, error_message)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeShareGroupOffsetsResponse(throttle_time_ms, groups), position


def encode_response_v1(message: DescribeShareGroupOffsetsResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_share_group_offsets_response_group in groups:
        group_id = describe_share_group_offsets_response_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_share_group_offsets_response_group.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_share_group_offsets_response_topic in topics:
            topic_name = describe_share_group_offsets_response_topic.topic_name
            data = topic_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describe_share_group_offsets_response_topic.partitions
            out += pack_16s(describe_share_group_offsets_response_topic.topic_id)
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_share_group_offsets_response_partition in partitions:
                error_message = describe_share_group_offsets_response_partition.error_message
                out += pack_iqiqh(
                    describe_share_group_offsets_response_partition.partition_index,
                    describe_share_group_offsets_response_partition.start_offset,
                    describe_share_group_offsets_response_partition.leader_epoch,
                    describe_share_group_offsets_response_partition.lag,
                    describe_share_group_offsets_response_partition.error_code,
                )
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
        describe_share_group_offsets_response_group_error_message = describe_share_group_offsets_response_group.error_message
        out += pack_h(describe_share_group_offsets_response_group.error_code)
        if describe_share_group_offsets_response_group_error_message is None:
            out.append(0)
        else:
            data = describe_share_group_offsets_response_group_error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


DESCRIBE_SHARE_GROUP_OFFSETS = Api(
    90,
    "DescribeShareGroupOffsets",
    Message(
        "DescribeShareGroupOffsetsRequest",
        (0, 1),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "DescribeShareGroupOffsetsResponse",
        (0, 1),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
