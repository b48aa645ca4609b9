"""AlterReplicaLogDirs: generated from alter_replica_log_dirs.schema by protocol/generate. Do not edit."""

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
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihx = Struct(">ihx").pack
pack_ii = Struct(">ii").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterReplicaLogDirTopic(Structure):
    """Part of AlterReplicaLogDirs."""

    name: str
    partitions: list[int]

    def __init__(
        self,
        name: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterReplicaLogDir(Structure):
    """Part of AlterReplicaLogDirs."""

    path: str
    topics: list[AlterReplicaLogDirTopic]

    def __init__(
        self,
        path: str = "",
        topics: list[AlterReplicaLogDirTopic] = ABSENT,
    ) -> None:
        self.path = path
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterReplicaLogDirsRequest(Structure):
    """AlterReplicaLogDirs, versions 1-2."""

    dirs: list[AlterReplicaLogDir]

    def __init__(
        self,
        dirs: list[AlterReplicaLogDir] = ABSENT,
    ) -> None:
        self.dirs = [] if dirs is ABSENT else dirs


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterReplicaLogDirPartitionResult(Structure):
    """Part of AlterReplicaLogDirs."""

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
class AlterReplicaLogDirTopicResult(Structure):
    """Part of AlterReplicaLogDirs."""

    topic_name: str
    partitions: list[AlterReplicaLogDirPartitionResult]

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] = ABSENT,
    ) -> None:
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterReplicaLogDirsResponse(Structure):
    """AlterReplicaLogDirs, versions 1-2."""

    throttle_time_ms: int
    results: list[AlterReplicaLogDirTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def decode_request_v1(view: memoryview, position: int) -> tuple[AlterReplicaLogDirsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    dirs: list[AlterReplicaLogDir] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("AlterReplicaLogDir.path: negative length")
        end = position + size
        path = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        topics: list[AlterReplicaLogDirTopic] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("AlterReplicaLogDirTopic.name: negative length")
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
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            topics.append(AlterReplicaLogDirTopic(name, partitions))
        dirs.append(AlterReplicaLogDir(path, topics))
    return AlterReplicaLogDirsRequest(dirs), position


def encode_request_v1(message: AlterReplicaLogDirsRequest, out: bytearray) -> Chunks:
    dirs = message.dirs
    out += pack_i(len(dirs))
    for alter_replica_log_dir in dirs:
        path = alter_replica_log_dir.path
        data = path.encode()
        out += pack_h(len(data))
        out += data
        topics = alter_replica_log_dir.topics
        out += pack_i(len(topics))
        for alter_replica_log_dir_topic in topics:
            name = alter_replica_log_dir_topic.name
            data = name.encode()
            out += pack_h(len(data))
            out += data
            partitions = alter_replica_log_dir_topic.partitions
            out += pack_i(len(partitions))
            out += pack(f">{len(partitions)}i", *partitions)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[AlterReplicaLogDirsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    dirs: list[AlterReplicaLogDir] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        path = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        topics: list[AlterReplicaLogDirTopic] = []
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
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(AlterReplicaLogDirTopic(name, partitions))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        dirs.append(AlterReplicaLogDir(path, topics))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterReplicaLogDirsRequest(dirs), position


def encode_request_v2(message: AlterReplicaLogDirsRequest, out: bytearray) -> Chunks:
    dirs = message.dirs
    size = len(dirs) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for alter_replica_log_dir in dirs:
        path = alter_replica_log_dir.path
        data = path.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topics = alter_replica_log_dir.topics
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for alter_replica_log_dir_topic in topics:
            name = alter_replica_log_dir_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = alter_replica_log_dir_topic.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partitions)}i", *partitions)
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[AlterReplicaLogDirsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    results: list[AlterReplicaLogDirTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("AlterReplicaLogDirTopicResult.topic_name: negative length")
        end = position + size
        topic_name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        partitions: list[AlterReplicaLogDirPartitionResult] = []
        for _ in range(count):
            partition_index, error_code = unpack_ih(view, position)
            position += 6
            partitions.append(AlterReplicaLogDirPartitionResult(partition_index, error_code))
        results.append(AlterReplicaLogDirTopicResult(topic_name, partitions))
    return AlterReplicaLogDirsResponse(throttle_time_ms, results), position


def encode_response_v1(message: AlterReplicaLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for alter_replica_log_dir_topic_result in results:
        topic_name = alter_replica_log_dir_topic_result.topic_name
        data = topic_name.encode()
        out += pack_h(len(data))
        out += data
        partitions = alter_replica_log_dir_topic_result.partitions
        out += pack_i(len(partitions))
        for alter_replica_log_dir_partition_result in partitions:
            out += pack_ih(
                alter_replica_log_dir_partition_result.partition_index,
                alter_replica_log_dir_partition_result.error_code,
            )
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[AlterReplicaLogDirsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    results: list[AlterReplicaLogDirTopicResult] = []
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
            count, position = long_count(view, position, count, 7)
        partitions: list[AlterReplicaLogDirPartitionResult] = []
        for _ in range(count - 1):
            partition_index, error_code, tags = unpack_ihB(view, position)
            position += 7
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(AlterReplicaLogDirPartitionResult(partition_index, error_code))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(AlterReplicaLogDirTopicResult(topic_name, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterReplicaLogDirsResponse(throttle_time_ms, results), position


def encode_response_v2(message: AlterReplicaLogDirsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for alter_replica_log_dir_topic_result in results:
        topic_name = alter_replica_log_dir_topic_result.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = alter_replica_log_dir_topic_result.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for alter_replica_log_dir_partition_result in partitions:
            out += pack_ihx(
                alter_replica_log_dir_partition_result.partition_index,
                alter_replica_log_dir_partition_result.error_code,
            )
        out.append(0)
    out.append(0)
    return [out]


ALTER_REPLICA_LOG_DIRS = Api(
    34,
    "AlterReplicaLogDirs",
    Message(
        "AlterReplicaLogDirsRequest",
        (1, 2),
        2,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "AlterReplicaLogDirsResponse",
        (1, 2),
        2,
        {
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
