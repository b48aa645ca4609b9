"""StreamsGroupTargetAssignmentMember: generated from streams_group_target_assignment_member_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTargetAssignmentMemberKey(Structure):
    """StreamsGroupTargetAssignmentMember, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TaskIds(Structure):
    """Part of StreamsGroupTargetAssignmentMember."""

    subtopology_id: str
    partitions: list[int]

    def __init__(self, subtopology_id: str = "", partitions: list[int] = ABSENT) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTargetAssignmentMemberValue(Structure):
    """StreamsGroupTargetAssignmentMember, versions 0-0."""

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]

    def __init__(
        self, active_tasks: list[TaskIds] = ABSENT, standby_tasks: list[TaskIds] = ABSENT,
        warmup_tasks: list[TaskIds] = ABSENT,
    ) -> None:
        self.active_tasks = [] if active_tasks is ABSENT else active_tasks
        self.standby_tasks = [] if standby_tasks is ABSENT else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is ABSENT else warmup_tasks


def read_streams_group_target_assignment_member_key(
    reader: Reader, version: int
) -> StreamsGroupTargetAssignmentMemberKey:
    return StreamsGroupTargetAssignmentMemberKey(reader.string(), reader.string())


def write_streams_group_target_assignment_member_key(
    writer: Writer, message: StreamsGroupTargetAssignmentMemberKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_task_ids(reader: Reader, version: int) -> TaskIds:
    message = TaskIds(reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_task_ids(writer: Writer, message: TaskIds, version: int) -> None:
    writer.string(message.subtopology_id)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_streams_group_target_assignment_member_value(
    reader: Reader, version: int
) -> StreamsGroupTargetAssignmentMemberValue:
    message = StreamsGroupTargetAssignmentMemberValue(
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
    )
    reader.skip_tags()
    return message


def write_streams_group_target_assignment_member_value(
    writer: Writer, message: StreamsGroupTargetAssignmentMemberValue, version: int
) -> None:
    writer.array(message.active_tasks, write_task_ids, version)
    writer.array(message.standby_tasks, write_task_ids, version)
    writer.array(message.warmup_tasks, write_task_ids, version)
    writer.no_tags()


STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD = RecordType(
    21,
    "StreamsGroupTargetAssignmentMember",
    message_of_fields(
        "StreamsGroupTargetAssignmentMemberKey", (0, 0), NEVER,
        read_streams_group_target_assignment_member_key,
        write_streams_group_target_assignment_member_key,
    ),
    message_of_fields(
        "StreamsGroupTargetAssignmentMemberValue", (0, 0), 0,
        read_streams_group_target_assignment_member_value,
        write_streams_group_target_assignment_member_value,
    ),
)
