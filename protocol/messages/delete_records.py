"""DeleteRecords: generated from delete_records.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsPartition(Structure):
    """Part of DeleteRecords."""

    partition_index: int
    offset: int

    def __init__(self, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index = partition_index
        self.offset = offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsTopic(Structure):
    """Part of DeleteRecords."""

    name: str
    partitions: list[DeleteRecordsPartition]

    def __init__(self, name: str = "", partitions: list[DeleteRecordsPartition] = ABSENT) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsRequest(Structure):
    """DeleteRecords, versions 0-2."""

    topics: list[DeleteRecordsTopic]
    timeout_ms: int

    def __init__(self, topics: list[DeleteRecordsTopic] = ABSENT, timeout_ms: int = 0) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsPartitionResult(Structure):
    """Part of DeleteRecords."""

    partition_index: int
    low_watermark: int
    error_code: int

    def __init__(
        self, partition_index: int = 0, low_watermark: int = 0, error_code: int = 0
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsTopicResult(Structure):
    """Part of DeleteRecords."""

    name: str
    partitions: list[DeleteRecordsPartitionResult]

    def __init__(
        self, name: str = "", partitions: list[DeleteRecordsPartitionResult] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteRecordsResponse(Structure):
    """DeleteRecords, versions 0-2."""

    throttle_time_ms: int
    topics: list[DeleteRecordsTopicResult]

    def __init__(
        self, throttle_time_ms: int = 0, topics: list[DeleteRecordsTopicResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def read_delete_records_partition(reader: Reader, version: int) -> DeleteRecordsPartition:
    message = DeleteRecordsPartition(reader.int32(), reader.int64())
    reader.skip_tags()
    return message


def write_delete_records_partition(
    writer: Writer, message: DeleteRecordsPartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.offset)
    writer.no_tags()


def read_delete_records_topic(reader: Reader, version: int) -> DeleteRecordsTopic:
    message = DeleteRecordsTopic(
        reader.string(),
        reader.array(read_delete_records_partition, version, 12),
    )
    reader.skip_tags()
    return message


def write_delete_records_topic(writer: Writer, message: DeleteRecordsTopic, version: int) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_delete_records_partition, version)
    writer.no_tags()


def read_delete_records_request(reader: Reader, version: int) -> DeleteRecordsRequest:
    message = DeleteRecordsRequest(
        reader.array(read_delete_records_topic, version, 3),
        reader.int32(),
    )
    reader.skip_tags()
    return message


def write_delete_records_request(
    writer: Writer, message: DeleteRecordsRequest, version: int
) -> None:
    writer.array(message.topics, write_delete_records_topic, version)
    writer.int32(message.timeout_ms)
    writer.no_tags()


def read_delete_records_partition_result(
    reader: Reader, version: int
) -> DeleteRecordsPartitionResult:
    message = DeleteRecordsPartitionResult(reader.int32(), reader.int64(), reader.int16())
    reader.skip_tags()
    return message


def write_delete_records_partition_result(
    writer: Writer, message: DeleteRecordsPartitionResult, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int64(message.low_watermark)
    writer.int16(message.error_code)
    writer.no_tags()


def read_delete_records_topic_result(reader: Reader, version: int) -> DeleteRecordsTopicResult:
    message = DeleteRecordsTopicResult(
        reader.string(),
        reader.array(read_delete_records_partition_result, version, 14),
    )
    reader.skip_tags()
    return message


def write_delete_records_topic_result(
    writer: Writer, message: DeleteRecordsTopicResult, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_delete_records_partition_result, version)
    writer.no_tags()


def read_delete_records_response(reader: Reader, version: int) -> DeleteRecordsResponse:
    message = DeleteRecordsResponse(
        reader.int32(),
        reader.array(read_delete_records_topic_result, version, 3),
    )
    reader.skip_tags()
    return message


def write_delete_records_response(
    writer: Writer, message: DeleteRecordsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_delete_records_topic_result, version)
    writer.no_tags()


DELETE_RECORDS = Api(
    21,
    "DeleteRecords",
    message_of_fields(
        "DeleteRecordsRequest", (0, 2), 2, read_delete_records_request, write_delete_records_request,
        bounded=True,
    ),
    message_of_fields(
        "DeleteRecordsResponse", (0, 2), 2, read_delete_records_response, write_delete_records_response
    ),
)
