"""DescribeLogDirs: generated from describe_log_dirs.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribableLogDirTopic(Structure):
    """Part of DescribeLogDirs."""

    topic: str
    partitions: list[int]

    def __init__(self, topic: str = "", partitions: list[int] = ABSENT) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeLogDirsRequest(Structure):
    """DescribeLogDirs, versions 1-5."""

    topics: list[DescribableLogDirTopic] | None

    def __init__(self, topics: list[DescribableLogDirTopic] | None = ABSENT) -> None:
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeLogDirsPartition(Structure):
    """Part of DescribeLogDirs."""

    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool

    def __init__(
        self, partition_index: int = 0, partition_size: int = 0, offset_lag: int = 0,
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

    def __init__(self, name: str = "", partitions: list[DescribeLogDirsPartition] = ABSENT) -> None:
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
        self, error_code: int = 0, log_dir: str = "", topics: list[DescribeLogDirsTopic] = ABSENT,
        total_bytes: int = -1, usable_bytes: int = -1, is_cordoned: bool = False,
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
        self, throttle_time_ms: int = 0, error_code: int = 0,
        results: list[DescribeLogDirsResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = [] if results is ABSENT else results


def read_describable_log_dir_topic(reader: Reader, version: int) -> DescribableLogDirTopic:
    message = DescribableLogDirTopic(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_describable_log_dir_topic(
    writer: Writer, message: DescribableLogDirTopic, version: int
) -> None:
    writer.string(message.topic)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_describe_log_dirs_request(reader: Reader, version: int) -> DescribeLogDirsRequest:
    message = DescribeLogDirsRequest(
        reader.optional_array(read_describable_log_dir_topic, version, 3),
    )
    reader.skip_tags()
    return message


def write_describe_log_dirs_request(
    writer: Writer, message: DescribeLogDirsRequest, version: int
) -> None:
    writer.optional_array(message.topics, write_describable_log_dir_topic, version)
    writer.no_tags()


def read_describe_log_dirs_partition(reader: Reader, version: int) -> DescribeLogDirsPartition:
    message = DescribeLogDirsPartition(
        reader.int32(),
        reader.int64(),
        reader.int64(),
        reader.boolean(),
    )
    reader.skip_tags()
    return message


def write_describe_log_dirs_partition(
    writer: Writer, message: DescribeLogDirsPartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.partition_size)
    writer.int64(message.offset_lag)
    writer.boolean(message.is_future_key)
    writer.no_tags()


def read_describe_log_dirs_topic(reader: Reader, version: int) -> DescribeLogDirsTopic:
    message = DescribeLogDirsTopic(
        reader.string(),
        reader.array(read_describe_log_dirs_partition, version, 21),
    )
    reader.skip_tags()
    return message


def write_describe_log_dirs_topic(
    writer: Writer, message: DescribeLogDirsTopic, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_describe_log_dirs_partition, version)
    writer.no_tags()


def read_describe_log_dirs_result(reader: Reader, version: int) -> DescribeLogDirsResult:
    message = DescribeLogDirsResult(
        reader.int16(),
        reader.string(),
        reader.array(read_describe_log_dirs_topic, version, 3),
        reader.int64() if version >= 4 else -1,
        reader.int64() if version >= 4 else -1,
        reader.boolean() if version >= 5 else False,
    )
    reader.skip_tags()
    return message


def write_describe_log_dirs_result(
    writer: Writer, message: DescribeLogDirsResult, version: int
) -> None:
    writer.int16(message.error_code)
    writer.string(message.log_dir)
    writer.array(message.topics, write_describe_log_dirs_topic, version)
    if version >= 4:
        writer.int64(message.total_bytes)
    if version >= 4:
        writer.int64(message.usable_bytes)
    if version >= 5:
        writer.boolean(message.is_cordoned)
    writer.no_tags()


def read_describe_log_dirs_response(reader: Reader, version: int) -> DescribeLogDirsResponse:
    message = DescribeLogDirsResponse(
        reader.int32(),
        reader.int16() if version >= 3 else 0,
        reader.array(read_describe_log_dirs_result, version, 5),
    )
    reader.skip_tags()
    return message


def write_describe_log_dirs_response(
    writer: Writer, message: DescribeLogDirsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    if version >= 3:
        writer.int16(message.error_code)
    writer.array(message.results, write_describe_log_dirs_result, version)
    writer.no_tags()


DESCRIBE_LOG_DIRS = Api(
    35,
    "DescribeLogDirs",
    message_of_fields(
        "DescribeLogDirsRequest", (1, 5), 2, read_describe_log_dirs_request,
        write_describe_log_dirs_request, bounded=True,
    ),
    message_of_fields(
        "DescribeLogDirsResponse", (1, 5), 2, read_describe_log_dirs_response,
        write_describe_log_dirs_response,
    ),
)
