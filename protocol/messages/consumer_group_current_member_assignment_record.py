"""ConsumerGroupCurrentMemberAssignment: generated from consumer_group_current_member_assignment_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupCurrentMemberAssignmentKey(Structure):
    """ConsumerGroupCurrentMemberAssignment, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ConsumerGroupCurrentMemberAssignment."""

    topic_id: bytes
    partitions: list[int]
    assignment_epochs: list[int] | None

    def __init__(
        self, topic_id: bytes = ZERO_UUID, partitions: list[int] = ABSENT,
        assignment_epochs: list[int] | None = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions
        self.assignment_epochs = [] if assignment_epochs is ABSENT else assignment_epochs


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupCurrentMemberAssignmentValue(Structure):
    """ConsumerGroupCurrentMemberAssignment, versions 0-0."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]

    def __init__(
        self, member_epoch: int = 0, previous_member_epoch: int = 0, state: int = 0,
        assigned_partitions: list[TopicPartitions] = ABSENT,
        partitions_pending_revocation: list[TopicPartitions] = ABSENT,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is ABSENT else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is ABSENT else partitions_pending_revocation


def read_consumer_group_current_member_assignment_key(
    reader: Reader, version: int
) -> ConsumerGroupCurrentMemberAssignmentKey:
    return ConsumerGroupCurrentMemberAssignmentKey(reader.string(), reader.string())


def write_consumer_group_current_member_assignment_key(
    writer: Writer, message: ConsumerGroupCurrentMemberAssignmentKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_topic_partitions(reader: Reader, version: int) -> TopicPartitions:
    message = TopicPartitions(reader.uuid(), reader.values(reader.int32, 4))
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.assignment_epochs = reader.optional_values(reader.int32, 4)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_topic_partitions(writer: Writer, message: TopicPartitions, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.values(message.partitions, writer.int32)
    tagged = TaggedFields()
    if message.assignment_epochs != []:
        tagged.optional_values(message.assignment_epochs, tagged.int32)
        tagged.end(0)
    writer.tags(tagged)


def read_consumer_group_current_member_assignment_value(
    reader: Reader, version: int
) -> ConsumerGroupCurrentMemberAssignmentValue:
    message = ConsumerGroupCurrentMemberAssignmentValue(
        reader.int32(),
        reader.int32(),
        reader.int8(),
        reader.array(read_topic_partitions, version, 18),
        reader.array(read_topic_partitions, version, 18),
    )
    reader.skip_tags()
    return message


def write_consumer_group_current_member_assignment_value(
    writer: Writer, message: ConsumerGroupCurrentMemberAssignmentValue, version: int
) -> None:
    writer.int32(message.member_epoch)
    writer.int32(message.previous_member_epoch)
    writer.int8(message.state)
    writer.array(message.assigned_partitions, write_topic_partitions, version)
    writer.array(message.partitions_pending_revocation, write_topic_partitions, version)
    writer.no_tags()


CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD = RecordType(
    8,
    "ConsumerGroupCurrentMemberAssignment",
    message_of_fields(
        "ConsumerGroupCurrentMemberAssignmentKey", (0, 0), NEVER,
        read_consumer_group_current_member_assignment_key,
        write_consumer_group_current_member_assignment_key,
    ),
    message_of_fields(
        "ConsumerGroupCurrentMemberAssignmentValue", (0, 0), 0,
        read_consumer_group_current_member_assignment_value,
        write_consumer_group_current_member_assignment_value,
    ),
)
