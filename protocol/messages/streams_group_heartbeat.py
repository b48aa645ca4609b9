"""StreamsGroupHeartbeat: generated from streams_group_heartbeat.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    Chunks,
    Structure,
    add_tags,
    check_elements,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_tx = Struct(">?x").pack
pack_Hx = Struct(">Hx").pack
pack_b = Struct(">b").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ii = Struct(">ii").pack
pack_iiii = Struct(">iiii").pack
pack_iqx = Struct(">iqx").pack
unpack_tB = Struct(">?B").unpack_from
unpack_HB = Struct(">HB").unpack_from
unpack_b = Struct(">b").unpack_from
unpack_bB = Struct(">bB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ib = Struct(">ib").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iiiiB = Struct(">iiiiB").unpack_from
unpack_iqB = Struct(">iqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class KeyValue(Structure):
    """Part of StreamsGroupHeartbeat."""

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
    """Part of StreamsGroupHeartbeat."""

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
class CopartitionGroup(Structure):
    """Part of StreamsGroupHeartbeat."""

    source_topics: list[int]
    source_topic_regex: list[int]
    repartition_source_topics: list[int]

    def __init__(
        self,
        source_topics: list[int] = ABSENT,
        source_topic_regex: list[int] = ABSENT,
        repartition_source_topics: list[int] = ABSENT,
    ) -> None:
        self.source_topics = [] if source_topics is ABSENT else source_topics
        self.source_topic_regex = [] if source_topic_regex is ABSENT else source_topic_regex
        self.repartition_source_topics = [] if repartition_source_topics is ABSENT else repartition_source_topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class Subtopology(Structure):
    """Part of StreamsGroupHeartbeat."""

    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    state_changelog_topics: list[TopicInfo]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[TopicInfo]
    copartition_groups: list[CopartitionGroup]

    def __init__(
        self,
        subtopology_id: str = "",
        source_topics: list[str] = ABSENT,
        source_topic_regex: list[str] = ABSENT,
        state_changelog_topics: list[TopicInfo] = ABSENT,
        repartition_sink_topics: list[str] = ABSENT,
        repartition_source_topics: list[TopicInfo] = ABSENT,
        copartition_groups: list[CopartitionGroup] = ABSENT,
    ) -> None:
        self.subtopology_id = subtopology_id
        self.source_topics = [] if source_topics is ABSENT else source_topics
        self.source_topic_regex = [] if source_topic_regex is ABSENT else source_topic_regex
        self.state_changelog_topics = [] if state_changelog_topics is ABSENT else state_changelog_topics
        self.repartition_sink_topics = [] if repartition_sink_topics is ABSENT else repartition_sink_topics
        self.repartition_source_topics = [] if repartition_source_topics is ABSENT else repartition_source_topics
        self.copartition_groups = [] if copartition_groups is ABSENT else copartition_groups


@dataclass(slots=True, init=False, repr=False, eq=False)
class Topology(Structure):
    """Part of StreamsGroupHeartbeat."""

    epoch: int
    subtopologies: list[Subtopology]

    def __init__(
        self,
        epoch: int = 0,
        subtopologies: list[Subtopology] = ABSENT,
    ) -> None:
        self.epoch = epoch
        self.subtopologies = [] if subtopologies is ABSENT else subtopologies


@dataclass(slots=True, init=False, repr=False, eq=False)
class TaskIds(Structure):
    """Part of StreamsGroupHeartbeat."""

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
class Endpoint(Structure):
    """Part of StreamsGroupHeartbeat."""

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
    """Part of StreamsGroupHeartbeat."""

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
class StreamsGroupHeartbeatRequest(Structure):
    """StreamsGroupHeartbeat, versions 0-0."""

    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: Topology | None
    active_tasks: list[TaskIds] | None
    standby_tasks: list[TaskIds] | None
    warmup_tasks: list[TaskIds] | None
    process_id: str | None
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue] | None
    task_offsets: list[TaskOffset] | None
    task_end_offsets: list[TaskOffset] | None
    shutdown_application: bool

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.endpoint_information_epoch = endpoint_information_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology = topology
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = client_tags
        self.task_offsets = task_offsets
        self.task_end_offsets = task_end_offsets
        self.shutdown_application = shutdown_application


@dataclass(slots=True, init=False, repr=False, eq=False)
class Status(Structure):
    """Part of StreamsGroupHeartbeat."""

    status_code: int
    status_detail: str

    def __init__(
        self,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code = status_code
        self.status_detail = status_detail


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartition(Structure):
    """Part of StreamsGroupHeartbeat."""

    topic: str
    partitions: list[int]

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] = ABSENT,
    ) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class EndpointToPartitions(Structure):
    """Part of StreamsGroupHeartbeat."""

    user_endpoint: Endpoint
    active_partitions: list[TopicPartition]
    standby_partitions: list[TopicPartition]

    def __init__(
        self,
        user_endpoint: Endpoint = ABSENT,
        active_partitions: list[TopicPartition] = ABSENT,
        standby_partitions: list[TopicPartition] = ABSENT,
    ) -> None:
        self.user_endpoint = Endpoint() if user_endpoint is ABSENT else user_endpoint
        self.active_partitions = [] if active_partitions is ABSENT else active_partitions
        self.standby_partitions = [] if standby_partitions is ABSENT else standby_partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupHeartbeatResponse(Structure):
    """StreamsGroupHeartbeat, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    acceptable_recovery_lag: int
    task_offset_interval_ms: int
    status: list[Status] | None
    active_tasks: list[TaskIds] | None
    standby_tasks: list[TaskIds] | None
    warmup_tasks: list[TaskIds] | None
    endpoint_information_epoch: int
    partitions_by_user_endpoint: list[EndpointToPartitions] | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag: int = 0,
        task_offset_interval_ms: int = 0,
        status: list[Status] | None = ABSENT,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.acceptable_recovery_lag = acceptable_recovery_lag
        self.task_offset_interval_ms = task_offset_interval_ms
        self.status = [] if status is ABSENT else status
        self.active_tasks = active_tasks
        self.standby_tasks = standby_tasks
        self.warmup_tasks = warmup_tasks
        self.endpoint_information_epoch = endpoint_information_epoch
        self.partitions_by_user_endpoint = partitions_by_user_endpoint


