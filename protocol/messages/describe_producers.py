"""DescribeProducers: generated from describe_producers.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicRequest(Structure):
    """Part of DescribeProducers."""

    name: str
    partition_indexes: list[int]

    def __init__(self, name: str = "", partition_indexes: list[int] = ABSENT) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeProducersRequest(Structure):
    """DescribeProducers, versions 0-0."""

    topics: list[TopicRequest]

    def __init__(self, topics: list[TopicRequest] = ABSENT) -> None:
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class ProducerState(Structure):
    """Part of DescribeProducers."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int

    def __init__(
        self, producer_id: int = 0, producer_epoch: int = 0, last_sequence: int = -1,
        last_timestamp: int = -1, coordinator_epoch: int = 0, current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionResponse(Structure):
    """Part of DescribeProducers."""

    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: list[ProducerState]

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, error_message: str | None = None,
        active_producers: list[ProducerState] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = [] if active_producers is ABSENT else active_producers


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicResponse(Structure):
    """Part of DescribeProducers."""

    name: str
    partitions: list[PartitionResponse]

    def __init__(self, name: str = "", partitions: list[PartitionResponse] = ABSENT) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeProducersResponse(Structure):
    """DescribeProducers, versions 0-0."""

    throttle_time_ms: int
    topics: list[TopicResponse]

    def __init__(self, throttle_time_ms: int = 0, topics: list[TopicResponse] = ABSENT) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def read_topic_request(reader: Reader, version: int) -> TopicRequest:
    message = TopicRequest(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_request(writer: Writer, message: TopicRequest, version: int) -> None:
    writer.string(message.name)
    writer.values(message.partition_indexes, writer.int32)
    writer.no_tags()


def read_describe_producers_request(reader: Reader, version: int) -> DescribeProducersRequest:
    message = DescribeProducersRequest(reader.array(read_topic_request, version, 3))
    reader.skip_tags()
    return message


def write_describe_producers_request(
    writer: Writer, message: DescribeProducersRequest, version: int
) -> None:
    writer.array(message.topics, write_topic_request, version)
    writer.no_tags()


def read_producer_state(reader: Reader, version: int) -> ProducerState:
    message = ProducerState(
        reader.int64(),
        reader.int32(),
        reader.int32(),
        reader.int64(),
        reader.int32(),
        reader.int64(),
    )
    reader.skip_tags()
    return message


def write_producer_state(writer: Writer, message: ProducerState, version: int) -> None:
    writer.int64(message.producer_id)
    writer.int32(message.producer_epoch)
    writer.int32(message.last_sequence)
    writer.int64(message.last_timestamp)
    writer.int32(message.coordinator_epoch)
    writer.int64(message.current_txn_start_offset)
    writer.no_tags()


def read_partition_response(reader: Reader, version: int) -> PartitionResponse:
    message = PartitionResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_producer_state, version, 37),
    )
    reader.skip_tags()
    return message


def write_partition_response(writer: Writer, message: PartitionResponse, version: int) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.active_producers, write_producer_state, version)
    writer.no_tags()


def read_topic_response(reader: Reader, version: int) -> TopicResponse:
    message = TopicResponse(reader.string(), reader.array(read_partition_response, version, 9))
    reader.skip_tags()
    return message


def write_topic_response(writer: Writer, message: TopicResponse, version: int) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_partition_response, version)
    writer.no_tags()


def read_describe_producers_response(reader: Reader, version: int) -> DescribeProducersResponse:
    message = DescribeProducersResponse(
        reader.int32(),
        reader.array(read_topic_response, version, 3),
    )
    reader.skip_tags()
    return message


def write_describe_producers_response(
    writer: Writer, message: DescribeProducersResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_topic_response, version)
    writer.no_tags()


DESCRIBE_PRODUCERS = Api(
    61,
    "DescribeProducers",
    message_of_fields(
        "DescribeProducersRequest", (0, 0), 0, read_describe_producers_request,
        write_describe_producers_request, bounded=True,
    ),
    message_of_fields(
        "DescribeProducersResponse", (0, 0), 0, read_describe_producers_response,
        write_describe_producers_response,
    ),
)
