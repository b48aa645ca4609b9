"""ElectLeaders: generated from elect_leaders.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
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

pack_b = Struct(">b").pack
pack_bi = Struct(">bi").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihh = Struct(">ihh").pack
pack_ihi = Struct(">ihi").pack
pack_ii = Struct(">ii").pack
pack_ix = Struct(">ix").pack
unpack_bB = Struct(">bB").unpack_from
unpack_bi = Struct(">bi").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihh = Struct(">ihh").unpack_from
unpack_ihi = Struct(">ihi").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ElectLeaders."""

    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ElectLeadersRequest(Structure):
    """ElectLeaders, versions 0-2."""

    election_type: int
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: int

    def __init__(
        self,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = ABSENT,
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionResult(Structure):
    """Part of ElectLeaders."""

    partition_id: int
    error_code: int
    error_message: str | None

    def __init__(
        self,
        partition_id: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReplicaElectionResult(Structure):
    """Part of ElectLeaders."""

    topic: str
    partition_result: list[PartitionResult]

    def __init__(
        self,
        topic: str = "",
        partition_result: list[PartitionResult] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is ABSENT else partition_result


@dataclass(slots=True, init=False, repr=False, eq=False)
class ElectLeadersResponse(Structure):
    """ElectLeaders, versions 0-2."""

    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ReplicaElectionResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is ABSENT else replica_election_results


def decode_request_v0(view: memoryview, position: int) -> tuple[ElectLeadersRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    topic_partitions: list[TopicPartitions] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        topic_partitions = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("TopicPartitions.topic: negative length")
            end = position + size
            topic = view[position:end].tobytes().decode()
            position = end
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            topic_partitions.append(TopicPartitions(topic, partitions))
    (timeout_ms,) = unpack_i(view, position)
    position += 4
    return ElectLeadersRequest(0, topic_partitions, timeout_ms), position


def encode_request_v0(message: ElectLeadersRequest, out: bytearray) -> Chunks:
    topic_partitions = message.topic_partitions
    out += pack_i(-1 if topic_partitions is None else len(topic_partitions))
    for topic_partitions_topic_partitions in topic_partitions or ():
        topic = topic_partitions_topic_partitions.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = topic_partitions_topic_partitions.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    out += pack_i(message.timeout_ms)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[ElectLeadersRequest, int]:
    elements = 0
    election_type, count = unpack_bi(view, position)
    position += 5
    topic_partitions: list[TopicPartitions] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        topic_partitions = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("TopicPartitions.topic: negative length")
            end = position + size
            topic = view[position:end].tobytes().decode()
            position = end
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            topic_partitions.append(TopicPartitions(topic, partitions))
    (timeout_ms,) = unpack_i(view, position)
    position += 4
    return ElectLeadersRequest(election_type, topic_partitions, timeout_ms), position


def encode_request_v1(message: ElectLeadersRequest, out: bytearray) -> Chunks:
    topic_partitions = message.topic_partitions
    out += pack_bi(message.election_type, -1 if topic_partitions is None else len(topic_partitions))
    for topic_partitions_topic_partitions in topic_partitions or ():
        topic = topic_partitions_topic_partitions.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = topic_partitions_topic_partitions.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    out += pack_i(message.timeout_ms)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[ElectLeadersRequest, int]:
    elements = 0
    election_type, count = unpack_bB(view, position)
    position += 2
    topic_partitions: list[TopicPartitions] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topic_partitions = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            topic = view[position:end].tobytes().decode()
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
            topic_partitions.append(TopicPartitions(topic, partitions))
    timeout_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return ElectLeadersRequest(election_type, topic_partitions, timeout_ms), position


def encode_request_v2(message: ElectLeadersRequest, out: bytearray) -> Chunks:
    topic_partitions = message.topic_partitions
    out += pack_b(message.election_type)
    if topic_partitions is None:
        out.append(0)
    else:
        size = len(topic_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for topic_partitions_topic_partitions in topic_partitions:
            topic = topic_partitions_topic_partitions.topic
            data = topic.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = topic_partitions_topic_partitions.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partitions)}i", *partitions)
            out.append(0)
    out += pack_ix(message.timeout_ms)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ElectLeadersResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    replica_election_results: list[ReplicaElectionResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ReplicaElectionResult.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 8)
        partition_result: list[PartitionResult] = []
        for _ in range(count):
            partition_id, error_code, size = unpack_ihh(view, position)
            position += 8
            error_message: str | None = None
            if size >= 0:
                end = position + size
                error_message = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("PartitionResult.error_message: negative length")
            partition_result.append(PartitionResult(partition_id, error_code, error_message))
        replica_election_results.append(ReplicaElectionResult(topic, partition_result))
    return ElectLeadersResponse(throttle_time_ms, 0, replica_election_results), position


def encode_response_v0(message: ElectLeadersResponse, out: bytearray) -> Chunks:
    replica_election_results = message.replica_election_results
    out += pack_ii(message.throttle_time_ms, len(replica_election_results))
    for replica_election_result in replica_election_results:
        topic = replica_election_result.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partition_result = replica_election_result.partition_result
        out += pack_i(len(partition_result))
        for partition_result_partition_result in partition_result:
            error_message = partition_result_partition_result.error_message
            data = b"" if error_message is None else error_message.encode()
            out += pack_ihh(
                partition_result_partition_result.partition_id,
                partition_result_partition_result.error_code,
                -1 if error_message is None else len(data),
            )
            out += data
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ElectLeadersResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihi(view, position)
    position += 10
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    replica_election_results: list[ReplicaElectionResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ReplicaElectionResult.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 8)
        partition_result: list[PartitionResult] = []
        for _ in range(count):
            partition_id, partition_result_error_code, size = unpack_ihh(view, position)
            position += 8
            error_message: str | None = None
            if size >= 0:
                end = position + size
                error_message = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("PartitionResult.error_message: negative length")
            partition_result.append(
                PartitionResult(partition_id, partition_result_error_code, error_message)
            )
        replica_election_results.append(ReplicaElectionResult(topic, partition_result))
    message = ElectLeadersResponse(throttle_time_ms, error_code, replica_election_results)
    return message, position


def encode_response_v1(message: ElectLeadersResponse, out: bytearray) -> Chunks:
    replica_election_results = message.replica_election_results
    out += pack_ihi(message.throttle_time_ms, message.error_code, len(replica_election_results))
    for replica_election_result in replica_election_results:
        topic = replica_election_result.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partition_result = replica_election_result.partition_result
        out += pack_i(len(partition_result))
        for partition_result_partition_result in partition_result:
            error_message = partition_result_partition_result.error_message
            data = b"" if error_message is None else error_message.encode()
            out += pack_ihh(
                partition_result_partition_result.partition_id,
                partition_result_partition_result.error_code,
                -1 if error_message is None else len(data),
            )
            out += data
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[ElectLeadersResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    replica_election_results: list[ReplicaElectionResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 8)
        partition_result: list[PartitionResult] = []
        for _ in range(count - 1):
            partition_id, partition_result_error_code, size = unpack_ihB(view, position)
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
            partition_result.append(
                PartitionResult(partition_id, partition_result_error_code, error_message)
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        replica_election_results.append(ReplicaElectionResult(topic, partition_result))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ElectLeadersResponse(throttle_time_ms, error_code, replica_election_results)
    return message, position


def encode_response_v2(message: ElectLeadersResponse, out: bytearray) -> Chunks:
    replica_election_results = message.replica_election_results
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(replica_election_results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for replica_election_result in replica_election_results:
        topic = replica_election_result.topic
        data = topic.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partition_result = replica_election_result.partition_result
        size = len(partition_result) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_result_partition_result in partition_result:
            error_message = partition_result_partition_result.error_message
            out += pack_ih(
                partition_result_partition_result.partition_id,
                partition_result_partition_result.error_code,
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
    out.append(0)
    return [out]


ELECT_LEADERS = Api(
    43,
    "ElectLeaders",
    Message(
        "ElectLeadersRequest",
        (0, 2),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "ElectLeadersResponse",
        (0, 2),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