def decode_request_v0(view: memoryview, position: int) -> tuple[StreamsGroupHeartbeatRequest, int]:
    elements = 0
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
    member_id = view[position:end].tobytes().decode()
    position = end
    member_epoch, endpoint_information_epoch, size = unpack_iiB(view, position)
    position += 9
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
    rebalance_timeout_ms, topology_present = unpack_ib(view, position)
    position += 5
    topology: Topology | None = None
    if topology_present >= 0:
        epoch, count = unpack_iB(view, position)
        position += 5
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 8)
        subtopologies: list[Subtopology] = []
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
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
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
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            source_topic_regex: list[str] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                source_topic_regex_item = view[position:end].tobytes().decode()
                position = end
                source_topic_regex.append(source_topic_regex_item)
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 9)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
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
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
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
                        elements = add_tags(view, position, tags, elements)
                        position = skip_tags(view, position, tags)
                    topic_configs.append(KeyValue(key, value))
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                state_changelog_topics.append(
                    TopicInfo(name, partitions, replication_factor, topic_configs)
                )
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 1)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
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
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
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
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
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
                        elements = add_tags(view, position, tags, elements)
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
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                repartition_source_topics.append(
                    TopicInfo(
                        repartition_source_topics_name,
                        repartition_source_topics_partitions,
                        repartition_source_topics_replication_factor,
                        repartition_source_topics_topic_configs,
                    )
                )
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            copartition_groups: list[CopartitionGroup] = []
            for _ in range(count - 1):
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 2)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                copartition_groups_source_topics = list(unpack_from(f">{count}h", view, position))
                position += count * 2
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 2)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                copartition_groups_source_topic_regex = list(unpack_from(f">{count}h", view, position))
                position += count * 2
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 2)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                copartition_groups_repartition_source_topics = list(unpack_from(f">{count}h", view, position))
                position += count * 2
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                copartition_groups.append(
                    CopartitionGroup(
                        copartition_groups_source_topics,
                        copartition_groups_source_topic_regex,
                        copartition_groups_repartition_source_topics,
                    )
                )
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            subtopologies.append(
                Subtopology(
                    subtopology_id,
                    source_topics,
                    source_topic_regex,
                    state_changelog_topics,
                    repartition_sink_topics,
                    repartition_source_topics,
                    copartition_groups,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topology = Topology(epoch, subtopologies)
    count = view[position]
    position += 1
    active_tasks: list[TaskIds] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        active_tasks = []
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
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            active_tasks_partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            active_tasks.append(TaskIds(active_tasks_subtopology_id, active_tasks_partitions))
    count = view[position]
    position += 1
    standby_tasks: list[TaskIds] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        standby_tasks = []
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
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            standby_tasks_partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            standby_tasks.append(TaskIds(standby_tasks_subtopology_id, standby_tasks_partitions))
    count = view[position]
    position += 1
    warmup_tasks: list[TaskIds] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        warmup_tasks = []
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
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            warmup_tasks_partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            warmup_tasks.append(TaskIds(warmup_tasks_subtopology_id, warmup_tasks_partitions))
    size = view[position]
    position += 1
    process_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
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
    client_tags: list[KeyValue] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        client_tags = []
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
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            client_tags.append(KeyValue(client_tags_key, client_tags_value))
    count = view[position]
    position += 1
    task_offsets: list[TaskOffset] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 14)
        task_offsets = []
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
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            task_offsets.append(TaskOffset(task_offsets_subtopology_id, partition, offset))
    count = view[position]
    position += 1
    task_end_offsets: list[TaskOffset] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 14)
        task_end_offsets = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            task_end_offsets_subtopology_id = view[position:end].tobytes().decode()
            position = end
            task_end_offsets_partition, task_end_offsets_offset, tags = unpack_iqB(view, position)
            position += 13
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            task_end_offsets.append(
                TaskOffset(
                    task_end_offsets_subtopology_id,
                    task_end_offsets_partition,
                    task_end_offsets_offset,
                )
            )
    shutdown_application, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    message = StreamsGroupHeartbeatRequest(
        group_id,
        member_id,
        member_epoch,
        endpoint_information_epoch,
        instance_id,
        rack_id,
        rebalance_timeout_ms,
        topology,
        active_tasks,
        standby_tasks,
        warmup_tasks,
        process_id,
        user_endpoint,
        client_tags,
        task_offsets,
        task_end_offsets,
        shutdown_application,
    )
    return message, position


