"""ListPartitionReassignments: generated from list_partition_reassignments.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListPartitionReassignmentsTopics(Structure):
    """Part of ListPartitionReassignments."""

    name: str
    partition_indexes: list[int]

    def __init__(self, name: str = "", partition_indexes: list[int] = ABSENT) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListPartitionReassignmentsRequest(Structure):
    """ListPartitionReassignments, versions 0-0."""

    timeout_ms: int
    topics: list[ListPartitionReassignmentsTopics] | None
    include_pins: bool

    def __init__(
        self, timeout_ms: int = 60000, topics: list[ListPartitionReassignmentsTopics] | None = None,
        include_pins: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.include_pins = include_pins


@dataclass(slots=True, init=False, repr=False, eq=False)
class OngoingPartitionReassignment(Structure):
    """Part of ListPartitionReassignments."""

    partition_index: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]

    def __init__(
        self, partition_index: int = 0, replicas: list[int] = ABSENT,
        adding_replicas: list[int] = ABSENT, removing_replicas: list[int] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is ABSENT else replicas
        self.adding_replicas = [] if adding_replicas is ABSENT else adding_replicas
        self.removing_replicas = [] if removing_replicas is ABSENT else removing_replicas


@dataclass(slots=True, init=False, repr=False, eq=False)
class OngoingTopicReassignment(Structure):
    """Part of ListPartitionReassignments."""

    name: str
    partitions: list[OngoingPartitionReassignment]

    def __init__(
        self, name: str = "", partitions: list[OngoingPartitionReassignment] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class PinnedPartition(Structure):
    """Part of ListPartitionReassignments."""

    partition_index: int
    node_id: int

    def __init__(self, partition_index: int = 0, node_id: int = 0) -> None:
        self.partition_index = partition_index
        self.node_id = node_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class PinnedTopic(Structure):
    """Part of ListPartitionReassignments."""

    name: str
    partitions: list[PinnedPartition]

    def __init__(self, name: str = "", partitions: list[PinnedPartition] = ABSENT) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListPartitionReassignmentsResponse(Structure):
    """ListPartitionReassignments, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[OngoingTopicReassignment]
    pinned_topics: list[PinnedTopic] | None

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = ABSENT,
        pinned_topics: list[PinnedTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is ABSENT else topics
        self.pinned_topics = pinned_topics


def read_list_partition_reassignments_topics(
    reader: Reader, version: int
) -> ListPartitionReassignmentsTopics:
    message = ListPartitionReassignmentsTopics(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_list_partition_reassignments_topics(
    writer: Writer, message: ListPartitionReassignmentsTopics, version: int
) -> None:
    writer.string(message.name)
    writer.values(message.partition_indexes, writer.int32)
    writer.no_tags()


def read_list_partition_reassignments_request(
    reader: Reader, version: int
) -> ListPartitionReassignmentsRequest:
    message = ListPartitionReassignmentsRequest(
        reader.int32(),
        reader.optional_array(read_list_partition_reassignments_topics, version, 3),
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.include_pins = reader.boolean()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_list_partition_reassignments_request(
    writer: Writer, message: ListPartitionReassignmentsRequest, version: int
) -> None:
    writer.int32(message.timeout_ms)
    writer.optional_array(message.topics, write_list_partition_reassignments_topics, version)
    tagged = TaggedFields()
    if message.include_pins:
        tagged.boolean(message.include_pins)
        tagged.end(1000)
    writer.tags(tagged)


def read_ongoing_partition_reassignment(
    reader: Reader, version: int
) -> OngoingPartitionReassignment:
    message = OngoingPartitionReassignment(
        reader.int32(),
        reader.values(reader.int32, 4),
        reader.values(reader.int32, 4),
        reader.values(reader.int32, 4),
    )
    reader.skip_tags()
    return message


def write_ongoing_partition_reassignment(
    writer: Writer, message: OngoingPartitionReassignment, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.values(message.replicas, writer.int32)
    writer.values(message.adding_replicas, writer.int32)
    writer.values(message.removing_replicas, writer.int32)
    writer.no_tags()


def read_ongoing_topic_reassignment(reader: Reader, version: int) -> OngoingTopicReassignment:
    message = OngoingTopicReassignment(
        reader.string(),
        reader.array(read_ongoing_partition_reassignment, version, 8),
    )
    reader.skip_tags()
    return message


def write_ongoing_topic_reassignment(
    writer: Writer, message: OngoingTopicReassignment, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_ongoing_partition_reassignment, version)
    writer.no_tags()


def read_pinned_partition(reader: Reader, version: int) -> PinnedPartition:
    message = PinnedPartition(reader.int32(), reader.int32())
    reader.skip_tags()
    return message


def write_pinned_partition(writer: Writer, message: PinnedPartition, version: int) -> None:
    writer.int32(message.partition_index)
    writer.int32(message.node_id)
    writer.no_tags()


def read_pinned_topic(reader: Reader, version: int) -> PinnedTopic:
    message = PinnedTopic(reader.string(), reader.array(read_pinned_partition, version, 9))
    reader.skip_tags()
    return message


def write_pinned_topic(writer: Writer, message: PinnedTopic, version: int) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_pinned_partition, version)
    writer.no_tags()


def read_list_partition_reassignments_response(
    reader: Reader, version: int
) -> ListPartitionReassignmentsResponse:
    message = ListPartitionReassignmentsResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.array(read_ongoing_topic_reassignment, version, 3),
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.pinned_topics = reader.optional_array(read_pinned_topic, version, 3)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_list_partition_reassignments_response(
    writer: Writer, message: ListPartitionReassignmentsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.topics, write_ongoing_topic_reassignment, version)
    tagged = TaggedFields()
    if message.pinned_topics is not None:
        tagged.array(message.pinned_topics, write_pinned_topic, version)
        tagged.end(1000)
    writer.tags(tagged)


LIST_PARTITION_REASSIGNMENTS = Api(
    46,
    "ListPartitionReassignments",
    message_of_fields(
        "ListPartitionReassignmentsRequest", (0, 0), 0, read_list_partition_reassignments_request,
        write_list_partition_reassignments_request, bounded=True,
    ),
    message_of_fields(
        "ListPartitionReassignmentsResponse", (0, 0), 0, read_list_partition_reassignments_response,
        write_list_partition_reassignments_response,
    ),
)
