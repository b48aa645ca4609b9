"""StreamsGroupCurrentMemberAssignment: generated from streams_group_current_member_assignment_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    wrong_tag_size,
)

pack_h = Struct(">h").pack
pack_iib = Struct(">iib").pack
unpack_h = Struct(">h").unpack_from
unpack_iibB = Struct(">iibB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupCurrentMemberAssignmentKey(Structure):
    """StreamsGroupCurrentMemberAssignment, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TaskIds(Structure):
    """Part of StreamsGroupCurrentMemberAssignment."""

    subtopology_id: str
    partitions: list[int]
    assignment_epochs: list[int] | None

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] = ABSENT,
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
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        active_tasks: list[TaskIds] = ABSENT,
        standby_tasks: list[TaskIds] = ABSENT,
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


def decode_key_v0(view: memoryview, position: int) -> tuple[StreamsGroupCurrentMemberAssignmentKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupCurrentMemberAssignmentKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupCurrentMemberAssignmentKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), position


def encode_key_v0(message: StreamsGroupCurrentMemberAssignmentKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[StreamsGroupCurrentMemberAssignmentValue, int]:
    member_epoch, previous_member_epoch, state, count = unpack_iibB(view, position)
    position += 10
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    active_tasks: list[TaskIds] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        active_tasks_tags = view[position]
        position += 1
        assignment_epochs: list[int] | None = []
        if active_tasks_tags:
            active_tasks_tags, position = tag_count(view, position, active_tasks_tags)
            for _ in range(active_tasks_tags):
                tag, position, active_tasks_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    assignment_epochs = tagged_assignment_epochs
                    if position != active_tasks_tag_end:
                        raise wrong_tag_size(0)
                position = active_tasks_tag_end
        active_tasks.append(TaskIds(subtopology_id, partitions, assignment_epochs))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    standby_tasks: list[TaskIds] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        standby_tasks_subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        standby_tasks_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        standby_tasks_tags = view[position]
        position += 1
        standby_tasks_assignment_epochs: list[int] | None = []
        if standby_tasks_tags:
            standby_tasks_tags, position = tag_count(view, position, standby_tasks_tags)
            for _ in range(standby_tasks_tags):
                tag, position, standby_tasks_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_standby_tasks_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_standby_tasks_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    standby_tasks_assignment_epochs = tagged_standby_tasks_assignment_epochs
                    if position != standby_tasks_tag_end:
                        raise wrong_tag_size(0)
                position = standby_tasks_tag_end
        standby_tasks.append(
            TaskIds(
                standby_tasks_subtopology_id,
                standby_tasks_partitions,
                standby_tasks_assignment_epochs,
            )
        )
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    warmup_tasks: list[TaskIds] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        warmup_tasks_subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        warmup_tasks_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        warmup_tasks_tags = view[position]
        position += 1
        warmup_tasks_assignment_epochs: list[int] | None = []
        if warmup_tasks_tags:
            warmup_tasks_tags, position = tag_count(view, position, warmup_tasks_tags)
            for _ in range(warmup_tasks_tags):
                tag, position, warmup_tasks_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_warmup_tasks_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_warmup_tasks_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    warmup_tasks_assignment_epochs = tagged_warmup_tasks_assignment_epochs
                    if position != warmup_tasks_tag_end:
                        raise wrong_tag_size(0)
                position = warmup_tasks_tag_end
        warmup_tasks.append(
            TaskIds(
                warmup_tasks_subtopology_id,
                warmup_tasks_partitions,
                warmup_tasks_assignment_epochs,
            )
        )
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    active_tasks_pending_revocation: list[TaskIds] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        active_tasks_pending_revocation_subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        active_tasks_pending_revocation_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        active_tasks_pending_revocation_tags = view[position]
        position += 1
        active_tasks_pending_revocation_assignment_epochs: list[int] | None = []
        if active_tasks_pending_revocation_tags:
            active_tasks_pending_revocation_tags, position = tag_count(view, position, active_tasks_pending_revocation_tags)
            for _ in range(active_tasks_pending_revocation_tags):
                tag, position, active_tasks_pending_revocation_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_active_tasks_pending_revocation_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_active_tasks_pending_revocation_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    active_tasks_pending_revocation_assignment_epochs = tagged_active_tasks_pending_revocation_assignment_epochs
                    if position != active_tasks_pending_revocation_tag_end:
                        raise wrong_tag_size(0)
                position = active_tasks_pending_revocation_tag_end
        active_tasks_pending_revocation.append(
            TaskIds(
                active_tasks_pending_revocation_subtopology_id,
                active_tasks_pending_revocation_partitions,
                active_tasks_pending_revocation_assignment_epochs,
            )
        )
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    standby_tasks_pending_revocation: list[TaskIds] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        standby_tasks_pending_revocation_subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        standby_tasks_pending_revocation_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        standby_tasks_pending_revocation_tags = view[position]
        position += 1
        standby_tasks_pending_revocation_assignment_epochs: list[int] | None = []
        if standby_tasks_pending_revocation_tags:
            standby_tasks_pending_revocation_tags, position = tag_count(view, position, standby_tasks_pending_revocation_tags)
            for _ in range(standby_tasks_pending_revocation_tags):
                tag, position, standby_tasks_pending_revocation_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_standby_tasks_pending_revocation_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_standby_tasks_pending_revocation_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    standby_tasks_pending_revocation_assignment_epochs = tagged_standby_tasks_pending_revocation_assignment_epochs
                    if position != standby_tasks_pending_revocation_tag_end:
                        raise wrong_tag_size(0)
                position = standby_tasks_pending_revocation_tag_end
        standby_tasks_pending_revocation.append(
            TaskIds(
                standby_tasks_pending_revocation_subtopology_id,
                standby_tasks_pending_revocation_partitions,
                standby_tasks_pending_revocation_assignment_epochs,
            )
        )
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    warmup_tasks_pending_revocation: list[TaskIds] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        warmup_tasks_pending_revocation_subtopology_id = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        warmup_tasks_pending_revocation_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        warmup_tasks_pending_revocation_tags = view[position]
        position += 1
        warmup_tasks_pending_revocation_assignment_epochs: list[int] | None = []
        if warmup_tasks_pending_revocation_tags:
            warmup_tasks_pending_revocation_tags, position = tag_count(view, position, warmup_tasks_pending_revocation_tags)
            for _ in range(warmup_tasks_pending_revocation_tags):
                tag, position, warmup_tasks_pending_revocation_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_warmup_tasks_pending_revocation_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_warmup_tasks_pending_revocation_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    warmup_tasks_pending_revocation_assignment_epochs = tagged_warmup_tasks_pending_revocation_assignment_epochs
                    if position != warmup_tasks_pending_revocation_tag_end:
                        raise wrong_tag_size(0)
                position = warmup_tasks_pending_revocation_tag_end
        warmup_tasks_pending_revocation.append(
            TaskIds(
                warmup_tasks_pending_revocation_subtopology_id,
                warmup_tasks_pending_revocation_partitions,
                warmup_tasks_pending_revocation_assignment_epochs,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch,
        previous_member_epoch,
        state,
        active_tasks,
        standby_tasks,
        warmup_tasks,
        active_tasks_pending_revocation,
        standby_tasks_pending_revocation,
        warmup_tasks_pending_revocation,
    )
    return message, position


def encode_value_v0(message: StreamsGroupCurrentMemberAssignmentValue, out: bytearray) -> Chunks:
    active_tasks = message.active_tasks
    out += pack_iib(message.member_epoch, message.previous_member_epoch, message.state)
    size = len(active_tasks) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for task_ids in active_tasks:
        subtopology_id = task_ids.subtopology_id
        data = subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = task_ids.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions)}i", *partitions)
        if task_ids.assignment_epochs == []:
            out.append(0)
        else:
            task_ids_tags = 0
            task_ids_tagged = bytearray()
            if task_ids.assignment_epochs != []:
                task_ids_tags += 1
                assignment_epochs_body = bytearray()
                assignment_epochs = task_ids.assignment_epochs
                if assignment_epochs is None:
                    assignment_epochs_body.append(0)
                else:
                    size = len(assignment_epochs) + 1
                    if size < 0x80:
                        assignment_epochs_body.append(size)
                    else:
                        put_varint(assignment_epochs_body, size)
                    assignment_epochs_body += pack(f">{len(assignment_epochs)}i", *assignment_epochs)
                put_tag(task_ids_tagged, 0, assignment_epochs_body)
            out.append(task_ids_tags)
            out += task_ids_tagged
    standby_tasks = message.standby_tasks
    size = len(standby_tasks) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for standby_tasks_task_ids in standby_tasks:
        standby_tasks_task_ids_subtopology_id = standby_tasks_task_ids.subtopology_id
        data = standby_tasks_task_ids_subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        standby_tasks_task_ids_partitions = standby_tasks_task_ids.partitions
        size = len(standby_tasks_task_ids_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(standby_tasks_task_ids_partitions)}i", *standby_tasks_task_ids_partitions)
        if standby_tasks_task_ids.assignment_epochs == []:
            out.append(0)
        else:
            known_task_ids_tags = 0
            known_task_ids_tagged = bytearray()
            if standby_tasks_task_ids.assignment_epochs != []:
                known_task_ids_tags += 1
                tagged_assignment_epochs_body = bytearray()
                standby_tasks_task_ids_assignment_epochs = standby_tasks_task_ids.assignment_epochs
                if standby_tasks_task_ids_assignment_epochs is None:
                    tagged_assignment_epochs_body.append(0)
                else:
                    size = len(standby_tasks_task_ids_assignment_epochs) + 1
                    if size < 0x80:
                        tagged_assignment_epochs_body.append(size)
                    else:
                        put_varint(tagged_assignment_epochs_body, size)
                    tagged_assignment_epochs_body += pack(f">{len(standby_tasks_task_ids_assignment_epochs)}i", *standby_tasks_task_ids_assignment_epochs)
                put_tag(known_task_ids_tagged, 0, tagged_assignment_epochs_body)
            out.append(known_task_ids_tags)
            out += known_task_ids_tagged
    warmup_tasks = message.warmup_tasks
    size = len(warmup_tasks) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for warmup_tasks_task_ids in warmup_tasks:
        warmup_tasks_task_ids_subtopology_id = warmup_tasks_task_ids.subtopology_id
        data = warmup_tasks_task_ids_subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        warmup_tasks_task_ids_partitions = warmup_tasks_task_ids.partitions
        size = len(warmup_tasks_task_ids_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(warmup_tasks_task_ids_partitions)}i", *warmup_tasks_task_ids_partitions)
        if warmup_tasks_task_ids.assignment_epochs == []:
            out.append(0)
        else:
            known_known_task_ids_tags = 0
            known_known_task_ids_tagged = bytearray()
            if warmup_tasks_task_ids.assignment_epochs != []:
                known_known_task_ids_tags += 1
                tagged_tagged_assignment_epochs_body = bytearray()
                warmup_tasks_task_ids_assignment_epochs = warmup_tasks_task_ids.assignment_epochs
                if warmup_tasks_task_ids_assignment_epochs is None:
                    tagged_tagged_assignment_epochs_body.append(0)
                else:
                    size = len(warmup_tasks_task_ids_assignment_epochs) + 1
                    if size < 0x80:
                        tagged_tagged_assignment_epochs_body.append(size)
                    else:
                        put_varint(tagged_tagged_assignment_epochs_body, size)
                    tagged_tagged_assignment_epochs_body += pack(f">{len(warmup_tasks_task_ids_assignment_epochs)}i", *warmup_tasks_task_ids_assignment_epochs)
                put_tag(known_known_task_ids_tagged, 0, tagged_tagged_assignment_epochs_body)
            out.append(known_known_task_ids_tags)
            out += known_known_task_ids_tagged
    active_tasks_pending_revocation = message.active_tasks_pending_revocation
    size = len(active_tasks_pending_revocation) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for active_tasks_pending_revocation_task_ids in active_tasks_pending_revocation:
        active_tasks_pending_revocation_task_ids_subtopology_id = active_tasks_pending_revocation_task_ids.subtopology_id
        data = active_tasks_pending_revocation_task_ids_subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        active_tasks_pending_revocation_task_ids_partitions = active_tasks_pending_revocation_task_ids.partitions
        size = len(active_tasks_pending_revocation_task_ids_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(active_tasks_pending_revocation_task_ids_partitions)}i", *active_tasks_pending_revocation_task_ids_partitions)
        if active_tasks_pending_revocation_task_ids.assignment_epochs == []:
            out.append(0)
        else:
            known_known_known_task_ids_tags = 0
            known_known_known_task_ids_tagged = bytearray()
            if active_tasks_pending_revocation_task_ids.assignment_epochs != []:
                known_known_known_task_ids_tags += 1
                tagged_tagged_tagged_assignment_epochs_body = bytearray()
                active_tasks_pending_revocation_task_ids_assignment_epochs = active_tasks_pending_revocation_task_ids.assignment_epochs
                if active_tasks_pending_revocation_task_ids_assignment_epochs is None:
                    tagged_tagged_tagged_assignment_epochs_body.append(0)
                else:
                    size = len(active_tasks_pending_revocation_task_ids_assignment_epochs) + 1
                    if size < 0x80:
                        tagged_tagged_tagged_assignment_epochs_body.append(size)
                    else:
                        put_varint(tagged_tagged_tagged_assignment_epochs_body, size)
                    tagged_tagged_tagged_assignment_epochs_body += pack(f">{len(active_tasks_pending_revocation_task_ids_assignment_epochs)}i", *active_tasks_pending_revocation_task_ids_assignment_epochs)
                put_tag(known_known_known_task_ids_tagged, 0, tagged_tagged_tagged_assignment_epochs_body)
            out.append(known_known_known_task_ids_tags)
            out += known_known_known_task_ids_tagged
    standby_tasks_pending_revocation = message.standby_tasks_pending_revocation
    size = len(standby_tasks_pending_revocation) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for standby_tasks_pending_revocation_task_ids in standby_tasks_pending_revocation:
        standby_tasks_pending_revocation_task_ids_subtopology_id = standby_tasks_pending_revocation_task_ids.subtopology_id
        data = standby_tasks_pending_revocation_task_ids_subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        standby_tasks_pending_revocation_task_ids_partitions = standby_tasks_pending_revocation_task_ids.partitions
        size = len(standby_tasks_pending_revocation_task_ids_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(standby_tasks_pending_revocation_task_ids_partitions)}i", *standby_tasks_pending_revocation_task_ids_partitions)
        if standby_tasks_pending_revocation_task_ids.assignment_epochs == []:
            out.append(0)
        else:
            known_known_known_known_task_ids_tags = 0
            known_known_known_known_task_ids_tagged = bytearray()
            if standby_tasks_pending_revocation_task_ids.assignment_epochs != []:
                known_known_known_known_task_ids_tags += 1
                tagged_tagged_tagged_tagged_assignment_epochs_body = bytearray()
                standby_tasks_pending_revocation_task_ids_assignment_epochs = standby_tasks_pending_revocation_task_ids.assignment_epochs
                if standby_tasks_pending_revocation_task_ids_assignment_epochs is None:
                    tagged_tagged_tagged_tagged_assignment_epochs_body.append(0)
                else:
                    size = len(standby_tasks_pending_revocation_task_ids_assignment_epochs) + 1
                    if size < 0x80:
                        tagged_tagged_tagged_tagged_assignment_epochs_body.append(size)
                    else:
                        put_varint(tagged_tagged_tagged_tagged_assignment_epochs_body, size)
                    tagged_tagged_tagged_tagged_assignment_epochs_body += pack(f">{len(standby_tasks_pending_revocation_task_ids_assignment_epochs)}i", *standby_tasks_pending_revocation_task_ids_assignment_epochs)
                put_tag(known_known_known_known_task_ids_tagged, 0, tagged_tagged_tagged_tagged_assignment_epochs_body)
            out.append(known_known_known_known_task_ids_tags)
            out += known_known_known_known_task_ids_tagged
    warmup_tasks_pending_revocation = message.warmup_tasks_pending_revocation
    size = len(warmup_tasks_pending_revocation) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for warmup_tasks_pending_revocation_task_ids in warmup_tasks_pending_revocation:
        warmup_tasks_pending_revocation_task_ids_subtopology_id = warmup_tasks_pending_revocation_task_ids.subtopology_id
        data = warmup_tasks_pending_revocation_task_ids_subtopology_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        warmup_tasks_pending_revocation_task_ids_partitions = warmup_tasks_pending_revocation_task_ids.partitions
        size = len(warmup_tasks_pending_revocation_task_ids_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(warmup_tasks_pending_revocation_task_ids_partitions)}i", *warmup_tasks_pending_revocation_task_ids_partitions)
        if warmup_tasks_pending_revocation_task_ids.assignment_epochs == []:
            out.append(0)
        else:
            known_known_known_known_known_task_ids_tags = 0
            known_known_known_known_known_task_ids_tagged = bytearray()
            if warmup_tasks_pending_revocation_task_ids.assignment_epochs != []:
                known_known_known_known_known_task_ids_tags += 1
                tagged_tagged_tagged_tagged_tagged_assignment_epochs_body = bytearray()
                warmup_tasks_pending_revocation_task_ids_assignment_epochs = warmup_tasks_pending_revocation_task_ids.assignment_epochs
                if warmup_tasks_pending_revocation_task_ids_assignment_epochs is None:
                    tagged_tagged_tagged_tagged_tagged_assignment_epochs_body.append(0)
                else:
                    size = len(warmup_tasks_pending_revocation_task_ids_assignment_epochs) + 1
                    if size < 0x80:
                        tagged_tagged_tagged_tagged_tagged_assignment_epochs_body.append(size)
                    else:
                        put_varint(tagged_tagged_tagged_tagged_tagged_assignment_epochs_body, size)
                    tagged_tagged_tagged_tagged_tagged_assignment_epochs_body += pack(f">{len(warmup_tasks_pending_revocation_task_ids_assignment_epochs)}i", *warmup_tasks_pending_revocation_task_ids_assignment_epochs)
                put_tag(known_known_known_known_known_task_ids_tagged, 0, tagged_tagged_tagged_tagged_tagged_assignment_epochs_body)
            out.append(known_known_known_known_known_task_ids_tags)
            out += known_known_known_known_known_task_ids_tagged
    out.append(0)
    return [out]


STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD = RecordType(
    22,
    "StreamsGroupCurrentMemberAssignment",
    Message(
        "StreamsGroupCurrentMemberAssignmentKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "StreamsGroupCurrentMemberAssignmentValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
