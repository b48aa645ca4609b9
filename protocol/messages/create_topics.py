"""CreateTopics: generated from create_topics.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableReplicaAssignment(Structure):
    """Part of CreateTopics."""

    partition_index: int
    broker_ids: list[int]

    def __init__(self, partition_index: int = 0, broker_ids: list[int] = ABSENT) -> None:
        self.partition_index = partition_index
        self.broker_ids = [] if broker_ids is ABSENT else broker_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class CreatableTopicConfig(Structure):
    """Part of CreateTopics."""

    name: str
    value: str | None

    def __init__(self, name: str = "", value: str | None = "") -> None:
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
        self, name: str = "", num_partitions: int = 0, replication_factor: int = 0,
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
        self, topics: list[CreatableTopic] = ABSENT, timeout_ms: int = 60000,
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
        self, name: str = "", value: str | None = "", read_only: bool = False,
        config_source: int = -1, is_sensitive: bool = False,
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
        self, name: str = "", topic_id: bytes = ZERO_UUID, error_code: int = 0,
        error_message: str | None = "", topic_config_error_code: int = 0, num_partitions: int = -1,
        replication_factor: int = -1, configs: list[CreatableTopicConfigs] | None = ABSENT,
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
        self, throttle_time_ms: int = 0, topics: list[CreatableTopicResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = [] if topics is ABSENT else topics


def read_creatable_replica_assignment(reader: Reader, version: int) -> CreatableReplicaAssignment:
    message = CreatableReplicaAssignment(reader.int32(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_creatable_replica_assignment(
    writer: Writer, message: CreatableReplicaAssignment, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.values(message.broker_ids, writer.int32)
    writer.no_tags()


def read_creatable_topic_config(reader: Reader, version: int) -> CreatableTopicConfig:
    message = CreatableTopicConfig(reader.string(), reader.optional_string())
    reader.skip_tags()
    return message


def write_creatable_topic_config(
    writer: Writer, message: CreatableTopicConfig, version: int
) -> None:
    writer.string(message.name)
    writer.optional_string(message.value)
    writer.no_tags()


def read_creatable_topic(reader: Reader, version: int) -> CreatableTopic:
    message = CreatableTopic(
        reader.string(),
        reader.int32(),
        reader.int16(),
        reader.array(read_creatable_replica_assignment, version, 6),
        reader.array(read_creatable_topic_config, version, 3),
    )
    reader.skip_tags()
    return message


def write_creatable_topic(writer: Writer, message: CreatableTopic, version: int) -> None:
    writer.string(message.name)
    writer.int32(message.num_partitions)
    writer.int16(message.replication_factor)
    writer.array(message.assignments, write_creatable_replica_assignment, version)
    writer.array(message.configs, write_creatable_topic_config, version)
    writer.no_tags()


def read_create_topics_request(reader: Reader, version: int) -> CreateTopicsRequest:
    message = CreateTopicsRequest(
        reader.array(read_creatable_topic, version, 10),
        reader.int32(),
        reader.boolean(),
    )
    reader.skip_tags()
    return message


def write_create_topics_request(writer: Writer, message: CreateTopicsRequest, version: int) -> None:
    writer.array(message.topics, write_creatable_topic, version)
    writer.int32(message.timeout_ms)
    writer.boolean(message.validate_only)
    writer.no_tags()


def read_creatable_topic_configs(reader: Reader, version: int) -> CreatableTopicConfigs:
    message = CreatableTopicConfigs(
        reader.string(),
        reader.optional_string(),
        reader.boolean(),
        reader.int8(),
        reader.boolean(),
    )
    reader.skip_tags()
    return message


def write_creatable_topic_configs(
    writer: Writer, message: CreatableTopicConfigs, version: int
) -> None:
    writer.string(message.name)
    writer.optional_string(message.value)
    writer.boolean(message.read_only)
    writer.int8(message.config_source)
    writer.boolean(message.is_sensitive)
    writer.no_tags()


def read_creatable_topic_result(reader: Reader, version: int) -> CreatableTopicResult:
    message = CreatableTopicResult(
        reader.string(),
        reader.uuid() if version >= 7 else ZERO_UUID,
        reader.int16(),
        reader.optional_string(),
        num_partitions=reader.int32() if version >= 5 else -1,
        replication_factor=reader.int16() if version >= 5 else -1,
        configs=reader.optional_array(read_creatable_topic_configs, version, 6) if version >= 5 else [],
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.topic_config_error_code = reader.int16()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_creatable_topic_result(
    writer: Writer, message: CreatableTopicResult, version: int
) -> None:
    writer.string(message.name)
    if version >= 7:
        writer.uuid(message.topic_id)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    if version >= 5:
        writer.int32(message.num_partitions)
    if version >= 5:
        writer.int16(message.replication_factor)
    if version >= 5:
        writer.optional_array(message.configs, write_creatable_topic_configs, version)
    tagged = TaggedFields()
    if message.topic_config_error_code:
        tagged.int16(message.topic_config_error_code)
        tagged.end(0)
    writer.tags(tagged)


def read_create_topics_response(reader: Reader, version: int) -> CreateTopicsResponse:
    message = CreateTopicsResponse(
        reader.int32(),
        reader.array(read_creatable_topic_result, version, 6),
    )
    reader.skip_tags()
    return message


def write_create_topics_response(
    writer: Writer, message: CreateTopicsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.topics, write_creatable_topic_result, version)
    writer.no_tags()


CREATE_TOPICS = Api(
    19,
    "CreateTopics",
    message_of_fields(
        "CreateTopicsRequest", (2, 7), 5, read_create_topics_request, write_create_topics_request,
        bounded=True,
    ),
    message_of_fields(
        "CreateTopicsResponse", (2, 7), 5, read_create_topics_response, write_create_topics_response
    ),
)
