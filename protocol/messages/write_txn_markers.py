"""WriteTxnMarkers: generated from write_txn_markers.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerTopic(Structure):
    """Part of WriteTxnMarkers."""

    name: str
    partition_indexes: list[int]
    leader_epoch: int
    topic_id: bytes

    def __init__(
        self, name: str = "", partition_indexes: list[int] = ABSENT, leader_epoch: int = -1,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes
        self.leader_epoch = leader_epoch
        self.topic_id = topic_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarker(Structure):
    """Part of WriteTxnMarkers."""

    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: int
    transaction_version: int

    def __init__(
        self, producer_id: int = 0, producer_epoch: int = 0, transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = ABSENT, coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = [] if topics is ABSENT else topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


@dataclass(slots=True, init=False, repr=False, eq=False)
class WriteTxnMarkersRequest(Structure):
    """WriteTxnMarkers, versions 1-2."""

    markers: list[WritableTxnMarker]

    def __init__(self, markers: list[WritableTxnMarker] = ABSENT) -> None:
        self.markers = [] if markers is ABSENT else markers


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerPartitionResult(Structure):
    """Part of WriteTxnMarkers."""

    partition_index: int
    error_code: int

    def __init__(self, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerTopicResult(Structure):
    """Part of WriteTxnMarkers."""

    name: str
    partitions: list[WritableTxnMarkerPartitionResult]

    def __init__(
        self, name: str = "", partitions: list[WritableTxnMarkerPartitionResult] = ABSENT
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerResult(Structure):
    """Part of WriteTxnMarkers."""

    producer_id: int
    topics: list[WritableTxnMarkerTopicResult]

    def __init__(
        self, producer_id: int = 0, topics: list[WritableTxnMarkerTopicResult] = ABSENT
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class WriteTxnMarkersResponse(Structure):
    """WriteTxnMarkers, versions 1-2."""

    markers: list[WritableTxnMarkerResult]

    def __init__(self, markers: list[WritableTxnMarkerResult] = ABSENT) -> None:
        self.markers = [] if markers is ABSENT else markers


def read_writable_txn_marker_topic(reader: Reader, version: int) -> WritableTxnMarkerTopic:
    message = WritableTxnMarkerTopic(reader.string(), reader.values(reader.int32, 4))
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.leader_epoch = reader.int32()
        elif tag == 1001:
            message.topic_id = reader.uuid()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_writable_txn_marker_topic(
    writer: Writer, message: WritableTxnMarkerTopic, version: int
) -> None:
    writer.string(message.name)
    writer.values(message.partition_indexes, writer.int32)
    tagged = TaggedFields()
    if message.leader_epoch != -1:
        tagged.int32(message.leader_epoch)
        tagged.end(1000)
    if message.topic_id != ZERO_UUID:
        tagged.uuid(message.topic_id)
        tagged.end(1001)
    writer.tags(tagged)


def read_writable_txn_marker(reader: Reader, version: int) -> WritableTxnMarker:
    message = WritableTxnMarker(
        reader.int64(),
        reader.int16(),
        reader.boolean(),
        reader.array(read_writable_txn_marker_topic, version, 3),
        reader.int32(),
        reader.int8() if version >= 2 else 0,
    )
    reader.skip_tags()
    return message


def write_writable_txn_marker(writer: Writer, message: WritableTxnMarker, version: int) -> None:
    writer.int64(message.producer_id)
    writer.int16(message.producer_epoch)
    writer.boolean(message.transaction_result)
    writer.array(message.topics, write_writable_txn_marker_topic, version)
    writer.int32(message.coordinator_epoch)
    if version >= 2:
        writer.int8(message.transaction_version)
    writer.no_tags()


def read_write_txn_markers_request(reader: Reader, version: int) -> WriteTxnMarkersRequest:
    message = WriteTxnMarkersRequest(reader.array(read_writable_txn_marker, version, 17))
    reader.skip_tags()
    return message


def write_write_txn_markers_request(
    writer: Writer, message: WriteTxnMarkersRequest, version: int
) -> None:
    writer.array(message.markers, write_writable_txn_marker, version)
    writer.no_tags()


def read_writable_txn_marker_partition_result(
    reader: Reader, version: int
) -> WritableTxnMarkerPartitionResult:
    message = WritableTxnMarkerPartitionResult(reader.int32(), reader.int16())
    reader.skip_tags()
    return message


def write_writable_txn_marker_partition_result(
    writer: Writer, message: WritableTxnMarkerPartitionResult, version: int
) -> None:
    writer.int32(message.partition_index)
    writer.int16(message.error_code)
    writer.no_tags()


def read_writable_txn_marker_topic_result(
    reader: Reader, version: int
) -> WritableTxnMarkerTopicResult:
    message = WritableTxnMarkerTopicResult(
        reader.string(),
        reader.array(read_writable_txn_marker_partition_result, version, 7),
    )
    reader.skip_tags()
    return message


def write_writable_txn_marker_topic_result(
    writer: Writer, message: WritableTxnMarkerTopicResult, version: int
) -> None:
    writer.string(message.name)
    writer.array(message.partitions, write_writable_txn_marker_partition_result, version)
    writer.no_tags()


def read_writable_txn_marker_result(reader: Reader, version: int) -> WritableTxnMarkerResult:
    message = WritableTxnMarkerResult(
        reader.int64(),
        reader.array(read_writable_txn_marker_topic_result, version, 3),
    )
    reader.skip_tags()
    return message


def write_writable_txn_marker_result(
    writer: Writer, message: WritableTxnMarkerResult, version: int
) -> None:
    writer.int64(message.producer_id)
    writer.array(message.topics, write_writable_txn_marker_topic_result, version)
    writer.no_tags()


def read_write_txn_markers_response(reader: Reader, version: int) -> WriteTxnMarkersResponse:
    message = WriteTxnMarkersResponse(reader.array(read_writable_txn_marker_result, version, 10))
    reader.skip_tags()
    return message


def write_write_txn_markers_response(
    writer: Writer, message: WriteTxnMarkersResponse, version: int
) -> None:
    writer.array(message.markers, write_writable_txn_marker_result, version)
    writer.no_tags()


WRITE_TXN_MARKERS = Api(
    27,
    "WriteTxnMarkers",
    message_of_fields(
        "WriteTxnMarkersRequest", (1, 2), 1, read_write_txn_markers_request,
        write_write_txn_markers_request, bounded=True,
    ),
    message_of_fields(
        "WriteTxnMarkersResponse", (1, 2), 1, read_write_txn_markers_response,
        write_write_txn_markers_response,
    ),
)
