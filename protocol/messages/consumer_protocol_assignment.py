"""ConsumerProtocolAssignment: generated from consumer_protocol_assignment.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartition(Structure):
    """Part of ConsumerProtocolAssignment."""

    topic: str
    partitions: list[int]

    def __init__(self, topic: str = "", partitions: list[int] = ABSENT) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerProtocolAssignment(Structure):
    """ConsumerProtocolAssignment, versions 0-3."""

    assigned_partitions: list[TopicPartition]
    user_data: bytes | None

    def __init__(
        self, assigned_partitions: list[TopicPartition] = ABSENT, user_data: bytes | None = None
    ) -> None:
        self.assigned_partitions = [] if assigned_partitions is ABSENT else assigned_partitions
        self.user_data = user_data


def read_topic_partition(reader: Reader, version: int) -> TopicPartition:
    return TopicPartition(reader.string(), reader.values(reader.int32, 4))


def write_topic_partition(writer: Writer, message: TopicPartition, version: int) -> None:
    writer.string(message.topic)
    writer.values(message.partitions, writer.int32)


def read_consumer_protocol_assignment(reader: Reader, version: int) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment(
        reader.array(read_topic_partition, version, 6),
        reader.optional_blob(),
    )


def write_consumer_protocol_assignment(
    writer: Writer, message: ConsumerProtocolAssignment, version: int
) -> None:
    writer.array(message.assigned_partitions, write_topic_partition, version)
    writer.optional_blob(message.user_data)


CONSUMER_PROTOCOL_ASSIGNMENT = message_of_fields(
    "ConsumerProtocolAssignment", (0, 3), NEVER, read_consumer_protocol_assignment,
    write_consumer_protocol_assignment,
)
