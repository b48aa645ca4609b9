"""StreamsGroupDescribe: generated from streams_group_describe.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_tx = Struct(">?x").pack
pack_Hx = Struct(">Hx").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ii = Struct(">ii").pack
pack_iqx = Struct(">iqx").pack
pack_ix = Struct(">ix").pack
pack_xtx = Struct(">x?x").pack
unpack_tB = Struct(">?B").unpack_from
unpack_HB = Struct(">HB").unpack_from
unpack_b = Struct(">b").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iib = Struct(">iib").unpack_from
unpack_iqB = Struct(">iqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupDescribeRequest(Structure):
    """StreamsGroupDescribe, versions 0-0."""

    group_ids: list[str]
    include_authorized_operations: bool

    def __init__(
        self,
        group_ids: list[str] = ABSENT,
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = [] if group_ids is ABSENT else group_ids
        self.include_authorized_operations = include_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class KeyValue(Structure):
    """Part of StreamsGroupDescribe."""

    key: str
    value: str

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicInfo(Structure):
    """Part of StreamsGroupDescribe."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: list[KeyValue]

    def __init__(
        self,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = partitions
        self.replication_factor = replication_factor
        self.topic_configs = [] if topic_configs is ABSENT else topic_configs


@dataclass(slots=True, init=False, repr=False, eq=False)
class Subtopology(Structure):
    """Part of StreamsGroupDescribe."""

    subtopology_id: str
    source_topics: list[str]
    repartition_sink_topics: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_source_topics: list[TopicInfo]

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] = ABSENT,
        repartition_sink_topics: list[str] = ABSENT,
        state_changelog_topics: list[TopicInfo] = ABSENT,
        repartition_source_topics: list[TopicInfo] = ABSENT,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is ABSENT else source_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is ABSENT else repartition_sink_topics
        self.state_changelog_topics = [] if state_changelog_topics is ABSENT else state_changelog_topics
        self.repartition_source_topics = [] if repartition_source_topics is ABSENT else repartition_source_topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class Topology(Structure):
    """Part of StreamsGroupDescribe."""

    epoch: int
    subtopologies: list[Subtopology] | None

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = subtopologies


