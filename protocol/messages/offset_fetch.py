"""OffsetFetch: generated from offset_fetch.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

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
    null_value,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16s = Struct(">16s").pack
pack_tx = Struct(">?x").pack
pack_h = Struct(">h").pack
pack_hx = Struct(">hx").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
pack_iqh = Struct(">iqh").pack
pack_iqi = Struct(">iqi").pack
pack_iqih = Struct(">iqih").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iqh = Struct(">iqh").unpack_from
unpack_iqiB = Struct(">iqiB").unpack_from
unpack_iqih = Struct(">iqih").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequestTopic(Structure):
    """Part of OffsetFetch."""

    name: str
    partition_indexes: list[int]

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = ABSENT,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequestTopics(Structure):
    """Part of OffsetFetch."""

    name: str
    topic_id: bytes
    partition_indexes: list[int]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_indexes: list[int] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequestGroup(Structure):
    """Part of OffsetFetch."""

    group_id: str
    member_id: str | None
    member_epoch: int
    topics: list[OffsetFetchRequestTopics] | None

    def __init__(
        self,
        group_id: str = "",
        member_id: str | None = None,
        member_epoch: int = -1,
        topics: list[OffsetFetchRequestTopics] | None = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchRequest(Structure):
    """OffsetFetch, versions 1-10."""

    group_id: str
    topics: list[OffsetFetchRequestTopic] | None
    groups: list[OffsetFetchRequestGroup]
    require_stable: bool

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchRequestTopic] | None = ABSENT,
        groups: list[OffsetFetchRequestGroup] = ABSENT,
        require_stable: bool = False,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics
        self.groups = [] if groups is ABSENT else groups
        self.require_stable = require_stable


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponsePartition(Structure):
    """Part of OffsetFetch."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponseTopic(Structure):
    """Part of OffsetFetch."""

    name: str
    partitions: list[OffsetFetchResponsePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponsePartitions(Structure):
    """Part of OffsetFetch."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponseTopics(Structure):
    """Part of OffsetFetch."""

    name: str
    topic_id: bytes
    partitions: list[OffsetFetchResponsePartitions]

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponseGroup(Structure):
    """Part of OffsetFetch."""

    group_id: str
    topics: list[OffsetFetchResponseTopics]
    error_code: int

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] = ABSENT,
        error_code: int = 0,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetFetchResponse(Structure):
    """OffsetFetch, versions 1-10."""

    throttle_time_ms: int
    topics: list[OffsetFetchResponseTopic]
    error_code: int
    groups: list[OffsetFetchResponseGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] = ABSENT,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics
        self.error_code = error_code
        self.groups = [] if groups is ABSENT else groups


def decode_request_v1(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetFetchRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetFetchRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetFetchRequestTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partition_indexes = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        topics.append(OffsetFetchRequestTopic(name, partition_indexes))
    return OffsetFetchRequest(group_id, topics, [], False), position


def encode_request_v1(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    topics = message.topics
    if topics is None:
        raise null_value("OffsetFetchRequest.topics")
    out += pack_i(len(topics))
    for offset_fetch_request_topic in topics:
        name = offset_fetch_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partition_indexes = offset_fetch_request_topic.partition_indexes
        out += pack_i(len(partition_indexes))
        out += pack(f">{len(partition_indexes)}i", *partition_indexes)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetFetchRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    topics: list[OffsetFetchRequestTopic] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        topics = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("OffsetFetchRequestTopic.name: negative length")
            end = position + size
            name = view[position:end].tobytes().decode()
            position = end
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            partition_indexes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            topics.append(OffsetFetchRequestTopic(name, partition_indexes))
    return OffsetFetchRequest(group_id, topics, [], False), position


def encode_request_v2(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    topics = message.topics
    out += pack_i(-1 if topics is None else len(topics))
    for offset_fetch_request_topic in topics or ():
        name = offset_fetch_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partition_indexes = offset_fetch_request_topic.partition_indexes
        out += pack_i(len(partition_indexes))
        out += pack(f">{len(partition_indexes)}i", *partition_indexes)
    return [out]


def decode_request_v6(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
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
    topics: list[OffsetFetchRequestTopic] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics = []
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
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            partition_indexes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(OffsetFetchRequestTopic(name, partition_indexes))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchRequest(group_id, topics, [], False), position


def encode_request_v6(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    topics = message.topics
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_fetch_request_topic in topics:
            name = offset_fetch_request_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partition_indexes = offset_fetch_request_topic.partition_indexes
            size = len(partition_indexes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partition_indexes)}i", *partition_indexes)
            out.append(0)
    out.append(0)
    return [out]


def decode_request_v7(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
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
    topics: list[OffsetFetchRequestTopic] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics = []
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
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            partition_indexes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(OffsetFetchRequestTopic(name, partition_indexes))
    require_stable, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchRequest(group_id, topics, [], require_stable), position


def encode_request_v7(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    topics = message.topics
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_fetch_request_topic in topics:
            name = offset_fetch_request_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partition_indexes = offset_fetch_request_topic.partition_indexes
            size = len(partition_indexes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partition_indexes)}i", *partition_indexes)
            out.append(0)
    out += pack_tx(message.require_stable)
    return [out]


def decode_request_v8(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    groups: list[OffsetFetchRequestGroup] = []
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
        topics: list[OffsetFetchRequestTopics] | None = None
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
                name = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                partition_indexes = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                topics.append(OffsetFetchRequestTopics(name, ZERO_UUID, partition_indexes))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        groups.append(OffsetFetchRequestGroup(group_id, None, -1, topics))
    require_stable, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchRequest("", [], groups, require_stable), position


def encode_request_v8(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    groups = message.groups
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_fetch_request_group in groups:
        group_id = offset_fetch_request_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = offset_fetch_request_group.topics
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for offset_fetch_request_topics in topics:
                name = offset_fetch_request_topics.name
                data = name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                partition_indexes = offset_fetch_request_topics.partition_indexes
                size = len(partition_indexes) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(partition_indexes)}i", *partition_indexes)
                out.append(0)
        out.append(0)
    out += pack_tx(message.require_stable)
    return [out]


def decode_request_v9(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    groups: list[OffsetFetchRequestGroup] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        member_id: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            member_id = view[position:end].tobytes().decode()
            position = end
        member_epoch, count = unpack_iB(view, position)
        position += 5
        topics: list[OffsetFetchRequestTopics] | None = None
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
                name = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                partition_indexes = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                topics.append(OffsetFetchRequestTopics(name, ZERO_UUID, partition_indexes))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        groups.append(OffsetFetchRequestGroup(group_id, member_id, member_epoch, topics))
    require_stable, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchRequest("", [], groups, require_stable), position


def encode_request_v9(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    groups = message.groups
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_fetch_request_group in groups:
        group_id = offset_fetch_request_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        member_id = offset_fetch_request_group.member_id
        if member_id is None:
            out.append(0)
        else:
            data = member_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        topics = offset_fetch_request_group.topics
        out += pack_i(offset_fetch_request_group.member_epoch)
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for offset_fetch_request_topics in topics:
                name = offset_fetch_request_topics.name
                data = name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                partition_indexes = offset_fetch_request_topics.partition_indexes
                size = len(partition_indexes) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(partition_indexes)}i", *partition_indexes)
                out.append(0)
        out.append(0)
    out += pack_tx(message.require_stable)
    return [out]


def decode_request_v10(view: memoryview, position: int) -> tuple[OffsetFetchRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 8)
    groups: list[OffsetFetchRequestGroup] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        member_id: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            member_id = view[position:end].tobytes().decode()
            position = end
        member_epoch, count = unpack_iB(view, position)
        position += 5
        topics: list[OffsetFetchRequestTopics] | None = None
        if count:
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 18)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            topics = []
            for _ in range(count - 1):
                topic_id, count = unpack_16sB(view, position)
                position += 17
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                partition_indexes = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                topics.append(OffsetFetchRequestTopics("", topic_id, partition_indexes))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        groups.append(OffsetFetchRequestGroup(group_id, member_id, member_epoch, topics))
    require_stable, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchRequest("", [], groups, require_stable), position


def encode_request_v10(message: OffsetFetchRequest, out: bytearray) -> Chunks:
    groups = message.groups
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_fetch_request_group in groups:
        group_id = offset_fetch_request_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        member_id = offset_fetch_request_group.member_id
        if member_id is None:
            out.append(0)
        else:
            data = member_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        topics = offset_fetch_request_group.topics
        out += pack_i(offset_fetch_request_group.member_epoch)
        if topics is None:
            out.append(0)
        else:
            size = len(topics) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for offset_fetch_request_topics in topics:
                partition_indexes = offset_fetch_request_topics.partition_indexes
                out += pack_16s(offset_fetch_request_topics.topic_id)
                size = len(partition_indexes) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(partition_indexes)}i", *partition_indexes)
                out.append(0)
        out.append(0)
    out += pack_tx(message.require_stable)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetFetchResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 16)
        partitions: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = unpack_iqh(view, position)
            position += 14
            metadata: str | None = None
            if size >= 0:
                end = position + size
                metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("OffsetFetchResponsePartition.metadata: negative length")
            (error_code,) = unpack_h(view, position)
            position += 2
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index,
                    committed_offset,
                    -1,
                    metadata,
                    error_code,
                )
            )
        topics.append(OffsetFetchResponseTopic(name, partitions))
    return OffsetFetchResponse(0, topics, 0, []), position


def encode_response_v1(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for offset_fetch_response_topic in topics:
        name = offset_fetch_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_fetch_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_fetch_response_partition in partitions:
            metadata = offset_fetch_response_partition.metadata
            data = b"" if metadata is None else metadata.encode()
            out += pack_iqh(
                offset_fetch_response_partition.partition_index,
                offset_fetch_response_partition.committed_offset,
                -1 if metadata is None else len(data),
            )
            out += data
            out += pack_h(offset_fetch_response_partition.error_code)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetFetchResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 16)
        partitions: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = unpack_iqh(view, position)
            position += 14
            metadata: str | None = None
            if size >= 0:
                end = position + size
                metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("OffsetFetchResponsePartition.metadata: negative length")
            (partitions_error_code,) = unpack_h(view, position)
            position += 2
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index,
                    committed_offset,
                    -1,
                    metadata,
                    partitions_error_code,
                )
            )
        topics.append(OffsetFetchResponseTopic(name, partitions))
    (error_code,) = unpack_h(view, position)
    position += 2
    return OffsetFetchResponse(0, topics, error_code, []), position


def encode_response_v2(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for offset_fetch_response_topic in topics:
        name = offset_fetch_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_fetch_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_fetch_response_partition in partitions:
            metadata = offset_fetch_response_partition.metadata
            data = b"" if metadata is None else metadata.encode()
            out += pack_iqh(
                offset_fetch_response_partition.partition_index,
                offset_fetch_response_partition.committed_offset,
                -1 if metadata is None else len(data),
            )
            out += data
            out += pack_h(offset_fetch_response_partition.error_code)
    out += pack_h(message.error_code)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetFetchResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 16)
        partitions: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            partition_index, committed_offset, size = unpack_iqh(view, position)
            position += 14
            metadata: str | None = None
            if size >= 0:
                end = position + size
                metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("OffsetFetchResponsePartition.metadata: negative length")
            (partitions_error_code,) = unpack_h(view, position)
            position += 2
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index,
                    committed_offset,
                    -1,
                    metadata,
                    partitions_error_code,
                )
            )
        topics.append(OffsetFetchResponseTopic(name, partitions))
    (error_code,) = unpack_h(view, position)
    position += 2
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, []), position


def encode_response_v3(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for offset_fetch_response_topic in topics:
        name = offset_fetch_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_fetch_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_fetch_response_partition in partitions:
            metadata = offset_fetch_response_partition.metadata
            data = b"" if metadata is None else metadata.encode()
            out += pack_iqh(
                offset_fetch_response_partition.partition_index,
                offset_fetch_response_partition.committed_offset,
                -1 if metadata is None else len(data),
            )
            out += data
            out += pack_h(offset_fetch_response_partition.error_code)
    out += pack_h(message.error_code)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetFetchResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetFetchResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 20)
        partitions: list[OffsetFetchResponsePartition] = []
        for _ in range(count):
            (
                partition_index,
                committed_offset,
                committed_leader_epoch,
                size,
            ) = unpack_iqih(view, position)
            position += 18
            metadata: str | None = None
            if size >= 0:
                end = position + size
                metadata = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("OffsetFetchResponsePartition.metadata: negative length")
            (partitions_error_code,) = unpack_h(view, position)
            position += 2
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    metadata,
                    partitions_error_code,
                )
            )
        topics.append(OffsetFetchResponseTopic(name, partitions))
    (error_code,) = unpack_h(view, position)
    position += 2
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, []), position


def encode_response_v5(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for offset_fetch_response_topic in topics:
        name = offset_fetch_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_fetch_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_fetch_response_partition in partitions:
            metadata = offset_fetch_response_partition.metadata
            data = b"" if metadata is None else metadata.encode()
            out += pack_iqih(
                offset_fetch_response_partition.partition_index,
                offset_fetch_response_partition.committed_offset,
                offset_fetch_response_partition.committed_leader_epoch,
                -1 if metadata is None else len(data),
            )
            out += data
            out += pack_h(offset_fetch_response_partition.error_code)
    out += pack_h(message.error_code)
    return [out]


def decode_response_v6(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[OffsetFetchResponseTopic] = []
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
            count, position = long_count(view, position, count, 20)
        partitions: list[OffsetFetchResponsePartition] = []
        for _ in range(count - 1):
            (
                partition_index,
                committed_offset,
                committed_leader_epoch,
                size,
            ) = unpack_iqiB(view, position)
            position += 17
            metadata: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                metadata = view[position:end].tobytes().decode()
                position = end
            partitions_error_code, tags = unpack_hB(view, position)
            position += 3
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                OffsetFetchResponsePartition(
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    metadata,
                    partitions_error_code,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(OffsetFetchResponseTopic(name, partitions))
    error_code, tags = unpack_hB(view, position)
    position += 3
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchResponse(throttle_time_ms, topics, error_code, []), position


def encode_response_v6(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_fetch_response_topic in topics:
        name = offset_fetch_response_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = offset_fetch_response_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_fetch_response_partition in partitions:
            metadata = offset_fetch_response_partition.metadata
            out += pack_iqi(
                offset_fetch_response_partition.partition_index,
                offset_fetch_response_partition.committed_offset,
                offset_fetch_response_partition.committed_leader_epoch,
            )
            if metadata is None:
                out.append(0)
            else:
                data = metadata.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out += pack_hx(offset_fetch_response_partition.error_code)
        out.append(0)
    out += pack_hx(message.error_code)
    return [out]


def decode_response_v8(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    groups: list[OffsetFetchResponseGroup] = []
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
            count, position = long_count(view, position, count, 3)
        topics: list[OffsetFetchResponseTopics] = []
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
                count, position = long_count(view, position, count, 20)
            partitions: list[OffsetFetchResponsePartitions] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    size,
                ) = unpack_iqiB(view, position)
                position += 17
                metadata: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    metadata = view[position:end].tobytes().decode()
                    position = end
                partitions_error_code, tags = unpack_hB(view, position)
                position += 3
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(
                    OffsetFetchResponsePartitions(
                        partition_index,
                        committed_offset,
                        committed_leader_epoch,
                        metadata,
                        partitions_error_code,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(OffsetFetchResponseTopics(name, ZERO_UUID, partitions))
        error_code, tags = unpack_hB(view, position)
        position += 3
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(OffsetFetchResponseGroup(group_id, topics, error_code))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchResponse(throttle_time_ms, [], 0, groups), position


def encode_response_v8(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_fetch_response_group in groups:
        group_id = offset_fetch_response_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = offset_fetch_response_group.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_fetch_response_topics in topics:
            name = offset_fetch_response_topics.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = offset_fetch_response_topics.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for offset_fetch_response_partitions in partitions:
                metadata = offset_fetch_response_partitions.metadata
                out += pack_iqi(
                    offset_fetch_response_partitions.partition_index,
                    offset_fetch_response_partitions.committed_offset,
                    offset_fetch_response_partitions.committed_leader_epoch,
                )
                if metadata is None:
                    out.append(0)
                else:
                    data = metadata.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out += pack_hx(offset_fetch_response_partitions.error_code)
            out.append(0)
        out += pack_hx(offset_fetch_response_group.error_code)
    out.append(0)
    return [out]


def decode_response_v10(view: memoryview, position: int) -> tuple[OffsetFetchResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    groups: list[OffsetFetchResponseGroup] = []
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
            count, position = long_count(view, position, count, 18)
        topics: list[OffsetFetchResponseTopics] = []
        for _ in range(count - 1):
            topic_id, count = unpack_16sB(view, position)
            position += 17
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 20)
            partitions: list[OffsetFetchResponsePartitions] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    committed_offset,
                    committed_leader_epoch,
                    size,
                ) = unpack_iqiB(view, position)
                position += 17
                metadata: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    metadata = view[position:end].tobytes().decode()
                    position = end
                partitions_error_code, tags = unpack_hB(view, position)
                position += 3
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(
                    OffsetFetchResponsePartitions(
                        partition_index,
                        committed_offset,
                        committed_leader_epoch,
                        metadata,
                        partitions_error_code,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(OffsetFetchResponseTopics("", topic_id, partitions))
        error_code, tags = unpack_hB(view, position)
        position += 3
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(OffsetFetchResponseGroup(group_id, topics, error_code))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return OffsetFetchResponse(throttle_time_ms, [], 0, groups), position


def encode_response_v10(message: OffsetFetchResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for offset_fetch_response_group in groups:
        group_id = offset_fetch_response_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = offset_fetch_response_group.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for offset_fetch_response_topics in topics:
            partitions = offset_fetch_response_topics.partitions
            out += pack_16s(offset_fetch_response_topics.topic_id)
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for offset_fetch_response_partitions in partitions:
                metadata = offset_fetch_response_partitions.metadata
                out += pack_iqi(
                    offset_fetch_response_partitions.partition_index,
                    offset_fetch_response_partitions.committed_offset,
                    offset_fetch_response_partitions.committed_leader_epoch,
                )
                if metadata is None:
                    out.append(0)
                else:
                    data = metadata.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out += pack_hx(offset_fetch_response_partitions.error_code)
            out.append(0)
        out += pack_hx(offset_fetch_response_group.error_code)
    out.append(0)
    return [out]


OFFSET_FETCH = Api(
    9,
    "OffsetFetch",
    Message(
        "OffsetFetchRequest",
        (1, 10),
        6,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
            6: (decode_request_v6, encode_request_v6),
            7: (decode_request_v7, encode_request_v7),
            8: (decode_request_v8, encode_request_v8),
            9: (decode_request_v9, encode_request_v9),
            10: (decode_request_v10, encode_request_v10),
        },
    ),
    Message(
        "OffsetFetchResponse",
        (1, 10),
        6,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
            3: (decode_response_v3, encode_response_v3),
            5: (decode_response_v5, encode_response_v5),
            6: (decode_response_v6, encode_response_v6),
            8: (decode_response_v8, encode_response_v8),
            10: (decode_response_v10, encode_response_v10),
        },
    ),
)