def encode_request_v0(message: StreamsGroupHeartbeatRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    instance_id = message.instance_id
    out += pack_ii(message.member_epoch, message.endpoint_information_epoch)
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
    rack_id = message.rack_id
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
    topology = message.topology
    out += pack_i(message.rebalance_timeout_ms)
    if topology is None:
        out.append(0xFF)
    else:
        out.append(1)
        subtopologies = topology.subtopologies
        out += pack_i(topology.epoch)
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
            source_topic_regex = subtopology.source_topic_regex
            size = len(source_topic_regex) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for source_topic_regex_item in source_topic_regex:
                data = source_topic_regex_item.encode()
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
            copartition_groups = subtopology.copartition_groups
            size = len(copartition_groups) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for copartition_group in copartition_groups:
                copartition_group_source_topics = copartition_group.source_topics
                size = len(copartition_group_source_topics) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(copartition_group_source_topics)}h", *copartition_group_source_topics)
                copartition_group_source_topic_regex = copartition_group.source_topic_regex
                size = len(copartition_group_source_topic_regex) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(copartition_group_source_topic_regex)}h", *copartition_group_source_topic_regex)
                copartition_group_repartition_source_topics = copartition_group.repartition_source_topics
                size = len(copartition_group_repartition_source_topics) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(copartition_group_repartition_source_topics)}h", *copartition_group_repartition_source_topics)
                out.append(0)
            out.append(0)
        out.append(0)
    active_tasks = message.active_tasks
    if active_tasks is None:
        out.append(0)
    else:
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
    standby_tasks = message.standby_tasks
    if standby_tasks is None:
        out.append(0)
    else:
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
    if warmup_tasks is None:
        out.append(0)
    else:
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
    process_id = message.process_id
    if process_id is None:
        out.append(0)
    else:
        data = process_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    user_endpoint = message.user_endpoint
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
    client_tags = message.client_tags
    if client_tags is None:
        out.append(0)
    else:
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
    task_offsets = message.task_offsets
    if task_offsets is None:
        out.append(0)
    else:
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
    task_end_offsets = message.task_end_offsets
    if task_end_offsets is None:
        out.append(0)
    else:
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
    out += pack_tx(message.shutdown_application)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[StreamsGroupHeartbeatResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
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
    member_id = view[position:end].tobytes().decode()
    position = end
    (
        member_epoch,
        heartbeat_interval_ms,
        acceptable_recovery_lag,
        task_offset_interval_ms,
        count,
    ) = unpack_iiiiB(view, position)
    position += 17
    status: list[Status] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        status = []
        for _ in range(count - 1):
            status_code, size = unpack_bB(view, position)
            position += 2
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            status_detail = view[position:end].tobytes().decode()
            position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            status.append(Status(status_code, status_detail))
    count = view[position]
    position += 1
    active_tasks: list[TaskIds] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        active_tasks = []
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
    standby_tasks: list[TaskIds] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        standby_tasks = []
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
    warmup_tasks: list[TaskIds] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        warmup_tasks = []
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
    endpoint_information_epoch, count = unpack_iB(view, position)
    position += 5
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 7)
        partitions_by_user_endpoint = []
        for _ in range(count - 1):
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
            active_partitions: list[TopicPartition] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                topic = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                active_partitions_partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                active_partitions.append(TopicPartition(topic, active_partitions_partitions))
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 3)
            standby_partitions: list[TopicPartition] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                standby_partitions_topic = view[position:end].tobytes().decode()
                position = end
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 4)
                count -= 1
                standby_partitions_partitions = list(unpack_from(f">{count}i", view, position))
                position += count * 4
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                standby_partitions.append(
                    TopicPartition(standby_partitions_topic, standby_partitions_partitions)
                )
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions_by_user_endpoint.append(
                EndpointToPartitions(user_endpoint, active_partitions, standby_partitions)
            )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = StreamsGroupHeartbeatResponse(
        throttle_time_ms,
        error_code,
        error_message,
        member_id,
        member_epoch,
        heartbeat_interval_ms,
        acceptable_recovery_lag,
        task_offset_interval_ms,
        status,
        active_tasks,
        standby_tasks,
        warmup_tasks,
        endpoint_information_epoch,
        partitions_by_user_endpoint,
    )
    return message, position


