"""ShareAcknowledge: generated from share_acknowledge.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcknowledgementBatch(Structure):
    """Part of ShareAcknowledge."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]

    def __init__(
        self, first_offset: int = 0, last_offset: int = 0, acknowledge_types: list[int] = ABSENT
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.acknowledge_types = [] if acknowledge_types is ABSENT else acknowledge_types


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcknowledgePartition(Structure):
    """Part of ShareAcknowledge."""

    partition_index: int
    acknowledgement_batches: list[AcknowledgementBatch]

    def __init__(
        self, partition_index: int = 0, acknowledgement_batches: list[AcknowledgementBatch] = ABSENT
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is ABSENT else acknowledgement_batches


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcknowledgeTopic(Structure):
    """Part of ShareAcknowledge."""

    topic_id: bytes
    partitions: list[AcknowledgePartition]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, partitions: list[AcknowledgePartition] = ABSENT
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareAcknowledgeRequest(Structure):
    """ShareAcknowledge, versions 1-2."""

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: list[AcknowledgeTopic]

    def __init__(
        self, group_id: str | None = None, member_id: str | None = "", share_session_epoch: int = 0,
        is_renew_ack: bool = False, topics: list[AcknowledgeTopic] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaderIdAndEpoch(Structure):
    """Part of ShareAcknowledge."""

    leader_id: int
    leader_epoch: int

    def __init__(self, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of ShareAcknowledge."""

    partition_index: int
    error_code: int
    error_message: str | None
    current_leader: LeaderIdAndEpoch

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is ABSENT else current_leader


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareAcknowledgeTopicResponse(Structure):
    """Part of ShareAcknowledge."""

    topic_id: bytes
    partitions: list[PartitionData]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, partitions: list[PartitionData] = ABSENT
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class NodeEndpoint(Structure):
    """Part of ShareAcknowledge."""

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
class ShareAcknowledgeResponse(Structure):
    """ShareAcknowledge, versions 1-2."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] = ABSENT,
        node_endpoints: list[NodeEndpoint] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is ABSENT else responses
        self.node_endpoints = [] if node_endpoints is ABSENT else node_endpoints


def read_acknowledgement_batch(reader: Reader, version: int) -> AcknowledgementBatch:
    message = AcknowledgementBatch(reader.int64(), reader.int64(), reader.values(reader.int8, 1))
    reader.skip_tags()
    return message


def write_acknowledgement_batch(
    writer: Writer, message: AcknowledgementBatch, version: int
) -> None:
    writer.int64(message.first_offset)
    writer.int64(message.last_offset)
    writer.values(message.acknowledge_types, writer.int8)
    writer.no_tags()


def read_acknowledge_partition(reader: Reader, version: int) -> AcknowledgePartition:
    message = AcknowledgePartition(
        reader.int32(),
        reader.array(read_acknowledgement_batch, version, 18),
    )
    reader.skip_tags()
    return message


def write_acknowledge_partition(
    writer: Writer, message: AcknowledgePartition, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.array(message.acknowledgement_batches, write_acknowledgement_batch, version)
    writer.no_tags()


def read_acknowledge_topic(reader: Reader, version: int) -> AcknowledgeTopic:
    message = AcknowledgeTopic(reader.uuid(), reader.array(read_acknowledge_partition, version, 6))
    reader.skip_tags()
    return message


def write_acknowledge_topic(writer: Writer, message: AcknowledgeTopic, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.array(message.partitions, write_acknowledge_partition, version)
    writer.no_tags()


def read_share_acknowledge_request(reader: Reader, version: int) -> ShareAcknowledgeRequest:
    message = ShareAcknowledgeRequest(
        reader.optional_string(),
        reader.optional_string(),
        reader.int32(),
        reader.boolean() if version >= 2 else False,
        reader.array(read_acknowledge_topic, version, 18),
    )
    reader.skip_tags()
    return message


def write_share_acknowledge_request(
    writer: Writer, message: ShareAcknowledgeRequest, version: int
) -> None:
    writer.optional_string(message.group_id)
    writer.optional_string(message.member_id)
    writer.int32(message.share_session_epoch)
    if version >= 2:
        writer.boolean(message.is_renew_ack)
    writer.array(message.topics, write_acknowledge_topic, version)
    writer.no_tags()


def read_leader_id_and_epoch(reader: Reader, version: int) -> LeaderIdAndEpoch:
    message = LeaderIdAndEpoch(reader.int32(), reader.int32())
    reader.skip_tags()
    return message


def write_leader_id_and_epoch(writer: Writer, message: LeaderIdAndEpoch, version: int) -> None:
    writer.int32(message.leader_id)
    writer.int32(message.leader_epoch)
    writer.no_tags()


def read_partition_data(reader: Reader, version: int) -> PartitionData:
    message = PartitionData(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        read_leader_id_and_epoch(reader, version),
    )
    reader.skip_tags()
    return message


def write_partition_data(writer: Writer, message: PartitionData, version: int) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    write_leader_id_and_epoch(writer, message.current_leader, version)
    writer.no_tags()


def read_share_acknowledge_topic_response(
    reader: Reader, version: int
) -> ShareAcknowledgeTopicResponse:
    message = ShareAcknowledgeTopicResponse(
        reader.uuid(),
        reader.array(read_partition_data, version, 17),
    )
    reader.skip_tags()
    return message


def write_share_acknowledge_topic_response(
    writer: Writer, message: ShareAcknowledgeTopicResponse, version: int
) -> None:
    writer.uuid(message.topic_id)
    writer.array(message.partitions, write_partition_data, version)
    writer.no_tags()


def read_node_endpoint(reader: Reader, version: int) -> NodeEndpoint:
    message = NodeEndpoint(
        reader.int32(),
        reader.string(),
        reader.int32(),
        reader.optional_string(),
    )
    reader.skip_tags()
    return message


def write_node_endpoint(writer: Writer, message: NodeEndpoint, version: int) -> None:
    writer.int32(message.node_id)
    writer.string(message.host)
    writer.int32(message.port)
    writer.optional_string(message.rack)
    writer.no_tags()


def read_share_acknowledge_response(reader: Reader, version: int) -> ShareAcknowledgeResponse:
    message = ShareAcknowledgeResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.int32() if version >= 2 else 0,
        reader.array(read_share_acknowledge_topic_response, version, 18),
        reader.array(read_node_endpoint, version, 11),
    )
    reader.skip_tags()
    return message


def write_share_acknowledge_response(
    writer: Writer, message: ShareAcknowledgeResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    if version >= 2:
        writer.int32(message.acquisition_lock_timeout_ms)
    writer.array(message.responses, write_share_acknowledge_topic_response, version)
    writer.array(message.node_endpoints, write_node_endpoint, version)
    writer.no_tags()


SHARE_ACKNOWLEDGE = Api(
    79,
    "ShareAcknowledge",
    message_of_fields(
        "ShareAcknowledgeRequest", (1, 2), 1, read_share_acknowledge_request,
        write_share_acknowledge_request, bounded=True,
    ),
    message_of_fields(
        "ShareAcknowledgeResponse", (1, 2), 1, read_share_acknowledge_response,
        write_share_acknowledge_response,
    ),
)
