"""ShareGroupCurrentMemberAssignment: generated from share_group_current_member_assignment_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupCurrentMemberAssignmentKey(Structure):
    """ShareGroupCurrentMemberAssignment, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ShareGroupCurrentMemberAssignment."""

    topic_id: bytes
    partitions: list[int]

    def __init__(self, topic_id: bytes = ZERO_UUID, partitions: list[int] = ABSENT) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupCurrentMemberAssignmentValue(Structure):
    """ShareGroupCurrentMemberAssignment, versions 0-0."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[TopicPartitions]

    def __init__(
        self, member_epoch: int = 0, previous_member_epoch: int = 0, state: int = 0,
        assigned_partitions: list[TopicPartitions] = ABSENT,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is ABSENT else assigned_partitions


def read_share_group_current_member_assignment_key(
    reader: Reader, version: int
) -> ShareGroupCurrentMemberAssignmentKey:
    return ShareGroupCurrentMemberAssignmentKey(reader.string(), reader.string())


def write_share_group_current_member_assignment_key(
    writer: Writer, message: ShareGroupCurrentMemberAssignmentKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_topic_partitions(reader: Reader, version: int) -> TopicPartitions:
    message = TopicPartitions(reader.uuid(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_partitions(writer: Writer, message: TopicPartitions, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_share_group_current_member_assignment_value(
    reader: Reader, version: int
) -> ShareGroupCurrentMemberAssignmentValue:
    message = ShareGroupCurrentMemberAssignmentValue(
        reader.int32(),
        reader.int32(),
        reader.int8(),
        reader.array(read_topic_partitions, version, 18),
    )
    reader.skip_tags()
    return message


def write_share_group_current_member_assignment_value(
    writer: Writer, message: ShareGroupCurrentMemberAssignmentValue, version: int
) -> None:
    writer.int32(message.member_epoch)
    writer.int32(message.previous_member_epoch)
    writer.int8(message.state)
    writer.array(message.assigned_partitions, write_topic_partitions, version)
    writer.no_tags()


SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD = RecordType(
    14,
    "ShareGroupCurrentMemberAssignment",
    message_of_fields(
        "ShareGroupCurrentMemberAssignmentKey", (0, 0), NEVER,
        read_share_group_current_member_assignment_key, write_share_group_current_member_assignment_key,
    ),
    message_of_fields(
        "ShareGroupCurrentMemberAssignmentValue", (0, 0), 0,
        read_share_group_current_member_assignment_value,
        write_share_group_current_member_assignment_value,
    ),
)
