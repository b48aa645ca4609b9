"""ConsumerGroupTargetAssignmentMember: generated from consumer_group_target_assignment_member_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMemberKey(Structure):
    """ConsumerGroupTargetAssignmentMember, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartition(Structure):
    """Part of ConsumerGroupTargetAssignmentMember."""

    topic_id: bytes
    partitions: list[int]

    def __init__(self, topic_id: bytes = ZERO_UUID, partitions: list[int] = ABSENT) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMemberValue(Structure):
    """ConsumerGroupTargetAssignmentMember, versions 0-0."""

    topic_partitions: list[TopicPartition]

    def __init__(self, topic_partitions: list[TopicPartition] = ABSENT) -> None:
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions


def read_consumer_group_target_assignment_member_key(
    reader: Reader, version: int
) -> ConsumerGroupTargetAssignmentMemberKey:
    return ConsumerGroupTargetAssignmentMemberKey(reader.string(), reader.string())


def write_consumer_group_target_assignment_member_key(
    writer: Writer, message: ConsumerGroupTargetAssignmentMemberKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_topic_partition(reader: Reader, version: int) -> TopicPartition:
    message = TopicPartition(reader.uuid(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_partition(writer: Writer, message: TopicPartition, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_consumer_group_target_assignment_member_value(
    reader: Reader, version: int
) -> ConsumerGroupTargetAssignmentMemberValue:
    message = ConsumerGroupTargetAssignmentMemberValue(
        reader.array(read_topic_partition, version, 18),
    )
    reader.skip_tags()
    return message


def write_consumer_group_target_assignment_member_value(
    writer: Writer, message: ConsumerGroupTargetAssignmentMemberValue, version: int
) -> None:
    writer.array(message.topic_partitions, write_topic_partition, version)
    writer.no_tags()


CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD = RecordType(
    7,
    "ConsumerGroupTargetAssignmentMember",
    message_of_fields(
        "ConsumerGroupTargetAssignmentMemberKey", (0, 0), NEVER,
        read_consumer_group_target_assignment_member_key,
        write_consumer_group_target_assignment_member_key,
    ),
    message_of_fields(
        "ConsumerGroupTargetAssignmentMemberValue", (0, 0), 0,
        read_consumer_group_target_assignment_member_value,
        write_consumer_group_target_assignment_member_value,
    ),
)
