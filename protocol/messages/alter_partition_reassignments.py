"""AlterPartitionReassignments: generated from alter_partition_reassignments.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    Chunks,
    Structure,
    add_tags,
    check_elements,
    long_count,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    varint_tail,
    wrong_tag_size,
)

pack_b = Struct(">b").pack
pack_i = Struct(">i").pack
pack_it = Struct(">i?").pack
pack_ith = Struct(">i?h").pack
pack_ih = Struct(">ih").pack
unpack_b = Struct(">b").unpack_from
unpack_itB = Struct(">i?B").unpack_from
unpack_ithB = Struct(">i?hB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignablePartition(Structure):
    """Part of AlterPartitionReassignments."""

    partition_index: int
    replicas: list[int] | None
    pinning: int

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        pinning: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.pinning = pinning


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignableTopic(Structure):
    """Part of AlterPartitionReassignments."""

    name: str
    partitions: list[ReassignablePartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterPartitionReassignmentsRequest(Structure):
    """AlterPartitionReassignments, versions 0-1."""

    timeout_ms: int
    allow_replication_factor_change: bool
    topics: list[ReassignableTopic]

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] = ABSENT,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignablePartitionResponse(Structure):
    """Part of AlterPartitionReassignments."""

    partition_index: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReassignableTopicResponse(Structure):
    """Part of AlterPartitionReassignments."""

    name: str
    partitions: list[ReassignablePartitionResponse]

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterPartitionReassignmentsResponse(Structure):
    """AlterPartitionReassignments, versions 0-1."""

    throttle_time_ms: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: list[ReassignableTopicResponse]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is ABSENT else responses


def decode_request_v0(view: memoryview, position: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    elements = 0
    timeout_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[ReassignableTopic] = []
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
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[ReassignablePartition] = []
        for _ in range(count - 1):
            partition_index, count = unpack_iB(view, position)
            position += 5
            replicas: list[int] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                replicas = list(unpack_from(f">{count}i", view, position))
                position += count * 4
            partitions_tags = view[position]
            position += 1
            pinning: int = 0
            if partitions_tags:
                elements = add_tags(view, position, partitions_tags, elements)
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 1000:
                        (pinning,) = unpack_b(view, position)
                        position += 1
                        if position != partitions_tag_end:
                            raise wrong_tag_size(1000)
                    position = partitions_tag_end
            partitions.append(ReassignablePartition(partition_index, replicas, pinning))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(ReassignableTopic(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterPartitionReassignmentsRequest(timeout_ms, True, topics), position


def encode_request_v0(message: AlterPartitionReassignmentsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.timeout_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for reassignable_topic in topics:
        name = reassignable_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = reassignable_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for reassignable_partition in partitions:
            replicas = reassignable_partition.replicas
            out += pack_i(reassignable_partition.partition_index)
            if replicas is None:
                out.append(0)
            else:
                size = len(replicas) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(replicas)}i", *replicas)
            if not reassignable_partition.pinning:
                out.append(0)
            else:
                reassignable_partition_tags = 0
                reassignable_partition_tagged = bytearray()
                if reassignable_partition.pinning:
                    reassignable_partition_tags += 1
                    pinning_body = bytearray()
                    pinning = reassignable_partition.pinning
                    pinning_body += pack_b(pinning)
                    put_tag(reassignable_partition_tagged, 1000, pinning_body)
                out.append(reassignable_partition_tags)
                out += reassignable_partition_tagged
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[AlterPartitionReassignmentsRequest, int]:
    elements = 0
    timeout_ms, allow_replication_factor_change, count = unpack_itB(view, position)
    position += 6
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[ReassignableTopic] = []
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
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[ReassignablePartition] = []
        for _ in range(count - 1):
            partition_index, count = unpack_iB(view, position)
            position += 5
            replicas: list[int] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                replicas = list(unpack_from(f">{count}i", view, position))
                position += count * 4
            partitions_tags = view[position]
            position += 1
            pinning: int = 0
            if partitions_tags:
                elements = add_tags(view, position, partitions_tags, elements)
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 1000:
                        (pinning,) = unpack_b(view, position)
                        position += 1
                        if position != partitions_tag_end:
                            raise wrong_tag_size(1000)
                    position = partitions_tag_end
            partitions.append(ReassignablePartition(partition_index, replicas, pinning))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(ReassignableTopic(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AlterPartitionReassignmentsRequest(
        timeout_ms,
        allow_replication_factor_change,
        topics,
    )
    return message, position


def encode_request_v1(message: AlterPartitionReassignmentsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_it(message.timeout_ms, message.allow_replication_factor_change)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for reassignable_topic in topics:
        name = reassignable_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = reassignable_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for reassignable_partition in partitions:
            replicas = reassignable_partition.replicas
            out += pack_i(reassignable_partition.partition_index)
            if replicas is None:
                out.append(0)
            else:
                size = len(replicas) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(replicas)}i", *replicas)
            if not reassignable_partition.pinning:
                out.append(0)
            else:
                reassignable_partition_tags = 0
                reassignable_partition_tagged = bytearray()
                if reassignable_partition.pinning:
                    reassignable_partition_tags += 1
                    pinning_body = bytearray()
                    pinning = reassignable_partition.pinning
                    pinning_body += pack_b(pinning)
                    put_tag(reassignable_partition_tagged, 1000, pinning_body)
                out.append(reassignable_partition_tags)
                out += reassignable_partition_tagged
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
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
        count, position = long_count(view, position, count, 3)
    responses: list[ReassignableTopicResponse] = []
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
            count, position = long_count(view, position, count, 8)
        partitions: list[ReassignablePartitionResponse] = []
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
                ReassignablePartitionResponse(
                    partition_index,
                    partitions_error_code,
                    partitions_error_message,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(ReassignableTopicResponse(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AlterPartitionReassignmentsResponse(
        throttle_time_ms,
        True,
        error_code,
        error_message,
        responses,
    )
    return message, position


def encode_response_v0(message: AlterPartitionReassignmentsResponse, out: bytearray) -> Chunks:
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
    for reassignable_topic_response in responses:
        name = reassignable_topic_response.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = reassignable_topic_response.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for reassignable_partition_response in partitions:
            reassignable_partition_response_error_message = reassignable_partition_response.error_message
            out += pack_ih(
                reassignable_partition_response.partition_index,
                reassignable_partition_response.error_code,
            )
            if reassignable_partition_response_error_message is None:
                out.append(0)
            else:
                data = reassignable_partition_response_error_message.encode()
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


def decode_response_v1(view: memoryview, position: int) -> tuple[AlterPartitionReassignmentsResponse, int]:
    (
        throttle_time_ms,
        allow_replication_factor_change,
        error_code,
        size,
    ) = unpack_ithB(view, position)
    position += 8
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
        count, position = long_count(view, position, count, 3)
    responses: list[ReassignableTopicResponse] = []
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
            count, position = long_count(view, position, count, 8)
        partitions: list[ReassignablePartitionResponse] = []
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
                ReassignablePartitionResponse(
                    partition_index,
                    partitions_error_code,
                    partitions_error_message,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(ReassignableTopicResponse(name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = AlterPartitionReassignmentsResponse(
        throttle_time_ms,
        allow_replication_factor_change,
        error_code,
        error_message,
        responses,
    )
    return message, position


def encode_response_v1(message: AlterPartitionReassignmentsResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ith(
        message.throttle_time_ms,
        message.allow_replication_factor_change,
        message.error_code,
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
    responses = message.responses
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for reassignable_topic_response in responses:
        name = reassignable_topic_response.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = reassignable_topic_response.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for reassignable_partition_response in partitions:
            reassignable_partition_response_error_message = reassignable_partition_response.error_message
            out += pack_ih(
                reassignable_partition_response.partition_index,
                reassignable_partition_response.error_code,
            )
            if reassignable_partition_response_error_message is None:
                out.append(0)
            else:
                data = reassignable_partition_response_error_message.encode()
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


ALTER_PARTITION_REASSIGNMENTS = Api(
    45,
    "AlterPartitionReassignments",
    Message(
        "AlterPartitionReassignmentsRequest",
        (0, 1),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "AlterPartitionReassignmentsResponse",
        (0, 1),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
