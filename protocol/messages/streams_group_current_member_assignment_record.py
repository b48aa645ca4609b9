"""StreamsGroupCurrentMemberAssignment: generated from streams_group_current_member_assignment_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupCurrentMemberAssignmentKey(Structure):
    """StreamsGroupCurrentMemberAssignment, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TaskIds(Structure):
    """Part of StreamsGroupCurrentMemberAssignment."""

    subtopology_id: str
    partitions: list[int]
    assignment_epochs: list[int] | None

    def __init__(
        self, subtopology_id: str = "", partitions: list[int] = ABSENT,
        assignment_epochs: list[int] | None = ABSENT,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is ABSENT else partitions
        self.assignment_epochs = [] if assignment_epochs is ABSENT else assignment_epochs


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupCurrentMemberAssignmentValue(Structure):
    """StreamsGroupCurrentMemberAssignment, versions 0-0."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
    active_tasks_pending_revocation: list[TaskIds]
    standby_tasks_pending_revocation: list[TaskIds]
    warmup_tasks_pending_revocation: list[TaskIds]

    def __init__(
        self, member_epoch: int = 0, previous_member_epoch: int = 0, state: int = 0,
        active_tasks: list[TaskIds] = ABSENT, standby_tasks: list[TaskIds] = ABSENT,
        warmup_tasks: list[TaskIds] = ABSENT,
        active_tasks_pending_revocation: list[TaskIds] = ABSENT,
        standby_tasks_pending_revocation: list[TaskIds] = ABSENT,
        warmup_tasks_pending_revocation: list[TaskIds] = ABSENT,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.active_tasks = [] if active_tasks is ABSENT else active_tasks
        self.standby_tasks = [] if standby_tasks is ABSENT else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is ABSENT else warmup_tasks
        self.active_tasks_pending_revocation = [] if active_tasks_pending_revocation is ABSENT else active_tasks_pending_revocation
        self.standby_tasks_pending_revocation = [] if standby_tasks_pending_revocation is ABSENT else standby_tasks_pending_revocation
        self.warmup_tasks_pending_revocation = [] if warmup_tasks_pending_revocation is ABSENT else warmup_tasks_pending_revocation


def read_streams_group_current_member_assignment_key(
    reader: Reader, version: int
) -> StreamsGroupCurrentMemberAssignmentKey:
    return StreamsGroupCurrentMemberAssignmentKey(reader.string(), reader.string())


def write_streams_group_current_member_assignment_key(
    writer: Writer, message: StreamsGroupCurrentMemberAssignmentKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_task_ids(reader: Reader, version: int) -> TaskIds:
    message = TaskIds(reader.string(), reader.values(reader.int32, 4))
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.assignment_epochs = reader.optional_values(reader.int32, 4)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_task_ids(writer: Writer, message: TaskIds, version: int) -> None:
    writer.string(message.subtopology_id)
    writer.values(message.partitions, writer.int32)
    tagged = TaggedFields()
    if message.assignment_epochs != []:
        tagged.optional_values(message.assignment_epochs, tagged.int32)
        tagged.end(0)
    writer.tags(tagged)


def read_streams_group_current_member_assignment_value(
    reader: Reader, version: int
) -> StreamsGroupCurrentMemberAssignmentValue:
    message = StreamsGroupCurrentMemberAssignmentValue(
        reader.int32(),
        reader.int32(),
        reader.int8(),
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
        reader.array(read_task_ids, version, 3),
    )
    reader.skip_tags()
    return message


def write_streams_group_current_member_assignment_value(
    writer: Writer, message: StreamsGroupCurrentMemberAssignmentValue, version: int
) -> None:
    writer.int32(message.member_epoch)
    writer.int32(message.previous_member_epoch)
    writer.int8(message.state)
    writer.array(message.active_tasks, write_task_ids, version)
    writer.array(message.standby_tasks, write_task_ids, version)
    writer.array(message.warmup_tasks, write_task_ids, version)
    writer.array(message.active_tasks_pending_revocation, write_task_ids, version)
    writer.array(message.standby_tasks_pending_revocation, write_task_ids, version)
    writer.array(message.warmup_tasks_pending_revocation, write_task_ids, version)
    writer.no_tags()


STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD = RecordType(
    22,
    "StreamsGroupCurrentMemberAssignment",
    message_of_fields(
        "StreamsGroupCurrentMemberAssignmentKey", (0, 0), NEVER,
        read_streams_group_current_member_assignment_key,
        write_streams_group_current_member_assignment_key,
    ),
    message_of_fields(
        "StreamsGroupCurrentMemberAssignmentValue", (0, 0), 0,
        read_streams_group_current_member_assignment_value,
        write_streams_group_current_member_assignment_value,
    ),
)
