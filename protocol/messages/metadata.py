"""Metadata: generated from metadata.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    check_count,
    long_count,
    long_size,
    null_value,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16s = Struct(">16s").pack
pack_16st = Struct(">16s?").pack
pack_t = Struct(">?").pack
pack_ttt = Struct(">???").pack
pack_tttx = Struct(">???x").pack
pack_ttx = Struct(">??x").pack
pack_ti = Struct(">?i").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_hiii = Struct(">hiii").pack
pack_hiiii = Struct(">hiiii").pack
pack_hx = Struct(">hx").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ii = Struct(">ii").pack
pack_ix = Struct(">ix").pack
unpack_16stB = Struct(">16s?B").unpack_from
unpack_16sB = Struct(">16sB").unpack_from
unpack_t = Struct(">?").unpack_from
unpack_ttt = Struct(">???").unpack_from
unpack_tttB = Struct(">???B").unpack_from
unpack_ttB = Struct(">??B").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_ti = Struct(">?i").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_hiii = Struct(">hiii").unpack_from
unpack_hiiiB = Struct(">hiiiB").unpack_from
unpack_hiiii = Struct(">hiiii").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataRequestTopic(Structure):
    """Part of Metadata."""

    topic_id: bytes
    name: str | None

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        name: str | None = "",
    ) -> None:
        self.topic_id = topic_id
        self.name = name


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataRequest(Structure):
    """Metadata, versions 0-13."""

    topics: list[MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool

    def __init__(
        self,
        topics: list[MetadataRequestTopic] | None = ABSENT,
        allow_auto_topic_creation: bool = True,
        include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponseBroker(Structure):
    """Part of Metadata."""

    node_id: int
    host: str
    port: int
    rack: str | None

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponsePartition(Structure):
    """Part of Metadata."""

    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] = ABSENT,
        isr_nodes: list[int] = ABSENT,
        offline_replicas: list[int] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is ABSENT else replica_nodes
        self.isr_nodes = [] if isr_nodes is ABSENT else isr_nodes
        self.offline_replicas = [] if offline_replicas is ABSENT else offline_replicas


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponseTopic(Structure):
    """Part of Metadata."""

    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[MetadataResponsePartition] = ABSENT,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is ABSENT else partitions
        self.topic_authorized_operations = topic_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponse(Structure):
    """Metadata, versions 0-13."""

    throttle_time_ms: int
    brokers: list[MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] = ABSENT,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] = ABSENT,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is ABSENT else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is ABSENT else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code


def decode_request_v0(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    topics: list[MetadataRequestTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("MetadataRequestTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        topics.append(MetadataRequestTopic(ZERO_UUID, name))
    return MetadataRequest(topics, True, False, False), position


def encode_request_v0(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    if topics is None:
        raise null_value("MetadataRequest.topics")
    out += pack_i(len(topics))
    for metadata_request_topic in topics:
        name = metadata_request_topic.name
        if name is None:
            raise null_value("MetadataRequestTopic.name")
        data = name.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    topics: list[MetadataRequestTopic] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 2)
        topics = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("MetadataRequestTopic.name: negative length")
            end = position + size
            name = view[position:end].tobytes().decode()
            position = end
            topics.append(MetadataRequestTopic(ZERO_UUID, name))
    return MetadataRequest(topics, True, False, False), position


def encode_request_v1(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(-1 if topics is None else len(topics))
    for metadata_request_topic in topics or ():
        name = metadata_request_topic.name
        if name is None:
            raise null_value("MetadataRequestTopic.name")
        data = name.encode()
        out += pack_h(len(data))
        out += data
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    topics: list[MetadataRequestTopic] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 2)
        topics = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("MetadataRequestTopic.name: negative length")
            end = position + size
            name = view[position:end].tobytes().decode()
            position = end
            topics.append(MetadataRequestTopic(ZERO_UUID, name))
    (allow_auto_topic_creation,) = unpack_t(view, position)
    position += 1
    return MetadataRequest(topics, allow_auto_topic_creation, False, False), position


def encode_request_v4(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(-1 if topics is None else len(topics))
    for metadata_request_topic in topics or ():
        name = metadata_request_topic.name
        if name is None:
            raise null_value("MetadataRequestTopic.name")
        data = name.encode()
        out += pack_h(len(data))
        out += data
    out += pack_t(message.allow_auto_topic_creation)
    return [out]


def decode_request_v8(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    topics: list[MetadataRequestTopic] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 2)
        topics = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("MetadataRequestTopic.name: negative length")
            end = position + size
            name = view[position:end].tobytes().decode()
            position = end
            topics.append(MetadataRequestTopic(ZERO_UUID, name))
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    ) = unpack_ttt(view, position)
    position += 3
    message = MetadataRequest(
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )
    return message, position


def encode_request_v8(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(-1 if topics is None else len(topics))
    for metadata_request_topic in topics or ():
        name = metadata_request_topic.name
        if name is None:
            raise null_value("MetadataRequestTopic.name")
        data = name.encode()
        out += pack_h(len(data))
        out += data
    out += pack_ttt(
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    )
    return [out]


def decode_request_v9(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    topics: list[MetadataRequestTopic] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 2)
        topics = []
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
            topics.append(MetadataRequestTopic(ZERO_UUID, name))
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
        tags,
    ) = unpack_tttB(view, position)
    position += 4
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataRequest(
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )
    return message, position


def encode_request_v9(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_request_topic in topics:
            name = metadata_request_topic.name
            if name is None:
                raise null_value("MetadataRequestTopic.name")
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out.append(0)
    out += pack_tttx(
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    )
    return [out]


def decode_request_v10(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    topics: list[MetadataRequestTopic] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        topics = []
        for _ in range(count - 1):
            topic_id, size = unpack_16sB(view, position)
            position += 17
            name: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                name = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(MetadataRequestTopic(topic_id, name))
    (
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
        tags,
    ) = unpack_tttB(view, position)
    position += 4
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataRequest(
        topics,
        allow_auto_topic_creation,
        include_cluster_authorized_operations,
        include_topic_authorized_operations,
    )
    return message, position


def encode_request_v10(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_request_topic in topics:
            name = metadata_request_topic.name
            out += pack_16s(metadata_request_topic.topic_id)
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
            out.append(0)
    out += pack_tttx(
        message.allow_auto_topic_creation,
        message.include_cluster_authorized_operations,
        message.include_topic_authorized_operations,
    )
    return [out]


def decode_request_v11(view: memoryview, position: int) -> tuple[MetadataRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    topics: list[MetadataRequestTopic] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        topics = []
        for _ in range(count - 1):
            topic_id, size = unpack_16sB(view, position)
            position += 17
            name: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                name = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(MetadataRequestTopic(topic_id, name))
    (
        allow_auto_topic_creation,
        include_topic_authorized_operations,
        tags,
    ) = unpack_ttB(view, position)
    position += 3
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataRequest(
        topics,
        allow_auto_topic_creation,
        False,
        include_topic_authorized_operations,
    )
    return message, position


def encode_request_v11(message: MetadataRequest, out: bytearray) -> Chunks:
    topics = message.topics
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_request_topic in topics:
            name = metadata_request_topic.name
            out += pack_16s(metadata_request_topic.topic_id)
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
            out.append(0)
    out += pack_ttx(message.allow_auto_topic_creation, message.include_topic_authorized_operations)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 10)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        (port,) = unpack_i(view, position)
        position += 4
        brokers.append(MetadataResponseBroker(node_id, host, port, None))
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            partitions_error_code, partition_index, leader_id, count = unpack_hiii(view, position)
            position += 14
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    -1,
                    replica_nodes,
                    isr_nodes,
                    [],
                )
            )
        topics.append(
            MetadataResponseTopic(error_code, name, ZERO_UUID, False, partitions, -2147483648)
        )
    return MetadataResponse(0, brokers, None, -1, topics, -2147483648, 0), position


def encode_response_v0(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        out += pack_i(metadata_response_broker.port)
    topics = message.topics
    out += pack_i(len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_i(len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 12)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_ih(view, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            end = position + size
            rack = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MetadataResponseBroker.rack: negative length")
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    controller_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 9)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_ti(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            partitions_error_code, partition_index, leader_id, count = unpack_hiii(view, position)
            position += 14
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    -1,
                    replica_nodes,
                    isr_nodes,
                    [],
                )
            )
        topics.append(
            MetadataResponseTopic(error_code, name, ZERO_UUID, is_internal, partitions, -2147483648)
        )
    return MetadataResponse(0, brokers, None, controller_id, topics, -2147483648, 0), position


def encode_response_v1(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        rack = metadata_response_broker.rack
        data = b"" if rack is None else rack.encode()
        out += pack_ih(metadata_response_broker.port, -1 if rack is None else len(data))
        out += data
    topics = message.topics
    out += pack_ii(message.controller_id, len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_ti(metadata_response_topic.is_internal, len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 12)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_ih(view, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            end = position + size
            rack = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MetadataResponseBroker.rack: negative length")
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    (size,) = unpack_h(view, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        end = position + size
        cluster_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("MetadataResponse.cluster_id: negative length")
    controller_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 9)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_ti(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            partitions_error_code, partition_index, leader_id, count = unpack_hiii(view, position)
            position += 14
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    -1,
                    replica_nodes,
                    isr_nodes,
                    [],
                )
            )
        topics.append(
            MetadataResponseTopic(error_code, name, ZERO_UUID, is_internal, partitions, -2147483648)
        )
    message = MetadataResponse(0, brokers, cluster_id, controller_id, topics, -2147483648, 0)
    return message, position


def encode_response_v2(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        rack = metadata_response_broker.rack
        data = b"" if rack is None else rack.encode()
        out += pack_ih(metadata_response_broker.port, -1 if rack is None else len(data))
        out += data
    cluster_id = message.cluster_id
    data = b"" if cluster_id is None else cluster_id.encode()
    out += pack_h(-1 if cluster_id is None else len(data))
    out += data
    topics = message.topics
    out += pack_ii(message.controller_id, len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_ti(metadata_response_topic.is_internal, len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 12)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_ih(view, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            end = position + size
            rack = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MetadataResponseBroker.rack: negative length")
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    (size,) = unpack_h(view, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        end = position + size
        cluster_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("MetadataResponse.cluster_id: negative length")
    controller_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 9)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_ti(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            partitions_error_code, partition_index, leader_id, count = unpack_hiii(view, position)
            position += 14
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    -1,
                    replica_nodes,
                    isr_nodes,
                    [],
                )
            )
        topics.append(
            MetadataResponseTopic(error_code, name, ZERO_UUID, is_internal, partitions, -2147483648)
        )
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        -2147483648,
        0,
    )
    return message, position


def encode_response_v3(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_ii(message.throttle_time_ms, len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        rack = metadata_response_broker.rack
        data = b"" if rack is None else rack.encode()
        out += pack_ih(metadata_response_broker.port, -1 if rack is None else len(data))
        out += data
    cluster_id = message.cluster_id
    data = b"" if cluster_id is None else cluster_id.encode()
    out += pack_h(-1 if cluster_id is None else len(data))
    out += data
    topics = message.topics
    out += pack_ii(message.controller_id, len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_ti(metadata_response_topic.is_internal, len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 12)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_ih(view, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            end = position + size
            rack = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MetadataResponseBroker.rack: negative length")
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    (size,) = unpack_h(view, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        end = position + size
        cluster_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("MetadataResponse.cluster_id: negative length")
    controller_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 9)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_ti(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 22)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            partitions_error_code, partition_index, leader_id, count = unpack_hiii(view, position)
            position += 14
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            offline_replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    -1,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topics.append(
            MetadataResponseTopic(error_code, name, ZERO_UUID, is_internal, partitions, -2147483648)
        )
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        -2147483648,
        0,
    )
    return message, position


def encode_response_v5(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_ii(message.throttle_time_ms, len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        rack = metadata_response_broker.rack
        data = b"" if rack is None else rack.encode()
        out += pack_ih(metadata_response_broker.port, -1 if rack is None else len(data))
        out += data
    cluster_id = message.cluster_id
    data = b"" if cluster_id is None else cluster_id.encode()
    out += pack_h(-1 if cluster_id is None else len(data))
    out += data
    topics = message.topics
    out += pack_ii(message.controller_id, len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_ti(metadata_response_topic.is_internal, len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            out += pack_i(len(offline_replicas))
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
    return [out]


def decode_response_v7(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 12)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_ih(view, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            end = position + size
            rack = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MetadataResponseBroker.rack: negative length")
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    (size,) = unpack_h(view, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        end = position + size
        cluster_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("MetadataResponse.cluster_id: negative length")
    controller_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 9)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_ti(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 26)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            (
                partitions_error_code,
                partition_index,
                leader_id,
                leader_epoch,
                count,
            ) = unpack_hiiii(view, position)
            position += 18
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            offline_replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topics.append(
            MetadataResponseTopic(error_code, name, ZERO_UUID, is_internal, partitions, -2147483648)
        )
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        -2147483648,
        0,
    )
    return message, position


def encode_response_v7(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_ii(message.throttle_time_ms, len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        rack = metadata_response_broker.rack
        data = b"" if rack is None else rack.encode()
        out += pack_ih(metadata_response_broker.port, -1 if rack is None else len(data))
        out += data
    cluster_id = message.cluster_id
    data = b"" if cluster_id is None else cluster_id.encode()
    out += pack_h(-1 if cluster_id is None else len(data))
    out += data
    topics = message.topics
    out += pack_ii(message.controller_id, len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_ti(metadata_response_topic.is_internal, len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            out += pack_i(len(offline_replicas))
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
    return [out]


def decode_response_v8(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 12)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count):
        node_id, size = unpack_ih(view, position)
        position += 6
        if size < 0:
            raise Malformed("MetadataResponseBroker.host: negative length")
        end = position + size
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_ih(view, position)
        position += 6
        rack: str | None = None
        if size >= 0:
            end = position + size
            rack = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("MetadataResponseBroker.rack: negative length")
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    (size,) = unpack_h(view, position)
    position += 2
    cluster_id: str | None = None
    if size >= 0:
        end = position + size
        cluster_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("MetadataResponse.cluster_id: negative length")
    controller_id, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 13)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("MetadataResponseTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_ti(view, position)
        position += 5
        if not 0 <= count < 0x80:
            check_count(view, position, count, 26)
        partitions: list[MetadataResponsePartition] = []
        for _ in range(count):
            (
                partitions_error_code,
                partition_index,
                leader_id,
                leader_epoch,
                count,
            ) = unpack_hiiii(view, position)
            position += 18
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            replica_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            isr_nodes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            offline_replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            partitions.append(
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        (topic_authorized_operations,) = unpack_i(view, position)
        position += 4
        topics.append(
            MetadataResponseTopic(
                error_code,
                name,
                ZERO_UUID,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    (cluster_authorized_operations,) = unpack_i(view, position)
    position += 4
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        0,
    )
    return message, position


def encode_response_v8(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_ii(message.throttle_time_ms, len(brokers))
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        data = host.encode()
        out += pack_ih(metadata_response_broker.node_id, len(data))
        out += data
        rack = metadata_response_broker.rack
        data = b"" if rack is None else rack.encode()
        out += pack_ih(metadata_response_broker.port, -1 if rack is None else len(data))
        out += data
    cluster_id = message.cluster_id
    data = b"" if cluster_id is None else cluster_id.encode()
    out += pack_h(-1 if cluster_id is None else len(data))
    out += data
    topics = message.topics
    out += pack_ii(message.controller_id, len(topics))
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        data = name.encode()
        out += pack_hh(metadata_response_topic.error_code, len(data))
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_ti(metadata_response_topic.is_internal, len(partitions))
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
                len(replica_nodes),
            )
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            out += pack_i(len(isr_nodes))
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            out += pack_i(len(offline_replicas))
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
        out += pack_i(metadata_response_topic.topic_authorized_operations)
    out += pack_i(message.cluster_authorized_operations)
    return [out]


def decode_response_v9(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count - 1):
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_iB(view, position)
        position += 5
        rack: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            rack = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 10)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        is_internal, count = unpack_tB(view, position)
        position += 2
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
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
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topic_authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(
            MetadataResponseTopic(
                error_code,
                name,
                ZERO_UUID,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    cluster_authorized_operations, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        0,
    )
    return message, position


def encode_response_v9(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(message.throttle_time_ms)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        out += pack_i(metadata_response_broker.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = metadata_response_broker.rack
        out += pack_i(metadata_response_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_i(message.controller_id)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        out += pack_h(metadata_response_topic.error_code)
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_t(metadata_response_topic.is_internal)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
            )
            size = len(replica_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            size = len(isr_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            size = len(offline_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
            out.append(0)
        out += pack_ix(metadata_response_topic.topic_authorized_operations)
    out += pack_ix(message.cluster_authorized_operations)
    return [out]


def decode_response_v10(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count - 1):
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_iB(view, position)
        position += 5
        rack: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            rack = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 26)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        topic_id, is_internal, count = unpack_16stB(view, position)
        position += 18
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
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
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topic_authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(
            MetadataResponseTopic(
                error_code,
                name,
                topic_id,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    cluster_authorized_operations, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        cluster_authorized_operations,
        0,
    )
    return message, position


def encode_response_v10(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(message.throttle_time_ms)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        out += pack_i(metadata_response_broker.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = metadata_response_broker.rack
        out += pack_i(metadata_response_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_i(message.controller_id)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        out += pack_h(metadata_response_topic.error_code)
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_16st(metadata_response_topic.topic_id, metadata_response_topic.is_internal)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
            )
            size = len(replica_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            size = len(isr_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            size = len(offline_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
            out.append(0)
        out += pack_ix(metadata_response_topic.topic_authorized_operations)
    out += pack_ix(message.cluster_authorized_operations)
    return [out]


def decode_response_v11(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count - 1):
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_iB(view, position)
        position += 5
        rack: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            rack = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 26)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        topic_id, is_internal, count = unpack_16stB(view, position)
        position += 18
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
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
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topic_authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(
            MetadataResponseTopic(
                error_code,
                name,
                topic_id,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        -2147483648,
        0,
    )
    return message, position


def encode_response_v11(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(message.throttle_time_ms)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        out += pack_i(metadata_response_broker.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = metadata_response_broker.rack
        out += pack_i(metadata_response_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_i(message.controller_id)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        if name is None:
            raise null_value("MetadataResponseTopic.name")
        out += pack_h(metadata_response_topic.error_code)
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = metadata_response_topic.partitions
        out += pack_16st(metadata_response_topic.topic_id, metadata_response_topic.is_internal)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
            )
            size = len(replica_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            size = len(isr_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            size = len(offline_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
            out.append(0)
        out += pack_ix(metadata_response_topic.topic_authorized_operations)
    out.append(0)
    return [out]


def decode_response_v12(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count - 1):
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_iB(view, position)
        position += 5
        rack: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            rack = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 26)
    topics: list[MetadataResponseTopic] = []
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
            count, position = long_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
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
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topic_authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(
            MetadataResponseTopic(
                error_code,
                name,
                topic_id,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        -2147483648,
        0,
    )
    return message, position


def encode_response_v12(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(message.throttle_time_ms)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        out += pack_i(metadata_response_broker.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = metadata_response_broker.rack
        out += pack_i(metadata_response_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_i(message.controller_id)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        out += pack_h(metadata_response_topic.error_code)
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
        partitions = metadata_response_topic.partitions
        out += pack_16st(metadata_response_topic.topic_id, metadata_response_topic.is_internal)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
            )
            size = len(replica_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            size = len(isr_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            size = len(offline_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
            out.append(0)
        out += pack_ix(metadata_response_topic.topic_authorized_operations)
    out.append(0)
    return [out]


def decode_response_v13(view: memoryview, position: int) -> tuple[MetadataResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[MetadataResponseBroker] = []
    for _ in range(count - 1):
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_iB(view, position)
        position += 5
        rack: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            rack = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        brokers.append(MetadataResponseBroker(node_id, host, port, rack))
    size = view[position]
    position += 1
    cluster_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        cluster_id = view[position:end].tobytes().decode()
        position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 26)
    topics: list[MetadataResponseTopic] = []
    for _ in range(count - 1):
        topics_error_code, size = unpack_hB(view, position)
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
            count, position = long_count(view, position, count, 18)
        partitions: list[MetadataResponsePartition] = []
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
                MetadataResponsePartition(
                    partitions_error_code,
                    partition_index,
                    leader_id,
                    leader_epoch,
                    replica_nodes,
                    isr_nodes,
                    offline_replicas,
                )
            )
        topic_authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(
            MetadataResponseTopic(
                topics_error_code,
                name,
                topic_id,
                is_internal,
                partitions,
                topic_authorized_operations,
            )
        )
    error_code, tags = unpack_hB(view, position)
    position += 3
    if tags:
        position = skip_tags(view, position, tags)
    message = MetadataResponse(
        throttle_time_ms,
        brokers,
        cluster_id,
        controller_id,
        topics,
        -2147483648,
        error_code,
    )
    return message, position


def encode_response_v13(message: MetadataResponse, out: bytearray) -> Chunks:
    brokers = message.brokers
    out += pack_i(message.throttle_time_ms)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_broker in brokers:
        host = metadata_response_broker.host
        out += pack_i(metadata_response_broker.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = metadata_response_broker.rack
        out += pack_i(metadata_response_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    cluster_id = message.cluster_id
    if cluster_id is None:
        out.append(0)
    else:
        data = cluster_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_i(message.controller_id)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for metadata_response_topic in topics:
        name = metadata_response_topic.name
        out += pack_h(metadata_response_topic.error_code)
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
        partitions = metadata_response_topic.partitions
        out += pack_16st(metadata_response_topic.topic_id, metadata_response_topic.is_internal)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for metadata_response_partition in partitions:
            replica_nodes = metadata_response_partition.replica_nodes
            out += pack_hiii(
                metadata_response_partition.error_code,
                metadata_response_partition.partition_index,
                metadata_response_partition.leader_id,
                metadata_response_partition.leader_epoch,
            )
            size = len(replica_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replica_nodes)}i", *replica_nodes)
            isr_nodes = metadata_response_partition.isr_nodes
            size = len(isr_nodes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(isr_nodes)}i", *isr_nodes)
            offline_replicas = metadata_response_partition.offline_replicas
            size = len(offline_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(offline_replicas)}i", *offline_replicas)
            out.append(0)
        out += pack_ix(metadata_response_topic.topic_authorized_operations)
    out += pack_hx(message.error_code)
    return [out]


METADATA = Api(
    3,
    "Metadata",
    Message(
        "MetadataRequest",
        (0, 13),
        9,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
            4: (decode_request_v4, encode_request_v4),
            8: (decode_request_v8, encode_request_v8),
            9: (decode_request_v9, encode_request_v9),
            10: (decode_request_v10, encode_request_v10),
            11: (decode_request_v11, encode_request_v11),
        },
    ),
    Message(
        "MetadataResponse",
        (0, 13),
        9,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
            3: (decode_response_v3, encode_response_v3),
            5: (decode_response_v5, encode_response_v5),
            7: (decode_response_v7, encode_response_v7),
            8: (decode_response_v8, encode_response_v8),
            9: (decode_response_v9, encode_response_v9),
            10: (decode_response_v10, encode_response_v10),
            11: (decode_response_v11, encode_response_v11),
            12: (decode_response_v12, encode_response_v12),
            13: (decode_response_v13, encode_response_v13),
        },
    ),
)
