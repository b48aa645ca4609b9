"""StreamsGroupTargetAssignmentMember: generated from streams_group_target_assignment_member_record.schema by protocol/generate. Do not edit."""

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
    put_varint,
    skip_tags,
)

pack_h = Struct(">h").pack
unpack_h = Struct(">h").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTargetAssignmentMemberKey(Structure):
    """StreamsGroupTargetAssignmentMember, versions 0-0."""

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
    """Part of StreamsGroupTargetAssignmentMember."""

    subtopology_id: str
    partitions: list[int]

    def __init__(
        self,
        subtopology_id: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupTargetAssignmentMemberValue(Structure):
    """StreamsGroupTargetAssignmentMember, versions 0-0."""

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]

    def __init__(
        self,
        active_tasks: list[TaskIds] = ABSENT,
        standby_tasks: list[TaskIds] = ABSENT,
        warmup_tasks: list[TaskIds] = ABSENT,
    ) -> None:
        self.active_tasks = [] if active_tasks is ABSENT else active_tasks
        self.standby_tasks = [] if standby_tasks is ABSENT else standby_tasks
        self.warmup_tasks = [] if warmup_tasks is ABSENT else warmup_tasks


def decode_key_v0(view: memoryview, position: int) -> tuple[StreamsGroupTargetAssignmentMemberKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupTargetAssignmentMemberKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupTargetAssignmentMemberKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return StreamsGroupTargetAssignmentMemberKey(group_id, member_id), position


def encode_key_v0(message: StreamsGroupTargetAssignmentMemberKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[StreamsGroupTargetAssignmentMemberValue, int]:
    count = view[position]
    position += 1
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
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        active_tasks.append(TaskIds(subtopology_id, partitions))
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
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        standby_tasks.append(TaskIds(standby_tasks_subtopology_id, standby_tasks_partitions))
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
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        warmup_tasks.append(TaskIds(warmup_tasks_subtopology_id, warmup_tasks_partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = StreamsGroupTargetAssignmentMemberValue(active_tasks, standby_tasks, warmup_tasks)
    return message, position


def encode_value_v0(message: StreamsGroupTargetAssignmentMemberValue, out: bytearray) -> Chunks:
    active_tasks = message.active_tasks
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
        out.append(0)
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
        out.append(0)
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
        out.append(0)
    out.append(0)
    return [out]


STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER_RECORD = RecordType(
    21,
    "StreamsGroupTargetAssignmentMember",
    Message(
        "StreamsGroupTargetAssignmentMemberKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "StreamsGroupTargetAssignmentMemberValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
