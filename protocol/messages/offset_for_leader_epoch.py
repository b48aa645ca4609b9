"""OffsetForLeaderEpoch: generated from offset_for_leader_epoch.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderPartition(Structure):
    """Part of OffsetForLeaderEpoch."""

    partition: int
    current_leader_epoch: int
    leader_epoch: int

    def __init__(
        self, partition: int = 0, current_leader_epoch: int = -1, leader_epoch: int = 0
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderTopic(Structure):
    """Part of OffsetForLeaderEpoch."""

    topic: str
    partitions: list[OffsetForLeaderPartition]

    def __init__(
        self, topic: str = "", partitions: list[OffsetForLeaderPartition] = ABSENT
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderEpochRequest(Structure):
    """OffsetForLeaderEpoch, versions 2-4."""

    replica_id: int
    topics: list[OffsetForLeaderTopic]

    def __init__(self, replica_id: int = -2, topics: list[OffsetForLeaderTopic] = ABSENT) -> None:
        self.replica_id = replica_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class EpochEndOffset(Structure):
    """Part of OffsetForLeaderEpoch."""

    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int

    def __init__(
        self, error_code: int = 0, partition: int = 0, leader_epoch: int = -1, end_offset: int = -1
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderTopicResult(Structure):
    """Part of OffsetForLeaderEpoch."""

    topic: str
    partitions: list[EpochEndOffset]

    def __init__(self, topic: str = "", partitions: list[EpochEndOffset] = ABSENT) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetForLeaderEpochResponse(Structure):
    """OffsetForLeaderEpoch, versions 2-4."""

    throttle_time_ms: int
    topics: list[OffsetForLeaderTopicResult]

    def __init__(
        self, throttle_time_ms: int = 0, topics: list[OffsetForLeaderTopicResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def read_offset_for_leader_partition(reader: Reader, version: int) -> OffsetForLeaderPartition:
    message = OffsetForLeaderPartition(reader.int32(), reader.int32(), reader.int32())
    reader.skip_tags()
    return message


def write_offset_for_leader_partition(
    writer: Writer, message: OffsetForLeaderPartition, version: int
) -> None:
    writer.int32(message.partition)
    writer.int32(message.current_leader_epoch)
    writer.int32(message.leader_epoch)
    writer.no_tags()


def read_offset_for_leader_topic(reader: Reader, version: int) -> OffsetForLeaderTopic:
    message = OffsetForLeaderTopic(
        reader.string(),
        reader.array(read_offset_for_leader_partition, version, 12),
    )
    reader.skip_tags()
    return message


def write_offset_for_leader_topic(
    writer: Writer, message: OffsetForLeaderTopic, version: int
) -> None:
    writer.string(message.topic)
    writer.array(message.partitions, write_offset_for_leader_partition, version)
    writer.no_tags()


def read_offset_for_leader_epoch_request(
    reader: Reader, version: int
) -> OffsetForLeaderEpochRequest:
    message = OffsetForLeaderEpochRequest(
        reader.int32() if version >= 3 else -2,
        reader.array(read_offset_for_leader_topic, version, 3),
    )
    reader.skip_tags()
    return message


def write_offset_for_leader_epoch_request(
    writer: Writer, message: OffsetForLeaderEpochRequest, version: int
) -> None:
    if version >= 3:
        writer.int32(message.replica_id)
    writer.array(message.topics, write_offset_for_leader_topic, version)
    writer.no_tags()


def read_epoch_end_offset(reader: Reader, version: int) -> EpochEndOffset:
    message = EpochEndOffset(reader.int16(), reader.int32(), reader.int32(), reader.int64())
    reader.skip_tags()
    return message


def write_epoch_end_offset(writer: Writer, message: EpochEndOffset, version: int) -> None:
    writer.int16(message.error_code)
    writer.int32(message.partition)
    writer.int32(message.leader_epoch)
    writer.int64(message.end_offset)
    writer.no_tags()


def read_offset_for_leader_topic_result(reader: Reader, version: int) -> OffsetForLeaderTopicResult:
    message = OffsetForLeaderTopicResult(
        reader.string(),
        reader.array(read_epoch_end_offset, version, 18),
    )
    reader.skip_tags()
    return message


def write_offset_for_leader_topic_result(
    writer: Writer, message: OffsetForLeaderTopicResult, version: int
) -> None:
    writer.string(message.topic)
    writer.array(message.partitions, write_epoch_end_offset, version)
    writer.no_tags()


def read_offset_for_leader_epoch_response(
    reader: Reader, version: int
) -> OffsetForLeaderEpochResponse:
    message = OffsetForLeaderEpochResponse(
        reader.int32(),
        reader.array(read_offset_for_leader_topic_result, version, 3),
    )
    reader.skip_tags()
    return message


def write_offset_for_leader_epoch_response(
    writer: Writer, message: OffsetForLeaderEpochResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_offset_for_leader_topic_result, version)
    writer.no_tags()


OFFSET_FOR_LEADER_EPOCH = Api(
    23,
    "OffsetForLeaderEpoch",
    message_of_fields(
        "OffsetForLeaderEpochRequest", (2, 4), 4, read_offset_for_leader_epoch_request,
        write_offset_for_leader_epoch_request, bounded=True,
    ),
    message_of_fields(
        "OffsetForLeaderEpochResponse", (2, 4), 4, read_offset_for_leader_epoch_response,
        write_offset_for_leader_epoch_response,
    ),
)
