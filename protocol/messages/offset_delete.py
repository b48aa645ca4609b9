"""OffsetDelete: generated from offset_delete.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    Chunks,
    Structure,
    check_count,
    check_elements,
)

pack_h = Struct(">h").pack
pack_hii = Struct(">hii").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
unpack_h = Struct(">h").unpack_from
unpack_hii = Struct(">hii").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ih = Struct(">ih").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteRequestPartition(Structure):
    """Part of OffsetDelete."""

    partition_index: int

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteRequestTopic(Structure):
    """Part of OffsetDelete."""

    name: str
    partitions: list[OffsetDeleteRequestPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteRequest(Structure):
    """OffsetDelete, versions 0-0."""

    group_id: str
    topics: list[OffsetDeleteRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteResponsePartition(Structure):
    """Part of OffsetDelete."""

    partition_index: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteResponseTopic(Structure):
    """Part of OffsetDelete."""

    name: str
    partitions: list[OffsetDeleteResponsePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetDeleteResponse(Structure):
    """OffsetDelete, versions 0-0."""

    error_code: int
    throttle_time_ms: int
    topics: list[OffsetDeleteResponseTopic]

    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v0(view: memoryview, position: int) -> tuple[OffsetDeleteRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetDeleteRequest.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetDeleteRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetDeleteRequestTopic.name: negative length")
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
        partitions: list[OffsetDeleteRequestPartition] = []
        for _ in range(count):
            (partition_index,) = unpack_i(view, position)
            position += 4
            partitions.append(OffsetDeleteRequestPartition(partition_index))
        topics.append(OffsetDeleteRequestTopic(name, partitions))
    return OffsetDeleteRequest(group_id, topics), position


def encode_request_v0(message: OffsetDeleteRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    topics = message.topics
    out += pack_i(len(topics))
    for offset_delete_request_topic in topics:
        name = offset_delete_request_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_delete_request_topic.partitions
        out += pack_i(len(partitions))
        for offset_delete_request_partition in partitions:
            out += pack_i(offset_delete_request_partition.partition_index)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[OffsetDeleteResponse, int]:
    error_code, throttle_time_ms, count = unpack_hii(view, position)
    position += 10
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[OffsetDeleteResponseTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("OffsetDeleteResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        partitions: list[OffsetDeleteResponsePartition] = []
        for _ in range(count):
            partition_index, partitions_error_code = unpack_ih(view, position)
            position += 6
            partitions.append(OffsetDeleteResponsePartition(partition_index, partitions_error_code))
        topics.append(OffsetDeleteResponseTopic(name, partitions))
    return OffsetDeleteResponse(error_code, throttle_time_ms, topics), position


def encode_response_v0(message: OffsetDeleteResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_hii(message.error_code, message.throttle_time_ms, len(topics))
    for offset_delete_response_topic in topics:
        name = offset_delete_response_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partitions = offset_delete_response_topic.partitions
        out += pack_i(len(partitions))
        for offset_delete_response_partition in partitions:
            out += pack_ih(
                offset_delete_response_partition.partition_index,
                offset_delete_response_partition.error_code,
            )
    return [out]


OFFSET_DELETE = Api(
    47,
    "OffsetDelete",
    Message(
        "OffsetDeleteRequest",
        (0, 0),
        NEVER,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "OffsetDeleteResponse",
        (0, 0),
        NEVER,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
