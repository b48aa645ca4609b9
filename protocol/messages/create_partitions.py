"""CreatePartitions: generated from create_partitions.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsAssignment(Structure):
    """Part of CreatePartitions."""

    broker_ids: list[int]

    def __init__(self, broker_ids: list[int] = ABSENT) -> None:
        self.broker_ids = [] if broker_ids is ABSENT else broker_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatePartitionsTopic(Structure):
    """Part of CreatePartitions."""

    name: str
    count: int
    assignments: list[CreatePartitionsAssignment] | None

    def __init__(
        self, name: str = "", count: int = 0,
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
        self, topics: list[CreatePartitionsTopic] = ABSENT, timeout_ms: int = 0,
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
        self, name: str = "", error_code: int = 0, error_message: str | None = None
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
        self, throttle_time_ms: int = 0, results: list[CreatePartitionsTopicResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def read_create_partitions_assignment(reader: Reader, version: int) -> CreatePartitionsAssignment:
    message = CreatePartitionsAssignment(reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_create_partitions_assignment(
    writer: Writer, message: CreatePartitionsAssignment, version: int
) -> None:
    writer.values(message.broker_ids, writer.int32)
    writer.no_tags()


def read_create_partitions_topic(reader: Reader, version: int) -> CreatePartitionsTopic:
    message = CreatePartitionsTopic(
        reader.string(),
        reader.int32(),
        reader.optional_array(read_create_partitions_assignment, version, 2),
    )
    reader.skip_tags()
    return message


def write_create_partitions_topic(
    writer: Writer, message: CreatePartitionsTopic, version: int
) -> None:
    writer.string(message.name)
    writer.int32(message.count)
    writer.optional_array(message.assignments, write_create_partitions_assignment, version)
    writer.no_tags()


def read_create_partitions_request(reader: Reader, version: int) -> CreatePartitionsRequest:
    message = CreatePartitionsRequest(
        reader.array(read_create_partitions_topic, version, 7),
        reader.int32(),
        reader.boolean(),
    )
    reader.skip_tags()
    return message


def write_create_partitions_request(
    writer: Writer, message: CreatePartitionsRequest, version: int
) -> None:
    writer.array(message.topics, write_create_partitions_topic, version)
    writer.int32(message.timeout_ms)
    writer.boolean(message.validate_only)
    writer.no_tags()


def read_create_partitions_topic_result(
    reader: Reader, version: int
) -> CreatePartitionsTopicResult:
    message = CreatePartitionsTopicResult(reader.string(), reader.int16(), reader.optional_string())
    reader.skip_tags()
    return message


def write_create_partitions_topic_result(
    writer: Writer, message: CreatePartitionsTopicResult, version: int
) -> None:
    writer.string(message.name)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_create_partitions_response(reader: Reader, version: int) -> CreatePartitionsResponse:
    message = CreatePartitionsResponse(
        reader.int32(),
        reader.array(read_create_partitions_topic_result, version, 5),
    )
    reader.skip_tags()
    return message


def write_create_partitions_response(
    writer: Writer, message: CreatePartitionsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.results, write_create_partitions_topic_result, version)
    writer.no_tags()


CREATE_PARTITIONS = Api(
    37,
    "CreatePartitions",
    message_of_fields(
        "CreatePartitionsRequest", (0, 3), 2, read_create_partitions_request,
        write_create_partitions_request, bounded=True,
    ),
    message_of_fields(
        "CreatePartitionsResponse", (0, 3), 2, read_create_partitions_response,
        write_create_partitions_response,
    ),
)
