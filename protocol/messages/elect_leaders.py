"""ElectLeaders: generated from elect_leaders.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ElectLeaders."""

    topic: str
    partitions: list[int]

    def __init__(self, topic: str = "", partitions: list[int] = ABSENT) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ElectLeadersRequest(Structure):
    """ElectLeaders, versions 0-2."""

    election_type: int
    topic_partitions: list[TopicPartitions] | None
    timeout_ms: int

    def __init__(
        self, election_type: int = 0, topic_partitions: list[TopicPartitions] | None = ABSENT,
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
        self, partition_id: int = 0, error_code: int = 0, error_message: str | None = ""
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReplicaElectionResult(Structure):
    """Part of ElectLeaders."""

    topic: str
    partition_result: list[PartitionResult]

    def __init__(self, topic: str = "", partition_result: list[PartitionResult] = ABSENT) -> None:
        self.topic = topic
        self.partition_result = [] if partition_result is ABSENT else partition_result


@dataclass(slots=True, init=False, repr=False, eq=False)
class ElectLeadersResponse(Structure):
    """ElectLeaders, versions 0-2."""

    throttle_time_ms: int
    error_code: int
    replica_election_results: list[ReplicaElectionResult]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0,
        replica_election_results: list[ReplicaElectionResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = [] if replica_election_results is ABSENT else replica_election_results


def read_topic_partitions(reader: Reader, version: int) -> TopicPartitions:
    message = TopicPartitions(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_partitions(writer: Writer, message: TopicPartitions, version: int) -> None:
    writer.string(message.topic)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_elect_leaders_request(reader: Reader, version: int) -> ElectLeadersRequest:
    message = ElectLeadersRequest(
        reader.int8() if version >= 1 else 0,
        reader.optional_array(read_topic_partitions, version, 3),
        reader.int32(),
    )
    reader.skip_tags()
    return message


def write_elect_leaders_request(writer: Writer, message: ElectLeadersRequest, version: int) -> None:
    if version >= 1:
        writer.int8(message.election_type)
    writer.optional_array(message.topic_partitions, write_topic_partitions, version)
    writer.int32(message.timeout_ms)
    writer.no_tags()


def read_partition_result(reader: Reader, version: int) -> PartitionResult:
    message = PartitionResult(reader.int32(), reader.int16(), reader.optional_string())
    reader.skip_tags()
    return message


def write_partition_result(writer: Writer, message: PartitionResult, version: int) -> None:
    writer.int32(message.partition_id)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.no_tags()


def read_replica_election_result(reader: Reader, version: int) -> ReplicaElectionResult:
    message = ReplicaElectionResult(
        reader.string(),
        reader.array(read_partition_result, version, 8),
    )
    reader.skip_tags()
    return message


def write_replica_election_result(
    writer: Writer, message: ReplicaElectionResult, version: int
) -> None:
    writer.string(message.topic)
    writer.array(message.partition_result, write_partition_result, version)
    writer.no_tags()


def read_elect_leaders_response(reader: Reader, version: int) -> ElectLeadersResponse:
    message = ElectLeadersResponse(
        reader.int32(),
        reader.int16() if version >= 1 else 0,
        reader.array(read_replica_election_result, version, 3),
    )
    reader.skip_tags()
    return message


def write_elect_leaders_response(
    writer: Writer, message: ElectLeadersResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    if version >= 1:
        writer.int16(message.error_code)
    writer.array(message.replica_election_results, write_replica_election_result, version)
    writer.no_tags()


ELECT_LEADERS = Api(
    43,
    "ElectLeaders",
    message_of_fields(
        "ElectLeadersRequest", (0, 2), 2, read_elect_leaders_request, write_elect_leaders_request,
        bounded=True,
    ),
    message_of_fields(
        "ElectLeadersResponse", (0, 2), 2, read_elect_leaders_response, write_elect_leaders_response
    ),
)
