"""Metadata: generated from metadata.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer, required


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataRequestTopic(Structure):
    """Part of Metadata."""

    topic_id: bytes
    name: str | None

    def __init__(self, topic_id: bytes = ZERO_UUID, name: str | None = "") -> None:
        self.topic_id = topic_id
        self.name = name


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataRequest(Structure):
    """Metadata, versions 0-13."""

    topics: list[MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool

    def __init__(
        self, topics: list[MetadataRequestTopic] | None = ABSENT,
        allow_auto_topic_creation: bool = True, include_cluster_authorized_operations: bool = False,
        include_topic_authorized_operations: bool = False,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponseBroker(Structure):
    """Part of Metadata."""

    node_id: int
    host: str
    port: int
    rack: str | None

    def __init__(
        self, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponsePartition(Structure):
    """Part of Metadata."""

    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]

    def __init__(
        self, error_code: int = 0, partition_index: int = 0, leader_id: int = 0,
        leader_epoch: int = -1, replica_nodes: list[int] = ABSENT, isr_nodes: list[int] = ABSENT,
        offline_replicas: list[int] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = [] if replica_nodes is ABSENT else replica_nodes
        self.isr_nodes = [] if isr_nodes is ABSENT else isr_nodes
        self.offline_replicas = [] if offline_replicas is ABSENT else offline_replicas


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponseTopic(Structure):
    """Part of Metadata."""

    error_code: int
    name: str | None
    topic_id: bytes
    is_internal: bool
    partitions: list[MetadataResponsePartition]
    topic_authorized_operations: int

    def __init__(
        self, error_code: int = 0, name: str | None = "", topic_id: bytes = ZERO_UUID,
        is_internal: bool = False, partitions: list[MetadataResponsePartition] = ABSENT,
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = [] if partitions is ABSENT else partitions
        self.topic_authorized_operations = topic_authorized_operations


@dataclass(slots=True, init=False, repr=False, eq=False)
class MetadataResponse(Structure):
    """Metadata, versions 0-13."""

    throttle_time_ms: int
    brokers: list[MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: list[MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int

    def __init__(
        self, throttle_time_ms: int = 0, brokers: list[MetadataResponseBroker] = ABSENT,
        cluster_id: str | None = None, controller_id: int = -1,
        topics: list[MetadataResponseTopic] = ABSENT,
        cluster_authorized_operations: int = -2147483648, error_code: int = 0,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = [] if brokers is ABSENT else brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = [] if topics is ABSENT else topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code


def read_metadata_request_topic(reader: Reader, version: int) -> MetadataRequestTopic:
    message = MetadataRequestTopic(
        reader.uuid() if version >= 10 else ZERO_UUID,
        (reader.optional_string() if version >= 10 else reader.string()),
    )
    reader.skip_tags()
    return message


def write_metadata_request_topic(
    writer: Writer, message: MetadataRequestTopic, version: int
) -> None:
    if version >= 10:
        writer.uuid(message.topic_id)
    if version >= 10:
        writer.optional_string(message.name)
    else:
        writer.string(required(message.name, "MetadataRequestTopic.name"))
    writer.no_tags()


def read_metadata_request(reader: Reader, version: int) -> MetadataRequest:
    message = MetadataRequest(
        (reader.optional_array(read_metadata_request_topic, version, 2) if version >= 1 else reader.array(read_metadata_request_topic, version, 2)),
        reader.boolean() if version >= 4 else True,
        reader.boolean() if 8 <= version <= 10 else False,
        reader.boolean() if version >= 8 else False,
    )
    reader.skip_tags()
    return message


def write_metadata_request(writer: Writer, message: MetadataRequest, version: int) -> None:
    if version >= 1:
        writer.optional_array(message.topics, write_metadata_request_topic, version)
    else:
        writer.array(required(message.topics, "MetadataRequest.topics"), write_metadata_request_topic, version)
    if version >= 4:
        writer.boolean(message.allow_auto_topic_creation)
    if 8 <= version <= 10:
        writer.boolean(message.include_cluster_authorized_operations)
    if version >= 8:
        writer.boolean(message.include_topic_authorized_operations)
    writer.no_tags()


def read_metadata_response_broker(reader: Reader, version: int) -> MetadataResponseBroker:
    message = MetadataResponseBroker(
        reader.int32(),
        reader.string(),
        reader.int32(),
        reader.optional_string() if version >= 1 else None,
    )
    reader.skip_tags()
    return message


def write_metadata_response_broker(
    writer: Writer, message: MetadataResponseBroker, version: int
) -> None:
    writer.int32(message.node_id)
    writer.string(message.host)
    writer.int32(message.port)
    if version >= 1:
        writer.optional_string(message.rack)
    writer.no_tags()


def read_metadata_response_partition(reader: Reader, version: int) -> MetadataResponsePartition:
    message = MetadataResponsePartition(
        reader.int16(),
        reader.int32(),
        reader.int32(),
        reader.int32() if version >= 7 else -1,
        reader.values(reader.int32, 4),
        reader.values(reader.int32, 4),
        reader.values(reader.int32, 4) if version >= 5 else [],
    )
    reader.skip_tags()
    return message


def write_metadata_response_partition(
    writer: Writer, message: MetadataResponsePartition, version: int
) -> None:
    writer.int16(message.error_code)
    writer.int32(message.partition_index)
    writer.int32(message.leader_id)
    if version >= 7:
        writer.int32(message.leader_epoch)
    writer.values(message.replica_nodes, writer.int32)
    writer.values(message.isr_nodes, writer.int32)
    if version >= 5:
        writer.values(message.offline_replicas, writer.int32)
    writer.no_tags()


def read_metadata_response_topic(reader: Reader, version: int) -> MetadataResponseTopic:
    message = MetadataResponseTopic(
        reader.int16(),
        (reader.optional_string() if version >= 12 else reader.string()),
        reader.uuid() if version >= 10 else ZERO_UUID,
        reader.boolean() if version >= 1 else False,
        reader.array(read_metadata_response_partition, version, 18),
        reader.int32() if version >= 8 else -2147483648,
    )
    reader.skip_tags()
    return message


def write_metadata_response_topic(
    writer: Writer, message: MetadataResponseTopic, version: int
) -> None:
    writer.int16(message.error_code)
    if version >= 12:
        writer.optional_string(message.name)
    else:
        writer.string(required(message.name, "MetadataResponseTopic.name"))
    if version >= 10:
        writer.uuid(message.topic_id)
    if version >= 1:
        writer.boolean(message.is_internal)
    writer.array(message.partitions, write_metadata_response_partition, version)
    if version >= 8:
        writer.int32(message.topic_authorized_operations)
    writer.no_tags()


def read_metadata_response(reader: Reader, version: int) -> MetadataResponse:
    message = MetadataResponse(
        reader.int32() if version >= 3 else 0,
        reader.array(read_metadata_response_broker, version, 10),
        reader.optional_string() if version >= 2 else None,
        reader.int32() if version >= 1 else -1,
        reader.array(read_metadata_response_topic, version, 8),
        reader.int32() if 8 <= version <= 10 else -2147483648,
        reader.int16() if version >= 13 else 0,
    )
    reader.skip_tags()
    return message


def write_metadata_response(writer: Writer, message: MetadataResponse, version: int) -> None:
    if version >= 3:
        writer.int32(message.throttle_time_ms)
    writer.array(message.brokers, write_metadata_response_broker, version)
    if version >= 2:
        writer.optional_string(message.cluster_id)
    if version >= 1:
        writer.int32(message.controller_id)
    writer.array(message.topics, write_metadata_response_topic, version)
    if 8 <= version <= 10:
        writer.int32(message.cluster_authorized_operations)
    if version >= 13:
        writer.int16(message.error_code)
    writer.no_tags()


METADATA = Api(
    3,
    "Metadata",
    message_of_fields(
        "MetadataRequest", (0, 13), 9, read_metadata_request, write_metadata_request, bounded=True
    ),
    message_of_fields("MetadataResponse", (0, 13), 9, read_metadata_response, write_metadata_response),
)
