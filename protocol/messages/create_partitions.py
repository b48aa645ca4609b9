"""CreatePartitions: generated from create_partitions.schema by protocol/generate. Do not edit."""

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

pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_it = Struct(">i?").pack
pack_itx = Struct(">i?x").pack
pack_ii = Struct(">ii").pack
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_it = Struct(">i?").unpack_from
unpack_itB = Struct(">i?B").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsAssignment(Structure):
    """Part of CreatePartitions."""

    broker_ids: list[int]

    def __init__(
        self,
        broker_ids: list[int] = ABSENT,
    ) -> None:
        self.broker_ids = [] if broker_ids is ABSENT else broker_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsTopic(Structure):
    """Part of CreatePartitions."""

    name: str
    count: int
    assignments: list[CreatePartitionsAssignment] | None

    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = ABSENT,
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = [] if assignments is ABSENT else assignments


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsRequest(Structure):
    """CreatePartitions, versions 0-3."""

    topics: list[CreatePartitionsTopic]
    timeout_ms: int
    validate_only: bool

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] = ABSENT,
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsTopicResult(Structure):
    """Part of CreatePartitions."""

    name: str
    error_code: int
    error_message: str | None

    def __init__(
        self,
        name: str = "",
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsResponse(Structure):
    """CreatePartitions, versions 0-3."""

    throttle_time_ms: int
    results: list[CreatePartitionsTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[CreatePartitionsTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def decode_request_v0(view: memoryview, position: int) -> tuple[CreatePartitionsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 10)
    topics: list[CreatePartitionsTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("CreatePartitionsTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        topics_count, count = unpack_ii(view, position)
        position += 8
        assignments: list[CreatePartitionsAssignment] | None = None
        if count != -1:
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            assignments = []
            for _ in range(count):
                (count,) = unpack_i(view, position)
                position += 4
                if not 0 <= count < 0x80:
                    check_count(view, position, count, 4)
                elements += count
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                broker_ids = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                assignments.append(CreatePartitionsAssignment(broker_ids))
        topics.append(CreatePartitionsTopic(name, topics_count, assignments))
    timeout_ms, validate_only = unpack_it(view, position)
    position += 5
    return CreatePartitionsRequest(topics, timeout_ms, validate_only), position


def encode_request_v0(message: CreatePartitionsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for create_partitions_topic in topics:
        name = create_partitions_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        assignments = create_partitions_topic.assignments
        out += pack_ii(
            create_partitions_topic.count,
            -1 if assignments is None else len(assignments),
        )
        for create_partitions_assignment in assignments or ():
            broker_ids = create_partitions_assignment.broker_ids
            out += pack_i(len(broker_ids))
            out += pack(f">{len(broker_ids)}i", *broker_ids)
    out += pack_it(message.timeout_ms, message.validate_only)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[CreatePartitionsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 7)
    topics: list[CreatePartitionsTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        topics_count, count = unpack_iB(view, position)
        position += 5
        assignments: list[CreatePartitionsAssignment] | None = None
        if count:
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 2)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            assignments = []
            for _ in range(count - 1):
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                broker_ids = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                assignments.append(CreatePartitionsAssignment(broker_ids))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(CreatePartitionsTopic(name, topics_count, assignments))
    timeout_ms, validate_only, tags = unpack_itB(view, position)
    position += 6
    if tags:
        position = skip_tags(view, position, tags)
    return CreatePartitionsRequest(topics, timeout_ms, validate_only), position


def encode_request_v2(message: CreatePartitionsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for create_partitions_topic in topics:
        name = create_partitions_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        assignments = create_partitions_topic.assignments
        out += pack_i(create_partitions_topic.count)
        if assignments is None:
            out.append(0)
        else:
            size = len(assignments) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for create_partitions_assignment in assignments:
                broker_ids = create_partitions_assignment.broker_ids
                size = len(broker_ids) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(broker_ids)}i", *broker_ids)
                out.append(0)
        out.append(0)
    out += pack_itx(message.timeout_ms, message.validate_only)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[CreatePartitionsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    results: list[CreatePartitionsTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("CreatePartitionsTopicResult.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("CreatePartitionsTopicResult.error_message: negative length")
        results.append(CreatePartitionsTopicResult(name, error_code, error_message))
    return CreatePartitionsResponse(throttle_time_ms, results), position


def encode_response_v0(message: CreatePartitionsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for create_partitions_topic_result in results:
        name = create_partitions_topic_result.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        error_message = create_partitions_topic_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(
            create_partitions_topic_result.error_code,
            -1 if error_message is None else len(data),
        )
        out += data
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[CreatePartitionsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    results: list[CreatePartitionsTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
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
        results.append(CreatePartitionsTopicResult(name, error_code, error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return CreatePartitionsResponse(throttle_time_ms, results), position


def encode_response_v2(message: CreatePartitionsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for create_partitions_topic_result in results:
        name = create_partitions_topic_result.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        error_message = create_partitions_topic_result.error_message
        out += pack_h(create_partitions_topic_result.error_code)
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
    return [out]


CREATE_PARTITIONS = Api(
    37,
    "CreatePartitions",
    Message(
        "CreatePartitionsRequest",
        (0, 3),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "CreatePartitionsResponse",
        (0, 3),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
