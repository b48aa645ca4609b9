"""OffsetCommit: generated from offset_commit.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    ZERO_UUID,
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

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihx = Struct(">ihx").pack
pack_ii = Struct(">ii").pack
pack_iqh = Struct(">iqh").pack
pack_iqi = Struct(">iqi").pack
pack_iqih = Struct(">iqih").pack
pack_qi = Struct(">qi").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iqh = Struct(">iqh").unpack_from
unpack_iqiB = Struct(">iqiB").unpack_from
unpack_iqih = Struct(">iqih").unpack_from
unpack_qi = Struct(">qi").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitRequestPartition(Structure):
    """Part of OffsetCommit."""

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
class OffsetCommitRequestTopic(Structure):
    """Part of OffsetCommit."""

    name: str
    topic_id: bytes
    partitions: list[OffsetCommitRequestPartition]

    def __init__(
        self, name: str = "", topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitRequest(Structure):
    """OffsetCommit, versions 2-10."""

    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    group_instance_id: str | None
    retention_time_ms: int
    topics: list[OffsetCommitRequestTopic]

    def __init__(
        self, group_id: str = "", generation_id_or_member_epoch: int = -1, member_id: str = "",
        group_instance_id: str | None = None, retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.retention_time_ms = retention_time_ms
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitResponsePartition(Structure):
    """Part of OffsetCommit."""

    partition_index: int
    error_code: int

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitResponseTopic(Structure):
    """Part of OffsetCommit."""

    name: str
    topic_id: bytes
    partitions: list[OffsetCommitResponsePartition]

    def __init__(
        self, name: str = "", topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitResponse(Structure):
    """OffsetCommit, versions 2-10."""

    throttle_time_ms: int
    topics: list[OffsetCommitResponseTopic]

    def __init__(
        self, throttle_time_ms: int = 0, topics: list[OffsetCommitResponseTopic] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v2(view: memoryview, position: int) -> tuple[OffsetCommitRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetCommitRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id_or_member_epoch, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("OffsetCommitRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    retention_time_ms, count = unpack_qi(view, position)
    position += 12
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetCommitRequestTopic.name: negative length")
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
        partitions: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = unpack_iqh(view, position)
            position += 14
            committed_metadata: str | None = None
            if size >= 0:
                end = position + size
                committed_metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("OffsetCommitRequestPartition.committed_metadata: negative length")
            partitions.append(
                OffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    -1,
                    committed_metadata,
                )
            )
        topics.append(OffsetCommitRequestTopic(name, ZERO_UUID, partitions))
    message = OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        None,
        retention_time_ms,
        topics,
    )
    return message, position


def encode_request_v2(message: OffsetCommitRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id_or_member_epoch, len(data))
    out += data
    topics = message.topics
    out += pack_qi(message.retention_time_ms, len(topics))
    for offset_commit_request_topic in topics:
        name = offset_commit_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_commit_request_topic.partitions
        out += pack_i(len(partitions))
        for offset_commit_request_partition in partitions:
            committed_metadata = offset_commit_request_partition.committed_metadata
            data = b"" if committed_metadata is None else committed_metadata.encode()
            out += pack_iqh(
                offset_commit_request_partition.partition_index,
                offset_commit_request_partition.committed_offset,
                -1 if committed_metadata is None else len(data),
            )
            out += data
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[OffsetCommitRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetCommitRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id_or_member_epoch, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("OffsetCommitRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetCommitRequestTopic.name: negative length")
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
        partitions: list[OffsetCommitRequestPartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = unpack_iqh(view, position)
            position += 14
            committed_metadata: str | None = None
            if size >= 0:
                end = position + size
                committed_metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("OffsetCommitRequestPartition.committed_metadata: negative length")
            partitions.append(
                OffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    -1,
                    committed_metadata,
                )
            )
        topics.append(OffsetCommitRequestTopic(name, ZERO_UUID, partitions))
    message = OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        None,
        -1,
        topics,
    )
    return message, position


def encode_request_v5(message: OffsetCommitRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id_or_member_epoch, len(data))
    out += data
    topics = message.topics
    out += pack_i(len(topics))
    for offset_commit_request_topic in topics:
        name = offset_commit_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_commit_request_topic.partitions
        out += pack_i(len(partitions))
        for offset_commit_request_partition in partitions:
            committed_metadata = offset_commit_request_partition.committed_metadata
            data = b"" if committed_metadata is None else committed_metadata.encode()
            out += pack_iqh(
                offset_commit_request_partition.partition_index,
                offset_commit_request_partition.committed_offset,
                -1 if committed_metadata is None else len(data),
            )
            out += data
    return [out]


def decode_request_v6(view: memoryview, position: int) -> tuple[OffsetCommitRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetCommitRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id_or_member_epoch, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("OffsetCommitRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetCommitRequestTopic.name: negative length")
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
        partitions: list[OffsetCommitRequestPartition] = []
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
                raise Malformed("OffsetCommitRequestPartition.committed_metadata: negative length")
            partitions.append(
                OffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    committed_metadata,
                )
            )
        topics.append(OffsetCommitRequestTopic(name, ZERO_UUID, partitions))
    message = OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        None,
        -1,
        topics,
    )
    return message, position


def encode_request_v6(message: OffsetCommitRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id_or_member_epoch, len(data))
    out += data
    topics = message.topics
    out += pack_i(len(topics))
    for offset_commit_request_topic in topics:
        name = offset_commit_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_commit_request_topic.partitions
        out += pack_i(len(partitions))
        for offset_commit_request_partition in partitions:
            committed_metadata = offset_commit_request_partition.committed_metadata
            data = b"" if committed_metadata is None else committed_metadata.encode()
            out += pack_iqih(
                offset_commit_request_partition.partition_index,
                offset_commit_request_partition.committed_offset,
                offset_commit_request_partition.committed_leader_epoch,
                -1 if committed_metadata is None else len(data),
            )
            out += data
    return [out]


def decode_request_v7(view: memoryview, position: int) -> tuple[OffsetCommitRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetCommitRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id_or_member_epoch, size = unpack_ih(view, position)
    position += 6
    if size < 0:
        raise Malformed("OffsetCommitRequest.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    group_instance_id: str | None = None
    if size >= 0:
        end = position + size
        group_instance_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("OffsetCommitRequest.group_instance_id: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetCommitRequestTopic.name: negative length")
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
        partitions: list[OffsetCommitRequestPartition] = []
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
                raise Malformed("OffsetCommitRequestPartition.committed_metadata: negative length")
            partitions.append(
                OffsetCommitRequestPartition(
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    committed_metadata,
                )
            )
        topics.append(OffsetCommitRequestTopic(name, ZERO_UUID, partitions))
    message = OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        group_instance_id,
        -1,
        topics,
    )
    return message, position


def encode_request_v7(message: OffsetCommitRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_ih(message.generation_id_or_member_epoch, len(data))
    out += data
    group_instance_id = message.group_instance_id
    data = b"" if group_instance_id is None else group_instance_id.encode()
    out += pack_h(-1 if group_instance_id is None else len(data))
    out += data
    topics = message.topics
    out += pack_i(len(topics))
    for offset_commit_request_topic in topics:
        name = offset_commit_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_commit_request_topic.partitions
        out += pack_i(len(partitions))
        for offset_commit_request_partition in partitions:
            committed_metadata = offset_commit_request_partition.committed_metadata
            data = b"" if committed_metadata is None else committed_metadata.encode()
            out += pack_iqih(
                offset_commit_request_partition.partition_index,
                offset_commit_request_partition.committed_offset,
                offset_commit_request_partition.committed_leader_epoch,
                -1 if committed_metadata is None else len(data),
            )
            out += data
    return [out]


def decode_request_v8(view: memoryview, position: int) -> tuple[OffsetCommitRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id_or_member_epoch, size = unpack_iB(view, position)
    position += 5
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
    topics: list[OffsetCommitRequestTopic] = []
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
        partitions: list[OffsetCommitRequestPartition] = []
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
                OffsetCommitRequestPartition(
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
        topics.append(OffsetCommitRequestTopic(name, ZERO_UUID, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        group_instance_id,
        -1,
        topics,
    )
    return message, position


def encode_request_v8(message: OffsetCommitRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_i(message.generation_id_or_member_epoch)
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
    for offset_commit_request_topic in topics:
        name = offset_commit_request_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = offset_commit_request_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_commit_request_partition in partitions:
            committed_metadata = offset_commit_request_partition.committed_metadata
            out += pack_iqi(
                offset_commit_request_partition.partition_index,
                offset_commit_request_partition.committed_offset,
                offset_commit_request_partition.committed_leader_epoch,
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


def decode_request_v10(view: memoryview, position: int) -> tuple[OffsetCommitRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    generation_id_or_member_epoch, size = unpack_iB(view, position)
    position += 5
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
        count, position = long_count(view, position, count, 18)
    topics: list[OffsetCommitRequestTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[OffsetCommitRequestPartition] = []
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
                OffsetCommitRequestPartition(
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
        topics.append(OffsetCommitRequestTopic("", topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = OffsetCommitRequest(
        group_id,
        generation_id_or_member_epoch,
        member_id,
        group_instance_id,
        -1,
        topics,
    )
    return message, position


def encode_request_v10(message: OffsetCommitRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    out += pack_i(message.generation_id_or_member_epoch)
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
    for offset_commit_request_topic in topics:
        partitions = offset_commit_request_topic.partitions
        out += pack_16s(offset_commit_request_topic.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_commit_request_partition in partitions:
            committed_metadata = offset_commit_request_partition.committed_metadata
            out += pack_iqi(
                offset_commit_request_partition.partition_index,
                offset_commit_request_partition.committed_offset,
                offset_commit_request_partition.committed_leader_epoch,
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


def decode_response_v2(view: memoryview, position: int) -> tuple[OffsetCommitResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetCommitResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        partitions: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code = unpack_ih(view, position)
            position += 6
            partitions.append(OffsetCommitResponsePartition(partition_index, error_code))
        topics.append(OffsetCommitResponseTopic(name, ZERO_UUID, partitions))
    return OffsetCommitResponse(0, topics), position


def encode_response_v2(message: OffsetCommitResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for offset_commit_response_topic in topics:
        name = offset_commit_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_commit_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_commit_response_partition in partitions:
            out += pack_ih(
                offset_commit_response_partition.partition_index,
                offset_commit_response_partition.error_code,
            )
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[OffsetCommitResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetCommitResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        partitions: list[OffsetCommitResponsePartition] = []
        for _ in range(count):
            partition_index, error_code = unpack_ih(view, position)
            position += 6
            partitions.append(OffsetCommitResponsePartition(partition_index, error_code))
        topics.append(OffsetCommitResponseTopic(name, ZERO_UUID, partitions))
    return OffsetCommitResponse(throttle_time_ms, topics), position


def encode_response_v3(message: OffsetCommitResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for offset_commit_response_topic in topics:
        name = offset_commit_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_commit_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_commit_response_partition in partitions:
            out += pack_ih(
                offset_commit_response_partition.partition_index,
                offset_commit_response_partition.error_code,
            )
    return [out]


def decode_response_v8(view: memoryview, position: int) -> tuple[OffsetCommitResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[OffsetCommitResponseTopic] = []
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
        partitions: list[OffsetCommitResponsePartition] = []
        for _ in range(count - 1):
            partition_index, error_code, tags = unpack_ihB(view, position)
            position += 7
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(OffsetCommitResponsePartition(partition_index, error_code))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(OffsetCommitResponseTopic(name, ZERO_UUID, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetCommitResponse(throttle_time_ms, topics), position


def encode_response_v8(message: OffsetCommitResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_commit_response_topic in topics:
        name = offset_commit_response_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = offset_commit_response_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_commit_response_partition in partitions:
            out += pack_ihx(
                offset_commit_response_partition.partition_index,
                offset_commit_response_partition.error_code,
            )
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v10(view: memoryview, position: int) -> tuple[OffsetCommitResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[OffsetCommitResponseTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 7)
        partitions: list[OffsetCommitResponsePartition] = []
        for _ in range(count - 1):
            partition_index, error_code, tags = unpack_ihB(view, position)
            position += 7
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(OffsetCommitResponsePartition(partition_index, error_code))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(OffsetCommitResponseTopic("", topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetCommitResponse(throttle_time_ms, topics), position


def encode_response_v10(message: OffsetCommitResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_commit_response_topic in topics:
        partitions = offset_commit_response_topic.partitions
        out += pack_16s(offset_commit_response_topic.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_commit_response_partition in partitions:
            out += pack_ihx(
                offset_commit_response_partition.partition_index,
                offset_commit_response_partition.error_code,
            )
        out.append(0)
    out.append(0)
    return [out]


OFFSET_COMMIT = Api(
    8,
    "OffsetCommit",
    Message(
        "OffsetCommitRequest",
        (2, 10),
        8,
        {
            2: (decode_request_v2, encode_request_v2),
            5: (decode_request_v5, encode_request_v5),
            6: (decode_request_v6, encode_request_v6),
            7: (decode_request_v7, encode_request_v7),
            8: (decode_request_v8, encode_request_v8),
            10: (decode_request_v10, encode_request_v10),
        },
    ),
    Message(
        "OffsetCommitResponse",
        (2, 10),
        8,
        {
            2: (decode_response_v2, encode_response_v2),
            3: (decode_response_v3, encode_response_v3),
            8: (decode_response_v8, encode_response_v8),
            10: (decode_response_v10, encode_response_v10),
        },
    ),
)