@dataclass(slots=True, init=False, repr=False, eq=False)
class Endpoint(Structure):
    """Part of StreamsGroupDescribe."""

    host: str
    port: int

    def __init__(
        self,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host = host
        self.port = port


@dataclass(slots=True, init=False, repr=False, eq=False)
class TaskOffset(Structure):
    """Part of StreamsGroupDescribe."""

    subtopology_id: str
    partition: int
    offset: int

    def __init__(
        self,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.partition = partition
        self.offset = offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class TaskIds(Structure):
    """Part of StreamsGroupDescribe."""

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
class Assignment(Structure):
    """Part of StreamsGroupDescribe."""

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


@dataclass(slots=True, init=False, repr=False, eq=False)
class Member(Structure):
    """Part of StreamsGroupDescribe."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue]
    task_offsets: list[TaskOffset]
    task_end_offsets: list[TaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: bool

    def __init__(
        self,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = ABSENT,
        task_offsets: list[TaskOffset] = ABSENT,
        task_end_offsets: list[TaskOffset] = ABSENT,
        assignment: Assignment = ABSENT,
        target_assignment: Assignment = ABSENT,
        is_classic: bool = False,
    ) -> None:
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is ABSENT else client_tags
        self.task_offsets = [] if task_offsets is ABSENT else task_offsets
        self.task_end_offsets = [] if task_end_offsets is ABSENT else task_end_offsets
        self.assignment = Assignment() if assignment is ABSENT else assignment
        self.target_assignment = Assignment() if target_assignment is ABSENT else target_assignment
        self.is_classic = is_classic


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribedGroup(Structure):
    """Part of StreamsGroupDescribe."""

    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    topology: Topology | None
    members: list[Member]
    authorized_operations: int

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] = ABSENT,
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.topology = topology
        self.members = [] if members is ABSENT else members
        self.authorized_operations = authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupDescribeResponse(Structure):
    """StreamsGroupDescribe, versions 0-0."""

    throttle_time_ms: int
    groups: list[DescribedGroup]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = [] if groups is ABSENT else groups


def decode_request_v0(view: memoryview, position: int) -> tuple[StreamsGroupDescribeRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    group_ids: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_ids_item = view[position:end].tobytes().decode()
        position = end
        group_ids.append(group_ids_item)
    include_authorized_operations, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return StreamsGroupDescribeRequest(group_ids, include_authorized_operations), position


def encode_request_v0(message: StreamsGroupDescribeRequest, out: bytearray) -> Chunks:
    group_ids = message.group_ids
    size = len(group_ids) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for group_ids_item in group_ids:
        data = group_ids_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_tx(message.include_authorized_operations)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[StreamsGroupDescribeResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 20)
    groups: list[DescribedGroup] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        group_state = view[position:end].tobytes().decode()
        position = end
        group_epoch, assignment_epoch, topology_present = unpack_iib(view, position)
        position += 9
        topology: Topology | None = None
        if topology_present >= 0:
            epoch, count = unpack_iB(view, position)
            position += 5
            subtopologies: list[Subtopology] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 6)
                subtopologies = []
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
                        count, position = long_count(view, position, count, 1)
                    source_topics: list[str] = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        source_topics_item = view[position:end].tobytes().decode()
                        position = end
                        source_topics.append(source_topics_item)
                    count = view[position]
                    position += 1
                    if not 0 < count < 0x80:
                        count, position = long_count(view, position, count, 1)
                    repartition_sink_topics: list[str] = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        repartition_sink_topics_item = view[position:end].tobytes().decode()
                        position = end
                        repartition_sink_topics.append(repartition_sink_topics_item)
                    count = view[position]
                    position += 1
                    if not 0 < count < 0x80:
                        count, position = long_count(view, position, count, 9)
                    state_changelog_topics: list[TopicInfo] = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        name = view[position:end].tobytes().decode()
                        position = end
                        partitions, replication_factor, count = unpack_ihB(view, position)
                        position += 7
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 3)
                        topic_configs: list[KeyValue] = []
                        for _ in range(count - 1):
                            size = view[position]
                            position += 1
                            if not 0 < size < 0x80:
                                size, position = long_size(view, position, size)
                            end = position + size - 1
                            key = view[position:end].tobytes().decode()
                            position = end
                            size = view[position]
                            position += 1
                            if not 0 < size < 0x80:
                                size, position = long_size(view, position, size)
                            end = position + size - 1
                            value = view[position:end].tobytes().decode()
                            position = end
                            tags = view[position]
                            position += 1
                            if tags:
                                position = skip_tags(view, position, tags)
                            topic_configs.append(KeyValue(key, value))
                        tags = view[position]
                        position += 1
                        if tags:
                            position = skip_tags(view, position, tags)
                        state_changelog_topics.append(
                            TopicInfo(name, partitions, replication_factor, topic_configs)
                        )
                    count = view[position]
                    position += 1
                    if not 0 < count < 0x80:
                        count, position = long_count(view, position, count, 9)
                    repartition_source_topics: list[TopicInfo] = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        repartition_source_topics_name = view[position:end].tobytes().decode()
                        position = end
                        (
                            repartition_source_topics_partitions,
                            repartition_source_topics_replication_factor,
                            count,
                        ) = unpack_ihB(view, position)
                        position += 7
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 3)
                        repartition_source_topics_topic_configs: list[KeyValue] = []
                        for _ in range(count - 1):
                            size = view[position]
                            position += 1
                            if not 0 < size < 0x80:
                                size, position = long_size(view, position, size)
                            end = position + size - 1
                            repartition_source_topics_topic_configs_key = view[position:end].tobytes().decode()
                            position = end
                            size = view[position]
                            position += 1
                            if not 0 < size < 0x80:
                                size, position = long_size(view, position, size)
                            end = position + size - 1
                            repartition_source_topics_topic_configs_value = view[position:end].tobytes().decode()
                            position = end
                            tags = view[position]
                            position += 1
                            if tags:
                                position = skip_tags(view, position, tags)
                            repartition_source_topics_topic_configs.append(
                                KeyValue(
                                    repartition_source_topics_topic_configs_key,
                                    repartition_source_topics_topic_configs_value,
                                )
                            )
                        tags = view[position]
                        position += 1
                        if tags:
                            position = skip_tags(view, position, tags)
                        repartition_source_topics.append(
                            TopicInfo(
                                repartition_source_topics_name,
                                repartition_source_topics_partitions,
                                repartition_source_topics_replication_factor,
                                repartition_source_topics_topic_configs,
                            )
                        )
                    tags = view[position]
                    position += 1
                    if tags:
                        position = skip_tags(view, position, tags)
                    subtopologies.append(
                        Subtopology(
                            subtopology_id,
                            source_topics,
                            repartition_sink_topics,
                            state_changelog_topics,
                            repartition_source_topics,
                        )
                    )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topology = Topology(epoch, subtopologies)
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 28)
        members: list[Member] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            member_id = view[position:end].tobytes().decode()
            position = end
            member_epoch, size = unpack_iB(view, position)
            position += 5
            instance_id: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                instance_id = view[position:end].tobytes().decode()
                position = end
            size = view[position]
            position += 1
            rack_id: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                rack_id = view[position:end].tobytes().decode()
                position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            client_id = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            client_host = view[position:end].tobytes().decode()
            position = end
            topology_epoch, size = unpack_iB(view, position)
            position += 5
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            process_id = view[position:end].tobytes().decode()
            position = end
            (user_endpoint_present,) = unpack_b(view, position)
            position += 1
            user_endpoint: Endpoint | None = None
            if user_endpoint_present >= 0:
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                host = view[position:end].tobytes().decode()
                position = end
                port, tags = unpack_HB(view, position)
                position += 3
                if tags:
                    position = skip_tags(view, position, tags)
                user_endpoint = Endpoint(host, port)
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            client_tags: list[KeyValue] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                client_tags_key = view[position:end].tobytes().decode()
                position = end
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                client_tags_value = view[position:end].tobytes().decode()
                position = end
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                client_tags.append(KeyValue(client_tags_key, client_tags_value))
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 14)
            task_offsets: list[TaskOffset] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                task_offsets_subtopology_id = view[position:end].tobytes().decode()
                position = end
                partition, offset, tags = unpack_iqB(view, position)
                position += 13
                if tags:
                    position = skip_tags(view, position, tags)
                task_offsets.append(TaskOffset(task_offsets_subtopology_id, partition, offset))
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 14)
            task_end_offsets: list[TaskOffset] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                task_end_offsets_subtopology_id = view[position:end].tobytes().decode()
                position = end
                (
                    task_end_offsets_partition,
                    task_end_offsets_offset,
                    tags,
                ) = unpack_iqB(view, position)
                position += 13
                if tags:
                    position = skip_tags(view, position, tags)
                task_end_offsets.append(
                    TaskOffset(
                        task_end_offsets_subtopology_id,
                        task_end_offsets_partition,
                        task_end_offsets_offset,
                    )
                )
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
                active_tasks_subtopology_id = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                active_tasks_partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                active_tasks.append(TaskIds(active_tasks_subtopology_id, active_tasks_partitions))
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
                standby_tasks.append(
                    TaskIds(standby_tasks_subtopology_id, standby_tasks_partitions)
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
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                warmup_tasks.append(TaskIds(warmup_tasks_subtopology_id, warmup_tasks_partitions))
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            assignment = Assignment(active_tasks, standby_tasks, warmup_tasks)
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            target_assignment_active_tasks: list[TaskIds] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                target_assignment_active_tasks_subtopology_id = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                target_assignment_active_tasks_partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                target_assignment_active_tasks.append(
                    TaskIds(
                        target_assignment_active_tasks_subtopology_id,
                        target_assignment_active_tasks_partitions,
                    )
                )
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            target_assignment_standby_tasks: list[TaskIds] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                target_assignment_standby_tasks_subtopology_id = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                target_assignment_standby_tasks_partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                target_assignment_standby_tasks.append(
                    TaskIds(
                        target_assignment_standby_tasks_subtopology_id,
                        target_assignment_standby_tasks_partitions,
                    )
                )
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            target_assignment_warmup_tasks: list[TaskIds] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                target_assignment_warmup_tasks_subtopology_id = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                target_assignment_warmup_tasks_partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                target_assignment_warmup_tasks.append(
                    TaskIds(
                        target_assignment_warmup_tasks_subtopology_id,
                        target_assignment_warmup_tasks_partitions,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            target_assignment = Assignment(
                target_assignment_active_tasks,
                target_assignment_standby_tasks,
                target_assignment_warmup_tasks,
            )
            is_classic, tags = unpack_tB(view, position)
            position += 2
            if tags:
                position = skip_tags(view, position, tags)
            members.append(
                Member(
                    member_id,
                    member_epoch,
                    instance_id,
                    rack_id,
                    client_id,
                    client_host,
                    topology_epoch,
                    process_id,
                    user_endpoint,
                    client_tags,
                    task_offsets,
                    task_end_offsets,
                    assignment,
                    target_assignment,
                    is_classic,
                )
            )
        authorized_operations, tags = unpack_iB(view, position)
        position += 5
        if tags:
            position = skip_tags(view, position, tags)
        groups.append(
            DescribedGroup(
                error_code,
                error_message,
                group_id,
                group_state,
                group_epoch,
                assignment_epoch,
                topology,
                members,
                authorized_operations,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return StreamsGroupDescribeResponse(throttle_time_ms, groups), position


def encode_response_v0(message: StreamsGroupDescribeResponse, out: bytearray) -> Chunks:
    groups = message.groups
    out += pack_i(message.throttle_time_ms)
    size = len(groups) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for described_group in groups:
        error_message = described_group.error_message
        out += pack_h(described_group.error_code)
        if error_message is None:
            out.append(0)
        else:
            data = error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        group_id = described_group.group_id
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        group_state = described_group.group_state
        data = group_state.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        topology = described_group.topology
        out += pack_ii(described_group.group_epoch, described_group.assignment_epoch)
        if topology is None:
            out.append(0xFF)
        else:
            out.append(1)
            subtopologies = topology.subtopologies
            out += pack_i(topology.epoch)
            if subtopologies is None:
                out.append(0)
            else:
                size = len(subtopologies) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                for subtopology in subtopologies:
                    subtopology_id = subtopology.subtopology_id
                    data = subtopology_id.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                    source_topics = subtopology.source_topics
                    size = len(source_topics) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    for source_topics_item in source_topics:
                        data = source_topics_item.encode()
                        size = len(data) + 1
                        if size < 0x80:
                            out.append(size)
                        else:
                            put_varint(out, size)
                        out += data
                    repartition_sink_topics = subtopology.repartition_sink_topics
                    size = len(repartition_sink_topics) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    for repartition_sink_topics_item in repartition_sink_topics:
                        data = repartition_sink_topics_item.encode()
                        size = len(data) + 1
                        if size < 0x80:
                            out.append(size)
                        else:
                            put_varint(out, size)
                        out += data
                    state_changelog_topics = subtopology.state_changelog_topics
                    size = len(state_changelog_topics) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    for topic_info in state_changelog_topics:
                        name = topic_info.name
                        data = name.encode()
                        size = len(data) + 1
                        if size < 0x80:
                            out.append(size)
                        else:
                            put_varint(out, size)
                        out += data
                        topic_configs = topic_info.topic_configs
                        out += pack_ih(topic_info.partitions, topic_info.replication_factor)
                        size = len(topic_configs) + 1
                        if size < 0x80:
                            out.append(size)
                        else:
                            put_varint(out, size)
                        for key_value in topic_configs:
                            key = key_value.key
                            data = key.encode()
                            size = len(data) + 1
                            if size < 0x80:
                                out.append(size)
                            else:
                                put_varint(out, size)
                            out += data
                            value = key_value.value
                            data = value.encode()
                            size = len(data) + 1
                            if size < 0x80:
                                out.append(size)
                            else:
                                put_varint(out, size)
                            out += data
                            out.append(0)
                        out.append(0)
                    repartition_source_topics = subtopology.repartition_source_topics
                    size = len(repartition_source_topics) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    for repartition_source_topics_topic_info in repartition_source_topics:
                        repartition_source_topics_topic_info_name = repartition_source_topics_topic_info.name
                        data = repartition_source_topics_topic_info_name.encode()
                        size = len(data) + 1
                        if size < 0x80:
                            out.append(size)
                        else:
                            put_varint(out, size)
                        out += data
                        repartition_source_topics_topic_info_topic_configs = repartition_source_topics_topic_info.topic_configs
                        out += pack_ih(
                            repartition_source_topics_topic_info.partitions,
                            repartition_source_topics_topic_info.replication_factor,
                        )
                        size = len(repartition_source_topics_topic_info_topic_configs) + 1
                        if size < 0x80:
                            out.append(size)
                        else:
                            put_varint(out, size)
                        for topic_configs_key_value in repartition_source_topics_topic_info_topic_configs:
                            topic_configs_key_value_key = topic_configs_key_value.key
                            data = topic_configs_key_value_key.encode()
                            size = len(data) + 1
                            if size < 0x80:
                                out.append(size)
                            else:
                                put_varint(out, size)
                            out += data
                            topic_configs_key_value_value = topic_configs_key_value.value
                            data = topic_configs_key_value_value.encode()
                            size = len(data) + 1
                            if size < 0x80:
                                out.append(size)
                            else:
                                put_varint(out, size)
                            out += data
                            out.append(0)
                        out.append(0)
                    out.append(0)
            out.append(0)
        members = described_group.members
        size = len(members) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for member in members:
            member_id = member.member_id
            data = member_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            instance_id = member.instance_id
            out += pack_i(member.member_epoch)
            if instance_id is None:
                out.append(0)
            else:
                data = instance_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            rack_id = member.rack_id
            if rack_id is None:
                out.append(0)
            else:
                data = rack_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            client_id = member.client_id
            data = client_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            client_host = member.client_host
            data = client_host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            process_id = member.process_id
            out += pack_i(member.topology_epoch)
            data = process_id.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            user_endpoint = member.user_endpoint
            if user_endpoint is None:
                out.append(0xFF)
            else:
                out.append(1)
                host = user_endpoint.host
                data = host.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out += pack_Hx(user_endpoint.port)
            client_tags = member.client_tags
            size = len(client_tags) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for client_tags_key_value in client_tags:
                client_tags_key_value_key = client_tags_key_value.key
                data = client_tags_key_value_key.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                client_tags_key_value_value = client_tags_key_value.value
                data = client_tags_key_value_value.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out.append(0)
            task_offsets = member.task_offsets
            size = len(task_offsets) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for task_offset in task_offsets:
                task_offset_subtopology_id = task_offset.subtopology_id
                data = task_offset_subtopology_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out += pack_iqx(task_offset.partition, task_offset.offset)
            task_end_offsets = member.task_end_offsets
            size = len(task_end_offsets) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for task_end_offsets_task_offset in task_end_offsets:
                task_end_offsets_task_offset_subtopology_id = task_end_offsets_task_offset.subtopology_id
                data = task_end_offsets_task_offset_subtopology_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out += pack_iqx(
                    task_end_offsets_task_offset.partition,
                    task_end_offsets_task_offset.offset,
                )
            active_tasks = member.assignment.active_tasks
            size = len(active_tasks) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for task_ids in active_tasks:
                task_ids_subtopology_id = task_ids.subtopology_id
                data = task_ids_subtopology_id.encode()
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
            standby_tasks = member.assignment.standby_tasks
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
            warmup_tasks = member.assignment.warmup_tasks
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
            member_active_tasks = member.target_assignment.active_tasks
            out.append(0)
            size = len(member_active_tasks) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for active_tasks_task_ids in member_active_tasks:
                active_tasks_task_ids_subtopology_id = active_tasks_task_ids.subtopology_id
                data = active_tasks_task_ids_subtopology_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                active_tasks_task_ids_partitions = active_tasks_task_ids.partitions
                size = len(active_tasks_task_ids_partitions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(active_tasks_task_ids_partitions)}i", *active_tasks_task_ids_partitions)
                out.append(0)
            member_standby_tasks = member.target_assignment.standby_tasks
            size = len(member_standby_tasks) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for standby_tasks_standby_tasks_task_ids in member_standby_tasks:
                standby_tasks_standby_tasks_task_ids_subtopology_id = standby_tasks_standby_tasks_task_ids.subtopology_id
                data = standby_tasks_standby_tasks_task_ids_subtopology_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                standby_tasks_standby_tasks_task_ids_partitions = standby_tasks_standby_tasks_task_ids.partitions
                size = len(standby_tasks_standby_tasks_task_ids_partitions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(standby_tasks_standby_tasks_task_ids_partitions)}i", *standby_tasks_standby_tasks_task_ids_partitions)
                out.append(0)
            member_warmup_tasks = member.target_assignment.warmup_tasks
            size = len(member_warmup_tasks) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for warmup_tasks_warmup_tasks_task_ids in member_warmup_tasks:
                warmup_tasks_warmup_tasks_task_ids_subtopology_id = warmup_tasks_warmup_tasks_task_ids.subtopology_id
                data = warmup_tasks_warmup_tasks_task_ids_subtopology_id.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                warmup_tasks_warmup_tasks_task_ids_partitions = warmup_tasks_warmup_tasks_task_ids.partitions
                size = len(warmup_tasks_warmup_tasks_task_ids_partitions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(warmup_tasks_warmup_tasks_task_ids_partitions)}i", *warmup_tasks_warmup_tasks_task_ids_partitions)
                out.append(0)
            out += pack_xtx(member.is_classic)
        out += pack_ix(described_group.authorized_operations)
    out.append(0)
    return [out]


STREAMS_GROUP_DESCRIBE = Api(
    89,
    "StreamsGroupDescribe",
    Message(
        "StreamsGroupDescribeRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "StreamsGroupDescribeResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
