"""DescribeTopicPartitions: generated from describe_topic_partitions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16st = Struct(">16s?").pack
pack_h = Struct(">h").pack
pack_hiii = Struct(">hiii").pack
pack_i = Struct(">i").pack
pack_ix = Struct(">ix").pack
unpack_16stB = Struct(">16s?B").unpack_from
unpack_b = Struct(">b").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hiiiB = Struct(">hiiiB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ib = Struct(">ib").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicRequest(Structure):
    """Part of DescribeTopicPartitions."""

    name: str

    def __init__(
        self,
        name: str = "",
    ) -> None:
        self.name = name


@dataclass(slots=True, init=False, repr=False, eq=False)
class Cursor(Structure):
    """Part of DescribeTopicPartitions."""

    topic_name: str
    partition_index: int

    def __init__(
        self,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsRequest(Structure):
    """DescribeTopicPartitions, versions 0-0."""

    topics: list[TopicRequest]
    response_partition_limit: int
    cursor: Cursor | None

    def __init__(
        self,
        topics: list[TopicRequest] = ABSENT,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsResponsePartition(Structure):
    """Part of DescribeTopicPartitions."""

    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    eligible_leader_replicas: list[int] | None
    last_known_elr: list[int] | None
    offline_replicas: list[int]

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = ABSENT,
        isr_nodes: list[int] = ABSENT,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is ABSENT else replica_nodes
        self.isr_nodes = [] if isr_nodes is ABSENT else isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = [] if offline_replicas is ABSENT else offline_replicas


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsResponseTopic(Structure):
    """Part of DescribeTopicPartitions."""

    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] = ABSENT,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is ABSENT else partitions
        self.topic_authorized_operations = topic_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeTopicPartitionsResponse(Structure):
    """DescribeTopicPartitions, versions 0-0."""

    throttle_time_ms: int
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] = ABSENT,
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics
        self.next_cursor = next_cursor


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeTopicPartitionsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 2)
    topics: list[TopicRequest] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(TopicRequest(name))
    response_partition_limit, cursor_present = unpack_ib(view, position)
    position += 5
    cursor: Cursor | None = None
    if cursor_present >= 0:
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        partition_index, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        cursor = Cursor(topic_name, partition_index)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeTopicPartitionsRequest(topics, response_partition_limit, cursor), position


def encode_request_v0(message: DescribeTopicPartitionsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_request in topics:
        name = topic_request.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    cursor = message.cursor
    out += pack_i(message.response_partition_limit)
    if cursor is None:
        out.append(0xFF)
    else:
        out.append(1)
        topic_name = cursor.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_ix(cursor.partition_index)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeTopicPartitionsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 26)
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        name: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
        topic_id, is_internal, count = unpack_16stB(view, position)
        position += 18
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 20)
        partitions: list[DescribeTopicPartitionsResponsePartition] = []
        for _ in range(count - 1):
            (
                partitions_error_code,
                partition_index,
                leader_id,
                leader_epoch,
                count,
            ) = unpack_hiiiB(view, position)
            position += 15
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            count = view[position]
            position += 1
            eligible_leader_replicas: list[int] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                eligible_leader_replicas = list(unpack_from(f">{count}i", view, position))
                position += count * 4
            count = view[position]
            position += 1
            last_known_elr: list[int] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                last_known_elr = list(unpack_from(f">{count}i", view, position))
                position += count * 4
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            offline_replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                DescribeTopicPartitionsResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    eligible_leader_replicas,
                    last_known_elr,
                    offline_replicas,
                )
            )
        topic_authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(
            DescribeTopicPartitionsResponseTopic(
                error_code,
                name,
                topic_id,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    (next_cursor_present,) = unpack_b(view, position)
    position += 1
    next_cursor: Cursor | None = None
    if next_cursor_present >= 0:
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        next_cursor_partition_index, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        next_cursor = Cursor(topic_name, next_cursor_partition_index)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeTopicPartitionsResponse(throttle_time_ms, topics, next_cursor), position


def encode_response_v0(message: DescribeTopicPartitionsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_topic_partitions_response_topic in topics:
        name = describe_topic_partitions_response_topic.name
        out += pack_h(describe_topic_partitions_response_topic.error_code)
        if name is None:
            out.append(0)
        else:
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        partitions = describe_topic_partitions_response_topic.partitions
        out += pack_16st(
            describe_topic_partitions_response_topic.topic_id,
            describe_topic_partitions_response_topic.is_internal,
        )
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_topic_partitions_response_partition in partitions:
            replica_nodes = describe_topic_partitions_response_partition.replica_nodes
            out += pack_hiii(
                describe_topic_partitions_response_partition.error_code,
                describe_topic_partitions_response_partition.partition_index,
                describe_topic_partitions_response_partition.leader_id,
                describe_topic_partitions_response_partition.leader_epoch,
            )
            size = len(replica_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = describe_topic_partitions_response_partition.isr_nodes
            size = len(isr_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            eligible_leader_replicas = describe_topic_partitions_response_partition.eligible_leader_replicas
            if eligible_leader_replicas is None:
                out.append(0)
            else:
                size = len(eligible_leader_replicas) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(eligible_leader_replicas)}i", *eligible_leader_replicas)
            last_known_elr = describe_topic_partitions_response_partition.last_known_elr
            if last_known_elr is None:
                out.append(0)
            else:
                size = len(last_known_elr) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(last_known_elr)}i", *last_known_elr)
            offline_replicas = describe_topic_partitions_response_partition.offline_replicas
            size = len(offline_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
            out.append(0)
        out += pack_ix(describe_topic_partitions_response_topic.topic_authorized_operations)
    next_cursor = message.next_cursor
    if next_cursor is None:
        out.append(0xFF)
    else:
        out.append(1)
        topic_name = next_cursor.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_ix(next_cursor.partition_index)
    out.append(0)
    return [out]


DESCRIBE_TOPIC_PARTITIONS = Api(
    75,
    "DescribeTopicPartitions",
    Message(
        "DescribeTopicPartitionsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "DescribeTopicPartitionsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