def encode_response_v0(message: StreamsGroupHeartbeatResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
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
    member_id = message.member_id
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    status = message.status
    out += pack_iiii(
        message.member_epoch,
        message.heartbeat_interval_ms,
        message.acceptable_recovery_lag,
        message.task_offset_interval_ms,
    )
    if status is None:
        out.append(0)
    else:
        size = len(status) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for status_status in status:
            status_detail = status_status.status_detail
            out += pack_b(status_status.status_code)
            data = status_detail.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out.append(0)
    active_tasks = message.active_tasks
    if active_tasks is None:
        out.append(0)
    else:
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
    if standby_tasks is None:
        out.append(0)
    else:
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
    if warmup_tasks is None:
        out.append(0)
    else:
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
    partitions_by_user_endpoint = message.partitions_by_user_endpoint
    out += pack_i(message.endpoint_information_epoch)
    if partitions_by_user_endpoint is None:
        out.append(0)
    else:
        size = len(partitions_by_user_endpoint) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for endpoint_to_partitions in partitions_by_user_endpoint:
            host = endpoint_to_partitions.user_endpoint.host
            data = host.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            active_partitions = endpoint_to_partitions.active_partitions
            out += pack_Hx(endpoint_to_partitions.user_endpoint.port)
            size = len(active_partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for topic_partition in active_partitions:
                topic = topic_partition.topic
                data = topic.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                topic_partition_partitions = topic_partition.partitions
                size = len(topic_partition_partitions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(topic_partition_partitions)}i", *topic_partition_partitions)
                out.append(0)
            standby_partitions = endpoint_to_partitions.standby_partitions
            size = len(standby_partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for standby_partitions_topic_partition in standby_partitions:
                standby_partitions_topic_partition_topic = standby_partitions_topic_partition.topic
                data = standby_partitions_topic_partition_topic.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                standby_partitions_topic_partition_partitions = standby_partitions_topic_partition.partitions
                size = len(standby_partitions_topic_partition_partitions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(standby_partitions_topic_partition_partitions)}i", *standby_partitions_topic_partition_partitions)
                out.append(0)
            out.append(0)
    out.append(0)
    return [out]


STREAMS_GROUP_HEARTBEAT = Api(
    88,
    "StreamsGroupHeartbeat",
    Message(
        "StreamsGroupHeartbeatRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "StreamsGroupHeartbeatResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
