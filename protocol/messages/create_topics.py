"""CreateTopics: generated from create_topics.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    check_count,
    check_elements,
    long_count,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    varint_tail,
    wrong_tag_size,
)

pack_16sh = Struct(">16sh").pack
pack_tbtx = Struct(">?b?x").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_it = Struct(">i?").pack
pack_itx = Struct(">i?x").pack
pack_ih = Struct(">ih").pack
pack_ihi = Struct(">ihi").pack
pack_ii = Struct(">ii").pack
unpack_16shB = Struct(">16shB").unpack_from
unpack_tbtB = Struct(">?b?B").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_it = Struct(">i?").unpack_from
unpack_itB = Struct(">i?B").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihi = Struct(">ihi").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableReplicaAssignment(Structure):
    """Part of CreateTopics."""

    partition_index: int
    broker_ids: list[int]

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is ABSENT else broker_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableTopicConfig(Structure):
    """Part of CreateTopics."""

    name: str
    value: str | None

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableTopic(Structure):
    """Part of CreateTopics."""

    name: str
    num_partitions: int
    replication_factor: int
    assignments: list[CreatableReplicaAssignment]
    configs: list[CreatableTopicConfig]

    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] = ABSENT,
        configs: list[CreatableTopicConfig] = ABSENT,
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = [] if assignments is ABSENT else assignments
        self.configs = [] if configs is ABSENT else configs


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateTopicsRequest(Structure):
    """CreateTopics, versions 2-7."""

    topics: list[CreatableTopic]
    timeout_ms: int
    validate_only: bool

    def __init__(
        self,
        topics: list[CreatableTopic] = ABSENT,
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableTopicConfigs(Structure):
    """Part of CreateTopics."""

    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableTopicResult(Structure):
    """Part of CreateTopics."""

    name: str
    topic_id: bytes
    error_code: int
    error_message: str | None
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: list[CreatableTopicConfigs] | None

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.topic_config_error_code = topic_config_error_code
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = [] if configs is ABSENT else configs


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreateTopicsResponse(Structure):
    """CreateTopics, versions 2-7."""

    throttle_time_ms: int
    topics: list[CreatableTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def decode_request_v2(view: memoryview, position: int) -> tuple[CreateTopicsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 16)
    topics: list[CreatableTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("CreatableTopic.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        num_partitions, replication_factor, count = unpack_ihi(view, position)
        position += 10
        if not 0 <= count < 0x80:
            check_count(view, position, count, 8)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        assignments: list[CreatableReplicaAssignment] = []
        for _ in range(count):
            partition_index, count = unpack_ii(view, position)
            position += 8
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            broker_ids = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            assignments.append(CreatableReplicaAssignment(partition_index, broker_ids))
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        configs: list[CreatableTopicConfig] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("CreatableTopicConfig.name: negative length")
            end = position + size
            configs_name = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            value: str | None = None
            if size >= 0:
                end = position + size
                value = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("CreatableTopicConfig.value: negative length")
            configs.append(CreatableTopicConfig(configs_name, value))
        topics.append(
            CreatableTopic(name, num_partitions, replication_factor, assignments, configs)
        )
    timeout_ms, validate_only = unpack_it(view, position)
    position += 5
    return CreateTopicsRequest(topics, timeout_ms, validate_only), position


def encode_request_v2(message: CreateTopicsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(len(topics))
    for creatable_topic in topics:
        name = creatable_topic.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        assignments = creatable_topic.assignments
        out += pack_ihi(
            creatable_topic.num_partitions,
            creatable_topic.replication_factor,
            len(assignments),
        )
        for creatable_replica_assignment in assignments:
            broker_ids = creatable_replica_assignment.broker_ids
            out += pack_ii(creatable_replica_assignment.partition_index, len(broker_ids))
            out += pack(f">{len(broker_ids)}i", *broker_ids)
        configs = creatable_topic.configs
        out += pack_i(len(configs))
        for creatable_topic_config in configs:
            creatable_topic_config_name = creatable_topic_config.name
            data = creatable_topic_config_name.encode()
            out += pack_h(len(data))
            out += data
            value = creatable_topic_config.value
            data = b"" if value is None else value.encode()
            out += pack_h(-1 if value is None else len(data))
            out += data
    out += pack_it(message.timeout_ms, message.validate_only)
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[CreateTopicsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 10)
    topics: list[CreatableTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        num_partitions, replication_factor, count = unpack_ihB(view, position)
        position += 7
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        assignments: list[CreatableReplicaAssignment] = []
        for _ in range(count - 1):
            partition_index, count = unpack_iB(view, position)
            position += 5
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            broker_ids = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            assignments.append(CreatableReplicaAssignment(partition_index, broker_ids))
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        configs: list[CreatableTopicConfig] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            configs_name = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            value: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                value = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            configs.append(CreatableTopicConfig(configs_name, value))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(
            CreatableTopic(name, num_partitions, replication_factor, assignments, configs)
        )
    timeout_ms, validate_only, tags = unpack_itB(view, position)
    position += 6
    if tags:
        position = skip_tags(view, position, tags)
    return CreateTopicsRequest(topics, timeout_ms, validate_only), position


def encode_request_v5(message: CreateTopicsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for creatable_topic in topics:
        name = creatable_topic.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        assignments = creatable_topic.assignments
        out += pack_ih(creatable_topic.num_partitions, creatable_topic.replication_factor)
        size = len(assignments) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for creatable_replica_assignment in assignments:
            broker_ids = creatable_replica_assignment.broker_ids
            out += pack_i(creatable_replica_assignment.partition_index)
            size = len(broker_ids) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(broker_ids)}i", *broker_ids)
            out.append(0)
        configs = creatable_topic.configs
        size = len(configs) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for creatable_topic_config in configs:
            creatable_topic_config_name = creatable_topic_config.name
            data = creatable_topic_config_name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            value = creatable_topic_config.value
            if value is None:
                out.append(0)
            else:
                data = value.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        out.append(0)
    out += pack_itx(message.timeout_ms, message.validate_only)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[CreateTopicsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[CreatableTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("CreatableTopicResult.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("CreatableTopicResult.error_message: negative length")
        topics.append(
            CreatableTopicResult(name, ZERO_UUID, error_code, error_message, 0, -1, -1, [])
        )
    return CreateTopicsResponse(throttle_time_ms, topics), position


def encode_response_v2(message: CreateTopicsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_ii(message.throttle_time_ms, len(topics))
    for creatable_topic_result in topics:
        name = creatable_topic_result.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        error_message = creatable_topic_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(
            creatable_topic_result.error_code,
            -1 if error_message is None else len(data),
        )
        out += data
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[CreateTopicsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 12)
    topics: list[CreatableTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        error_code, size = unpack_hB(view, position)
        position += 3
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        num_partitions, replication_factor, count = unpack_ihB(view, position)
        position += 7
        configs: list[CreatableTopicConfigs] | None = None
        if count:
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 6)
            configs = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                configs_name = view[position:end].tobytes().decode()
                position = end
                size = view[position]
                position += 1
                value: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    value = view[position:end].tobytes().decode()
                    position = end
                read_only, config_source, is_sensitive, tags = unpack_tbtB(view, position)
                position += 4
                if tags:
                    position = skip_tags(view, position, tags)
                configs.append(
                    CreatableTopicConfigs(
                        configs_name,
                        value,
                        read_only,
                        config_source,
                        is_sensitive,
                    )
                )
        topics_tags = view[position]
        position += 1
        topic_config_error_code: int = 0
        if topics_tags:
            topics_tags, position = tag_count(view, position, topics_tags)
            for _ in range(topics_tags):
                tag, position, topics_tag_end = read_tag(view, position)
                if tag == 0:
                    (topic_config_error_code,) = unpack_h(view, position)
                    position += 2
                    if position != topics_tag_end:
                        raise wrong_tag_size(0)
                position = topics_tag_end
        topics.append(
            CreatableTopicResult(
                name,
                ZERO_UUID,
                error_code,
                error_message,
                topic_config_error_code,
                num_partitions,
                replication_factor,
                configs,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return CreateTopicsResponse(throttle_time_ms, topics), position


def encode_response_v5(message: CreateTopicsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for creatable_topic_result in topics:
        name = creatable_topic_result.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        error_message = creatable_topic_result.error_message
        out += pack_h(creatable_topic_result.error_code)
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
        configs = creatable_topic_result.configs
        out += pack_ih(
            creatable_topic_result.num_partitions,
            creatable_topic_result.replication_factor,
        )
        if configs is None:
            out.append(0)
        else:
            size = len(configs) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for creatable_topic_configs in configs:
                creatable_topic_configs_name = creatable_topic_configs.name
                data = creatable_topic_configs_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                value = creatable_topic_configs.value
                if value is None:
                    out.append(0)
                else:
                    data = value.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out += pack_tbtx(
                    creatable_topic_configs.read_only,
                    creatable_topic_configs.config_source,
                    creatable_topic_configs.is_sensitive,
                )
        if not creatable_topic_result.topic_config_error_code:
            out.append(0)
        else:
            creatable_topic_result_tags = 0
            creatable_topic_result_tagged = bytearray()
            if creatable_topic_result.topic_config_error_code:
                creatable_topic_result_tags += 1
                topic_config_error_code_body = bytearray()
                topic_config_error_code = creatable_topic_result.topic_config_error_code
                topic_config_error_code_body += pack_h(topic_config_error_code)
                put_tag(creatable_topic_result_tagged, 0, topic_config_error_code_body)
            out.append(creatable_topic_result_tags)
            out += creatable_topic_result_tagged
    out.append(0)
    return [out]


def decode_response_v7(view: memoryview, position: int) -> tuple[CreateTopicsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 28)
    topics: list[CreatableTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        topic_id, error_code, size = unpack_16shB(view, position)
        position += 19
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        num_partitions, replication_factor, count = unpack_ihB(view, position)
        position += 7
        configs: list[CreatableTopicConfigs] | None = None
        if count:
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 6)
            configs = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                configs_name = view[position:end].tobytes().decode()
                position = end
                size = view[position]
                position += 1
                value: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    value = view[position:end].tobytes().decode()
                    position = end
                read_only, config_source, is_sensitive, tags = unpack_tbtB(view, position)
                position += 4
                if tags:
                    position = skip_tags(view, position, tags)
                configs.append(
                    CreatableTopicConfigs(
                        configs_name,
                        value,
                        read_only,
                        config_source,
                        is_sensitive,
                    )
                )
        topics_tags = view[position]
        position += 1
        topic_config_error_code: int = 0
        if topics_tags:
            topics_tags, position = tag_count(view, position, topics_tags)
            for _ in range(topics_tags):
                tag, position, topics_tag_end = read_tag(view, position)
                if tag == 0:
                    (topic_config_error_code,) = unpack_h(view, position)
                    position += 2
                    if position != topics_tag_end:
                        raise wrong_tag_size(0)
                position = topics_tag_end
        topics.append(
            CreatableTopicResult(
                name,
                topic_id,
                error_code,
                error_message,
                topic_config_error_code,
                num_partitions,
                replication_factor,
                configs,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return CreateTopicsResponse(throttle_time_ms, topics), position


def encode_response_v7(message: CreateTopicsResponse, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.throttle_time_ms)
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for creatable_topic_result in topics:
        name = creatable_topic_result.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        error_message = creatable_topic_result.error_message
        out += pack_16sh(creatable_topic_result.topic_id, creatable_topic_result.error_code)
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
        configs = creatable_topic_result.configs
        out += pack_ih(
            creatable_topic_result.num_partitions,
            creatable_topic_result.replication_factor,
        )
        if configs is None:
            out.append(0)
        else:
            size = len(configs) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for creatable_topic_configs in configs:
                creatable_topic_configs_name = creatable_topic_configs.name
                data = creatable_topic_configs_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                value = creatable_topic_configs.value
                if value is None:
                    out.append(0)
                else:
                    data = value.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out += pack_tbtx(
                    creatable_topic_configs.read_only,
                    creatable_topic_configs.config_source,
                    creatable_topic_configs.is_sensitive,
                )
        if not creatable_topic_result.topic_config_error_code:
            out.append(0)
        else:
            creatable_topic_result_tags = 0
            creatable_topic_result_tagged = bytearray()
            if creatable_topic_result.topic_config_error_code:
                creatable_topic_result_tags += 1
                topic_config_error_code_body = bytearray()
                topic_config_error_code = creatable_topic_result.topic_config_error_code
                topic_config_error_code_body += pack_h(topic_config_error_code)
                put_tag(creatable_topic_result_tagged, 0, topic_config_error_code_body)
            out.append(creatable_topic_result_tags)
            out += creatable_topic_result_tagged
    out.append(0)
    return [out]


CREATE_TOPICS = Api(
    19,
    "CreateTopics",
    Message(
        "CreateTopicsRequest",
        (2, 7),
        5,
        {
            2: (decode_request_v2, encode_request_v2),
            5: (decode_request_v5, encode_request_v5),
        },
    ),
    Message(
        "CreateTopicsResponse",
        (2, 7),
        5,
        {
            2: (decode_response_v2, encode_response_v2),
            5: (decode_response_v5, encode_response_v5),
            7: (decode_response_v7, encode_response_v7),
        },
    ),
)
