"""ShareFetch: generated from share_fetch.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer, required


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcknowledgementBatch(Structure):
    """Part of ShareFetch."""

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
class FetchPartition(Structure):
    """Part of ShareFetch."""

    partition_index: int
    acknowledgement_batches: list[AcknowledgementBatch]

    def __init__(
        self, partition_index: int = 0, acknowledgement_batches: list[AcknowledgementBatch] = ABSENT
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is ABSENT else acknowledgement_batches


@dataclass(slots=True, init=False, repr=False, eq=False)
class FetchTopic(Structure):
    """Part of ShareFetch."""

    topic_id: bytes
    partitions: list[FetchPartition]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, partitions: list[FetchPartition] = ABSENT
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ForgottenTopic(Structure):
    """Part of ShareFetch."""

    topic_id: bytes
    partitions: list[int]

    def __init__(self, topic_id: bytes = ZERO_UUID, partitions: list[int] = ABSENT) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareFetchRequest(Structure):
    """ShareFetch, versions 1-2."""

    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]

    def __init__(
        self, group_id: str | None = None, member_id: str | None = "", share_session_epoch: int = 0,
        max_wait_ms: int = 0, min_bytes: int = 0, max_bytes: int = 2147483647, max_records: int = 0,
        batch_size: int = 0, share_acquire_mode: int = 0, is_renew_ack: bool = False,
        topics: list[FetchTopic] = ABSENT, forgotten_topics_data: list[ForgottenTopic] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.share_session_epoch = share_session_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.max_records = max_records
        self.batch_size = batch_size
        self.share_acquire_mode = share_acquire_mode
        self.is_renew_ack = is_renew_ack
        self.topics = [] if topics is ABSENT else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is ABSENT else forgotten_topics_data


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaderIdAndEpoch(Structure):
    """Part of ShareFetch."""

    leader_id: int
    leader_epoch: int

    def __init__(self, leader_id: int = 0, leader_epoch: int = 0) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcquiredRecords(Structure):
    """Part of ShareFetch."""

    first_offset: int
    last_offset: int
    delivery_count: int

    def __init__(
        self, first_offset: int = 0, last_offset: int = 0, delivery_count: int = 0
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_count = delivery_count


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of ShareFetch."""

    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    current_leader: LeaderIdAndEpoch
    records: memoryview | None
    acquired_records: list[AcquiredRecords]

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, error_message: str | None = None,
        acknowledge_error_code: int = 0, acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = ABSENT, records: memoryview | None = None,
        acquired_records: list[AcquiredRecords] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.acknowledge_error_code = acknowledge_error_code
        self.acknowledge_error_message = acknowledge_error_message
        self.current_leader = LeaderIdAndEpoch() if current_leader is ABSENT else current_leader
        self.records = records
        self.acquired_records = [] if acquired_records is ABSENT else acquired_records


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareFetchableTopicResponse(Structure):
    """Part of ShareFetch."""

    topic_id: bytes
    partitions: list[PartitionData]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, partitions: list[PartitionData] = ABSENT
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class NodeEndpoint(Structure):
    """Part of ShareFetch."""

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
class ShareFetchResponse(Structure):
    """ShareFetch, versions 1-2."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout_ms: int
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0, responses: list[ShareFetchableTopicResponse] = ABSENT,
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


def read_fetch_partition(reader: Reader, version: int) -> FetchPartition:
    message = FetchPartition(reader.int32(), reader.array(read_acknowledgement_batch, version, 18))
    reader.skip_tags()
    return message


def write_fetch_partition(writer: Writer, message: FetchPartition, version: int) -> None:
    writer.int32(message.partition_index)
    writer.array(message.acknowledgement_batches, write_acknowledgement_batch, version)
    writer.no_tags()


def read_fetch_topic(reader: Reader, version: int) -> FetchTopic:
    message = FetchTopic(reader.uuid(), reader.array(read_fetch_partition, version, 6))
    reader.skip_tags()
    return message


def write_fetch_topic(writer: Writer, message: FetchTopic, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.array(message.partitions, write_fetch_partition, version)
    writer.no_tags()


def read_forgotten_topic(reader: Reader, version: int) -> ForgottenTopic:
    message = ForgottenTopic(reader.uuid(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_forgotten_topic(writer: Writer, message: ForgottenTopic, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_share_fetch_request(reader: Reader, version: int) -> ShareFetchRequest:
    message = ShareFetchRequest(
        reader.optional_string(),
        reader.optional_string(),
        reader.int32(),
        reader.int32(),
        reader.int32(),
        reader.int32(),
        reader.int32(),
        reader.int32(),
        reader.int8() if version >= 2 else 0,
        reader.boolean() if version >= 2 else False,
        reader.array(read_fetch_topic, version, 18),
        reader.array(read_forgotten_topic, version, 18),
    )
    reader.skip_tags()
    return message


def write_share_fetch_request(writer: Writer, message: ShareFetchRequest, version: int) -> None:
    writer.optional_string(message.group_id)
    writer.optional_string(message.member_id)
    writer.int32(message.share_session_epoch)
    writer.int32(message.max_wait_ms)
    writer.int32(message.min_bytes)
    writer.int32(message.max_bytes)
    writer.int32(message.max_records)
    writer.int32(message.batch_size)
    if version >= 2:
        writer.int8(message.share_acquire_mode)
    if version >= 2:
        writer.boolean(message.is_renew_ack)
    writer.array(message.topics, write_fetch_topic, version)
    writer.array(message.forgotten_topics_data, write_forgotten_topic, version)
    writer.no_tags()


def read_leader_id_and_epoch(reader: Reader, version: int) -> LeaderIdAndEpoch:
    message = LeaderIdAndEpoch(reader.int32(), reader.int32())
    reader.skip_tags()
    return message


def write_leader_id_and_epoch(writer: Writer, message: LeaderIdAndEpoch, version: int) -> None:
    writer.int32(message.leader_id)
    writer.int32(message.leader_epoch)
    writer.no_tags()


def read_acquired_records(reader: Reader, version: int) -> AcquiredRecords:
    message = AcquiredRecords(reader.int64(), reader.int64(), reader.int16())
    reader.skip_tags()
    return message


def write_acquired_records(writer: Writer, message: AcquiredRecords, version: int) -> None:
    writer.int64(message.first_offset)
    writer.int64(message.last_offset)
    writer.int16(message.delivery_count)
    writer.no_tags()


def read_partition_data(reader: Reader, version: int) -> PartitionData:
    message = PartitionData(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.int16(),
        reader.optional_string(),
        read_leader_id_and_epoch(reader, version),
        reader.records(),
        reader.array(read_acquired_records, version, 19),
    )
    reader.skip_tags()
    return message


def write_partition_data(writer: Writer, message: PartitionData, version: int) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.int16(message.acknowledge_error_code)
    writer.optional_string(message.acknowledge_error_message)
    write_leader_id_and_epoch(writer, message.current_leader, version)
    writer.records(required(message.records, "PartitionData.records"))
    writer.array(message.acquired_records, write_acquired_records, version)
    writer.no_tags()


def read_share_fetchable_topic_response(
    reader: Reader, version: int
) -> ShareFetchableTopicResponse:
    message = ShareFetchableTopicResponse(
        reader.uuid(),
        reader.array(read_partition_data, version, 22),
    )
    reader.skip_tags()
    return message


def write_share_fetchable_topic_response(
    writer: Writer, message: ShareFetchableTopicResponse, version: int
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


def read_share_fetch_response(reader: Reader, version: int) -> ShareFetchResponse:
    message = ShareFetchResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.int32(),
        reader.array(read_share_fetchable_topic_response, version, 18),
        reader.array(read_node_endpoint, version, 11),
    )
    reader.skip_tags()
    return message


def write_share_fetch_response(writer: Writer, message: ShareFetchResponse, version: int) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.int32(message.acquisition_lock_timeout_ms)
    writer.array(message.responses, write_share_fetchable_topic_response, version)
    writer.array(message.node_endpoints, write_node_endpoint, version)
    writer.no_tags()


SHARE_FETCH = Api(
    78,
    "ShareFetch",
    message_of_fields(
        "ShareFetchRequest", (1, 2), 1, read_share_fetch_request, write_share_fetch_request,
        bounded=True,
    ),
    message_of_fields(
        "ShareFetchResponse", (1, 2), 1, read_share_fetch_response, write_share_fetch_response
    ),
)
