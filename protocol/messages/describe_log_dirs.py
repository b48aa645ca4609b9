"""DescribeLogDirs: generated from describe_log_dirs.schema by protocol/generate. Do not edit."""

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
)

pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ii = Struct(">ii").pack
pack_iqqt = Struct(">iqq?").pack
pack_iqqtx = Struct(">iqq?x").pack
pack_qqtx = Struct(">qq?x").pack
pack_qqx = Struct(">qqx").pack
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iqqt = Struct(">iqq?").unpack_from
unpack_iqqtB = Struct(">iqq?B").unpack_from
unpack_qqtB = Struct(">qq?B").unpack_from
unpack_qqB = Struct(">qqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribableLogDirTopic(Structure):
    """Part of DescribeLogDirs."""

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
class DescribeLogDirsRequest(Structure):
    """DescribeLogDirs, versions 1-5."""

    topics: list[DescribableLogDirTopic] | None

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = ABSENT,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeLogDirsPartition(Structure):
    """Part of DescribeLogDirs."""

    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeLogDirsTopic(Structure):
    """Part of DescribeLogDirs."""

    name: str
    partitions: list[DescribeLogDirsPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeLogDirsResult(Structure):
    """Part of DescribeLogDirs."""

    error_code: int
    log_dir: str
    topics: list[DescribeLogDirsTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] = ABSENT,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = [] if topics is ABSENT else topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeLogDirsResponse(Structure):
    """DescribeLogDirs, versions 1-5."""

    throttle_time_ms: int
    error_code: int
    results: list[DescribeLogDirsResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is ABSENT else results


def decode_request_v1(view: memoryview, position: int) -> tuple[DescribeLogDirsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    topics: list[DescribableLogDirTopic] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        topics = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribableLogDirTopic.topic: negative length")
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
            topics.append(DescribableLogDirTopic(topic, partitions))
    return DescribeLogDirsRequest(topics), position


def encode_request_v1(message: DescribeLogDirsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(-1 if topics is None else len(topics))
    for describable_log_dir_topic in topics or ():
        topic = describable_log_dir_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = describable_log_dir_topic.partitions
        out += pack_i(len(partitions))
        out += pack(f">{len(partitions)}i", *partitions)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DescribeLogDirsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    topics: list[DescribableLogDirTopic] | None = None
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
            topics.append(DescribableLogDirTopic(topic, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeLogDirsRequest(topics), position


def encode_request_v2(message: DescribeLogDirsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describable_log_dir_topic in topics:
            topic = describable_log_dir_topic.topic
            data = topic.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describable_log_dir_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partitions)}i", *partitions)
            out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    results: list[DescribeLogDirsResult] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        if size < 0:
            raise Malformed("DescribeLogDirsResult.log_dir: negative length")
        end = position + size
        log_dir = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        topics: list[DescribeLogDirsTopic] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribeLogDirsTopic.name: negative length")
            end = position + size
            name = view[position:end].tobytes().decode()
            position = end
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 21)
            partitions: list[DescribeLogDirsPartition] = []
            for _ in range(count):
                (
                    partition_index,
                    partition_size,
                    offset_lag,
                    is_future_key,
                ) = unpack_iqqt(view, position)
                position += 21
                partitions.append(
                    DescribeLogDirsPartition(
                        partition_index,
                        partition_size,
                        offset_lag,
                        is_future_key,
                    )
                )
            topics.append(DescribeLogDirsTopic(name, partitions))
        results.append(DescribeLogDirsResult(error_code, log_dir, topics, -1, -1, False))
    return DescribeLogDirsResponse(throttle_time_ms, 0, results), position


def encode_response_v1(message: DescribeLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for describe_log_dirs_result in results:
        log_dir = describe_log_dirs_result.log_dir
        data = log_dir.encode()
        out += pack_hh(describe_log_dirs_result.error_code, len(data))
        out += data
        topics = describe_log_dirs_result.topics
        out += pack_i(len(topics))
        for describe_log_dirs_topic in topics:
            name = describe_log_dirs_topic.name
            data = name.encode()
            out += pack_h(len(data))
            out += data
            partitions = describe_log_dirs_topic.partitions
            out += pack_i(len(partitions))
            for describe_log_dirs_partition in partitions:
                out += pack_iqqt(
                    describe_log_dirs_partition.partition_index,
                    describe_log_dirs_partition.partition_size,
                    describe_log_dirs_partition.offset_lag,
                    describe_log_dirs_partition.is_future_key,
                )
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    results: list[DescribeLogDirsResult] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        log_dir = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics: list[DescribeLogDirsTopic] = []
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
                count, position = long_count(view, position, count, 22)
            partitions: list[DescribeLogDirsPartition] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    partition_size,
                    offset_lag,
                    is_future_key,
                    tags,
                ) = unpack_iqqtB(view, position)
                position += 22
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(
                    DescribeLogDirsPartition(
                        partition_index,
                        partition_size,
                        offset_lag,
                        is_future_key,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(DescribeLogDirsTopic(name, partitions))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(DescribeLogDirsResult(error_code, log_dir, topics, -1, -1, False))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeLogDirsResponse(throttle_time_ms, 0, results), position


def encode_response_v2(message: DescribeLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_log_dirs_result in results:
        log_dir = describe_log_dirs_result.log_dir
        out += pack_h(describe_log_dirs_result.error_code)
        data = log_dir.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_log_dirs_result.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_log_dirs_topic in topics:
            name = describe_log_dirs_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describe_log_dirs_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_log_dirs_partition in partitions:
                out += pack_iqqtx(
                    describe_log_dirs_partition.partition_index,
                    describe_log_dirs_partition.partition_size,
                    describe_log_dirs_partition.offset_lag,
                    describe_log_dirs_partition.is_future_key,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    results: list[DescribeLogDirsResult] = []
    for _ in range(count - 1):
        results_error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        log_dir = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics: list[DescribeLogDirsTopic] = []
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
                count, position = long_count(view, position, count, 22)
            partitions: list[DescribeLogDirsPartition] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    partition_size,
                    offset_lag,
                    is_future_key,
                    tags,
                ) = unpack_iqqtB(view, position)
                position += 22
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(
                    DescribeLogDirsPartition(
                        partition_index,
                        partition_size,
                        offset_lag,
                        is_future_key,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(DescribeLogDirsTopic(name, partitions))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(DescribeLogDirsResult(results_error_code, log_dir, topics, -1, -1, False))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeLogDirsResponse(throttle_time_ms, error_code, results), position


def encode_response_v3(message: DescribeLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_log_dirs_result in results:
        log_dir = describe_log_dirs_result.log_dir
        out += pack_h(describe_log_dirs_result.error_code)
        data = log_dir.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_log_dirs_result.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_log_dirs_topic in topics:
            name = describe_log_dirs_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describe_log_dirs_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_log_dirs_partition in partitions:
                out += pack_iqqtx(
                    describe_log_dirs_partition.partition_index,
                    describe_log_dirs_partition.partition_size,
                    describe_log_dirs_partition.offset_lag,
                    describe_log_dirs_partition.is_future_key,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 21)
    results: list[DescribeLogDirsResult] = []
    for _ in range(count - 1):
        results_error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        log_dir = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics: list[DescribeLogDirsTopic] = []
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
                count, position = long_count(view, position, count, 22)
            partitions: list[DescribeLogDirsPartition] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    partition_size,
                    offset_lag,
                    is_future_key,
                    tags,
                ) = unpack_iqqtB(view, position)
                position += 22
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(
                    DescribeLogDirsPartition(
                        partition_index,
                        partition_size,
                        offset_lag,
                        is_future_key,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(DescribeLogDirsTopic(name, partitions))
        total_bytes, usable_bytes, tags = unpack_qqB(view, position)
        position += 17
        if tags:
            position = skip_tags(view, position, tags)
        results.append(
            DescribeLogDirsResult(
                results_error_code,
                log_dir,
                topics,
                total_bytes,
                usable_bytes,
                False,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeLogDirsResponse(throttle_time_ms, error_code, results), position


def encode_response_v4(message: DescribeLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_log_dirs_result in results:
        log_dir = describe_log_dirs_result.log_dir
        out += pack_h(describe_log_dirs_result.error_code)
        data = log_dir.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_log_dirs_result.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_log_dirs_topic in topics:
            name = describe_log_dirs_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describe_log_dirs_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_log_dirs_partition in partitions:
                out += pack_iqqtx(
                    describe_log_dirs_partition.partition_index,
                    describe_log_dirs_partition.partition_size,
                    describe_log_dirs_partition.offset_lag,
                    describe_log_dirs_partition.is_future_key,
                )
            out.append(0)
        out += pack_qqx(describe_log_dirs_result.total_bytes, describe_log_dirs_result.usable_bytes)
    out.append(0)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[DescribeLogDirsResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 22)
    results: list[DescribeLogDirsResult] = []
    for _ in range(count - 1):
        results_error_code, size = unpack_hB(view, position)
        position += 3
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        log_dir = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics: list[DescribeLogDirsTopic] = []
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
                count, position = long_count(view, position, count, 22)
            partitions: list[DescribeLogDirsPartition] = []
            for _ in range(count - 1):
                (
                    partition_index,
                    partition_size,
                    offset_lag,
                    is_future_key,
                    tags,
                ) = unpack_iqqtB(view, position)
                position += 22
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(
                    DescribeLogDirsPartition(
                        partition_index,
                        partition_size,
                        offset_lag,
                        is_future_key,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(DescribeLogDirsTopic(name, partitions))
        total_bytes, usable_bytes, is_cordoned, tags = unpack_qqtB(view, position)
        position += 18
        if tags:
            position = skip_tags(view, position, tags)
        results.append(
            DescribeLogDirsResult(
                results_error_code,
                log_dir,
                topics,
                total_bytes,
                usable_bytes,
                is_cordoned,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeLogDirsResponse(throttle_time_ms, error_code, results), position


def encode_response_v5(message: DescribeLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_log_dirs_result in results:
        log_dir = describe_log_dirs_result.log_dir
        out += pack_h(describe_log_dirs_result.error_code)
        data = log_dir.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = describe_log_dirs_result.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_log_dirs_topic in topics:
            name = describe_log_dirs_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = describe_log_dirs_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_log_dirs_partition in partitions:
                out += pack_iqqtx(
                    describe_log_dirs_partition.partition_index,
                    describe_log_dirs_partition.partition_size,
                    describe_log_dirs_partition.offset_lag,
                    describe_log_dirs_partition.is_future_key,
                )
            out.append(0)
        out += pack_qqtx(
            describe_log_dirs_result.total_bytes,
            describe_log_dirs_result.usable_bytes,
            describe_log_dirs_result.is_cordoned,
        )
    out.append(0)
    return [out]


DESCRIBE_LOG_DIRS = Api(
    35,
    "DescribeLogDirs",
    Message(
        "DescribeLogDirsRequest",
        (1, 5),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DescribeLogDirsResponse",
        (1, 5),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
            5: (decode_response_v5, encode_response_v5),
        },
    ),
)
