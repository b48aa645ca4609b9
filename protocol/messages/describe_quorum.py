"""DescribeQuorum: generated from describe_quorum.schema by protocol/generate. Do not edit."""

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

pack_Hx = Struct(">Hx").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_i16sqqqx = Struct(">i16sqqqx").pack
pack_ih = Struct(">ih").pack
pack_ihiiq = Struct(">ihiiq").pack
pack_iiq = Struct(">iiq").pack
pack_iqqqx = Struct(">iqqqx").pack
pack_iqx = Struct(">iqx").pack
pack_ix = Struct(">ix").pack
unpack_HB = Struct(">HB").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_i16sqqqB = Struct(">i16sqqqB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihiiqB = Struct(">ihiiqB").unpack_from
unpack_iiqB = Struct(">iiqB").unpack_from
unpack_iqB = Struct(">iqB").unpack_from
unpack_iqqqB = Struct(">iqqqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of DescribeQuorum."""

    partition_index: int

    def __init__(
        self,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicData(Structure):
    """Part of DescribeQuorum."""

    topic_name: str
    partitions: list[PartitionData]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeQuorumRequest(Structure):
    """DescribeQuorum, versions 0-2."""

    topics: list[TopicData]

    def __init__(
        self,
        topics: list[TopicData] = ABSENT,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReplicaState(Structure):
    """Part of DescribeQuorum."""

    replica_id: int
    replica_directory_id: bytes
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int

    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionDataResult(Structure):
    """Part of DescribeQuorum."""

    partition_index: int
    error_code: int
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] = ABSENT,
        observers: list[ReplicaState] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = [] if current_voters is ABSENT else current_voters
        self.observers = [] if observers is ABSENT else observers


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicDataResult(Structure):
    """Part of DescribeQuorum."""

    topic_name: str
    partitions: list[PartitionDataResult]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionDataResult] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class Listener(Structure):
    """Part of DescribeQuorum."""

    name: str
    host: str
    port: int

    def __init__(
        self,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port


@dataclass(slots=True, init=False, repr=False, eq=False)
class Node(Structure):
    """Part of DescribeQuorum."""

    node_id: int
    listeners: list[Listener]

    def __init__(
        self,
        node_id: int = 0,
        listeners: list[Listener] = ABSENT,
    ) -> None:
        self.node_id = node_id
        self.listeners = [] if listeners is ABSENT else listeners


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeQuorumResponse(Structure):
    """DescribeQuorum, versions 0-2."""

    error_code: int
    error_message: str | None
    topics: list[TopicDataResult]
    nodes: list[Node]

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[TopicDataResult] = ABSENT,
        nodes: list[Node] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is ABSENT else topics
        self.nodes = [] if nodes is ABSENT else nodes


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeQuorumRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[TopicData] = []
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
            count, position = long_count(view, position, count, 5)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            partition_index, tags = unpack_iB(view, position)
            position += 5
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(PartitionData(partition_index))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(TopicData(topic_name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeQuorumRequest(topics), position


def encode_request_v0(message: DescribeQuorumRequest, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_data in topics:
        topic_name = topic_data.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = topic_data.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            out += pack_ix(partition_data.partition_index)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeQuorumResponse, int]:
    error_code, count = unpack_hB(view, position)
    position += 3
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[TopicDataResult] = []
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
            count, position = long_count(view, position, count, 25)
        partitions: list[PartitionDataResult] = []
        for _ in range(count - 1):
            (
                partition_index,
                partitions_error_code,
                leader_id,
                leader_epoch,
                high_watermark,
                count,
            ) = unpack_ihiiqB(view, position)
            position += 23
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 13)
            current_voters: list[ReplicaState] = []
            for _ in range(count - 1):
                replica_id, log_end_offset, tags = unpack_iqB(view, position)
                position += 13
                if tags:
                    position = skip_tags(view, position, tags)
                current_voters.append(ReplicaState(replica_id, ZERO_UUID, log_end_offset, -1, -1))
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 13)
            observers: list[ReplicaState] = []
            for _ in range(count - 1):
                observers_replica_id, observers_log_end_offset, tags = unpack_iqB(view, position)
                position += 13
                if tags:
                    position = skip_tags(view, position, tags)
                observers.append(
                    ReplicaState(observers_replica_id, ZERO_UUID, observers_log_end_offset, -1, -1)
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionDataResult(
                    partition_index,
                    partitions_error_code,
                    "",
                    leader_id,
                    leader_epoch,
                    high_watermark,
                    current_voters,
                    observers,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(TopicDataResult(topic_name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeQuorumResponse(error_code, "", topics, []), position


def encode_response_v0(message: DescribeQuorumResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_h(message.error_code)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_data_result in topics:
        topic_name = topic_data_result.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = topic_data_result.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data_result in partitions:
            current_voters = partition_data_result.current_voters
            out += pack_ihiiq(
                partition_data_result.partition_index,
                partition_data_result.error_code,
                partition_data_result.leader_id,
                partition_data_result.leader_epoch,
                partition_data_result.high_watermark,
            )
            size = len(current_voters) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for replica_state in current_voters:
                out += pack_iqx(replica_state.replica_id, replica_state.log_end_offset)
            observers = partition_data_result.observers
            size = len(observers) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for observers_replica_state in observers:
                out += pack_iqx(
                    observers_replica_state.replica_id,
                    observers_replica_state.log_end_offset,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeQuorumResponse, int]:
    error_code, count = unpack_hB(view, position)
    position += 3
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[TopicDataResult] = []
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
            count, position = long_count(view, position, count, 25)
        partitions: list[PartitionDataResult] = []
        for _ in range(count - 1):
            (
                partition_index,
                partitions_error_code,
                leader_id,
                leader_epoch,
                high_watermark,
                count,
            ) = unpack_ihiiqB(view, position)
            position += 23
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 29)
            current_voters: list[ReplicaState] = []
            for _ in range(count - 1):
                (
                    replica_id,
                    log_end_offset,
                    last_fetch_timestamp,
                    last_caught_up_timestamp,
                    tags,
                ) = unpack_iqqqB(view, position)
                position += 29
                if tags:
                    position = skip_tags(view, position, tags)
                current_voters.append(
                    ReplicaState(
                        replica_id,
                        ZERO_UUID,
                        log_end_offset,
                        last_fetch_timestamp,
                        last_caught_up_timestamp,
                    )
                )
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 29)
            observers: list[ReplicaState] = []
            for _ in range(count - 1):
                (
                    observers_replica_id,
                    observers_log_end_offset,
                    observers_last_fetch_timestamp,
                    observers_last_caught_up_timestamp,
                    tags,
                ) = unpack_iqqqB(view, position)
                position += 29
                if tags:
                    position = skip_tags(view, position, tags)
                observers.append(
                    ReplicaState(
                        observers_replica_id,
                        ZERO_UUID,
                        observers_log_end_offset,
                        observers_last_fetch_timestamp,
                        observers_last_caught_up_timestamp,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionDataResult(
                    partition_index,
                    partitions_error_code,
                    "",
                    leader_id,
                    leader_epoch,
                    high_watermark,
                    current_voters,
                    observers,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(TopicDataResult(topic_name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeQuorumResponse(error_code, "", topics, []), position


def encode_response_v1(message: DescribeQuorumResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_h(message.error_code)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_data_result in topics:
        topic_name = topic_data_result.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = topic_data_result.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data_result in partitions:
            current_voters = partition_data_result.current_voters
            out += pack_ihiiq(
                partition_data_result.partition_index,
                partition_data_result.error_code,
                partition_data_result.leader_id,
                partition_data_result.leader_epoch,
                partition_data_result.high_watermark,
            )
            size = len(current_voters) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for replica_state in current_voters:
                out += pack_iqqqx(
                    replica_state.replica_id,
                    replica_state.log_end_offset,
                    replica_state.last_fetch_timestamp,
                    replica_state.last_caught_up_timestamp,
                )
            observers = partition_data_result.observers
            size = len(observers) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for observers_replica_state in observers:
                out += pack_iqqqx(
                    observers_replica_state.replica_id,
                    observers_replica_state.log_end_offset,
                    observers_replica_state.last_fetch_timestamp,
                    observers_replica_state.last_caught_up_timestamp,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DescribeQuorumResponse, int]:
    error_code, size = unpack_hB(view, position)
    position += 3
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
    topics: list[TopicDataResult] = []
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
            count, position = long_count(view, position, count, 26)
        partitions: list[PartitionDataResult] = []
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
            leader_id, leader_epoch, high_watermark, count = unpack_iiqB(view, position)
            position += 17
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 45)
            current_voters: list[ReplicaState] = []
            for _ in range(count - 1):
                (
                    replica_id,
                    replica_directory_id,
                    log_end_offset,
                    last_fetch_timestamp,
                    last_caught_up_timestamp,
                    tags,
                ) = unpack_i16sqqqB(view, position)
                position += 45
                if tags:
                    position = skip_tags(view, position, tags)
                current_voters.append(
                    ReplicaState(
                        replica_id,
                        replica_directory_id,
                        log_end_offset,
                        last_fetch_timestamp,
                        last_caught_up_timestamp,
                    )
                )
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 45)
            observers: list[ReplicaState] = []
            for _ in range(count - 1):
                (
                    observers_replica_id,
                    observers_replica_directory_id,
                    observers_log_end_offset,
                    observers_last_fetch_timestamp,
                    observers_last_caught_up_timestamp,
                    tags,
                ) = unpack_i16sqqqB(view, position)
                position += 45
                if tags:
                    position = skip_tags(view, position, tags)
                observers.append(
                    ReplicaState(
                        observers_replica_id,
                        observers_replica_directory_id,
                        observers_log_end_offset,
                        observers_last_fetch_timestamp,
                        observers_last_caught_up_timestamp,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionDataResult(
                    partition_index,
                    partitions_error_code,
                    partitions_error_message,
                    leader_id,
                    leader_epoch,
                    high_watermark,
                    current_voters,
                    observers,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(TopicDataResult(topic_name, partitions))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 6)
    nodes: list[Node] = []
    for _ in range(count - 1):
        node_id, count = unpack_iB(view, position)
        position += 5
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 5)
        listeners: list[Listener] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            host = view[position:end].tobytes().decode()
            position = end
            port, tags = unpack_HB(view, position)
            position += 3
            if tags:
                position = skip_tags(view, position, tags)
            listeners.append(Listener(name, host, port))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        nodes.append(Node(node_id, listeners))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeQuorumResponse(error_code, error_message, topics, nodes), position


def encode_response_v2(message: DescribeQuorumResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_h(message.error_code)
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
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_data_result in topics:
        topic_name = topic_data_result.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = topic_data_result.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data_result in partitions:
            partition_data_result_error_message = partition_data_result.error_message
            out += pack_ih(partition_data_result.partition_index, partition_data_result.error_code)
            if partition_data_result_error_message is None:
                out.append(0)
            else:
                data = partition_data_result_error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            current_voters = partition_data_result.current_voters
            out += pack_iiq(
                partition_data_result.leader_id,
                partition_data_result.leader_epoch,
                partition_data_result.high_watermark,
            )
            size = len(current_voters) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for replica_state in current_voters:
                out += pack_i16sqqqx(
                    replica_state.replica_id,
                    replica_state.replica_directory_id,
                    replica_state.log_end_offset,
                    replica_state.last_fetch_timestamp,
                    replica_state.last_caught_up_timestamp,
                )
            observers = partition_data_result.observers
            size = len(observers) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for observers_replica_state in observers:
                out += pack_i16sqqqx(
                    observers_replica_state.replica_id,
                    observers_replica_state.replica_directory_id,
                    observers_replica_state.log_end_offset,
                    observers_replica_state.last_fetch_timestamp,
                    observers_replica_state.last_caught_up_timestamp,
                )
            out.append(0)
        out.append(0)
    nodes = message.nodes
    size = len(nodes) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for node in nodes:
        listeners = node.listeners
        out += pack_i(node.node_id)
        size = len(listeners) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for listener in listeners:
            name = listener.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            host = listener.host
            data = host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out += pack_Hx(listener.port)
        out.append(0)
    out.append(0)
    return [out]


DESCRIBE_QUORUM = Api(
    55,
    "DescribeQuorum",
    Message(
        "DescribeQuorumRequest",
        (0, 2),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "DescribeQuorumResponse",
        (0, 2),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
