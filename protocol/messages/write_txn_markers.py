"""WriteTxnMarkers: generated from write_txn_markers.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    check_elements,
    long_count,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    wrong_tag_size,
)

pack_16s = Struct(">16s").pack
pack_i = Struct(">i").pack
pack_ibx = Struct(">ibx").pack
pack_ihx = Struct(">ihx").pack
pack_ix = Struct(">ix").pack
pack_q = Struct(">q").pack
pack_qht = Struct(">qh?").pack
unpack_16s = Struct(">16s").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ibB = Struct(">ibB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_qB = Struct(">qB").unpack_from
unpack_qhtB = Struct(">qh?B").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerTopic(Structure):
    """Part of WriteTxnMarkers."""

    name: str
    partition_indexes: list[int]
    leader_epoch: int
    topic_id: bytes

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = ABSENT,
        leader_epoch: int = -1,
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
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: list[WritableTxnMarkerTopic] = ABSENT,
        coordinator_epoch: int = 0,
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

    def __init__(
        self,
        markers: list[WritableTxnMarker] = ABSENT,
    ) -> None:
        self.markers = [] if markers is ABSENT else markers


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerPartitionResult(Structure):
    """Part of WriteTxnMarkers."""

    partition_index: int
    error_code: int

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerTopicResult(Structure):
    """Part of WriteTxnMarkers."""

    name: str
    partitions: list[WritableTxnMarkerPartitionResult]

    def __init__(
        self,
        name: str = "",
        partitions: list[WritableTxnMarkerPartitionResult] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class WritableTxnMarkerResult(Structure):
    """Part of WriteTxnMarkers."""

    producer_id: int
    topics: list[WritableTxnMarkerTopicResult]

    def __init__(
        self,
        producer_id: int = 0,
        topics: list[WritableTxnMarkerTopicResult] = ABSENT,
    ) -> None:
        self.producer_id = producer_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class WriteTxnMarkersResponse(Structure):
    """WriteTxnMarkers, versions 1-2."""

    markers: list[WritableTxnMarkerResult]

    def __init__(
        self,
        markers: list[WritableTxnMarkerResult] = ABSENT,
    ) -> None:
        self.markers = [] if markers is ABSENT else markers


def decode_request_v1(view: memoryview, position: int) -> tuple[WriteTxnMarkersRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 17)
    markers: list[WritableTxnMarker] = []
    for _ in range(count - 1):
        producer_id, producer_epoch, transaction_result, count = unpack_qhtB(view, position)
        position += 12
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        topics: list[WritableTxnMarkerTopic] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            partition_indexes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            topics_tags = view[position]
            position += 1
            leader_epoch: int = -1
            topic_id: bytes = ZERO_UUID
            if topics_tags:
                elements = add_tags(view, position, topics_tags, elements)
                topics_tags, position = tag_count(view, position, topics_tags)
                for _ in range(topics_tags):
                    tag, position, topics_tag_end = read_tag(view, position)
                    if tag == 1000:
                        (leader_epoch,) = unpack_i(view, position)
                        position += 4
                        if position != topics_tag_end:
                            raise wrong_tag_size(1000)
                    elif tag == 1001:
                        (topic_id,) = unpack_16s(view, position)
                        position += 16
                        if position != topics_tag_end:
                            raise wrong_tag_size(1001)
                    position = topics_tag_end
            topics.append(WritableTxnMarkerTopic(name, partition_indexes, leader_epoch, topic_id))
        coordinator_epoch, tags = unpack_iB(view, position)
        position += 5
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        markers.append(
            WritableTxnMarker(
                producer_id,
                producer_epoch,
                transaction_result,
                topics,
                coordinator_epoch,
                0,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return WriteTxnMarkersRequest(markers), position


def encode_request_v1(message: WriteTxnMarkersRequest, out: bytearray) -> Chunks:
    markers = message.markers
    size = len(markers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for writable_txn_marker in markers:
        topics = writable_txn_marker.topics
        out += pack_qht(
            writable_txn_marker.producer_id,
            writable_txn_marker.producer_epoch,
            writable_txn_marker.transaction_result,
        )
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for writable_txn_marker_topic in topics:
            name = writable_txn_marker_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partition_indexes = writable_txn_marker_topic.partition_indexes
            size = len(partition_indexes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partition_indexes)}i", *partition_indexes)
            if (
                writable_txn_marker_topic.leader_epoch == -1
                and writable_txn_marker_topic.topic_id == ZERO_UUID
            ):
                out.append(0)
            else:
                writable_txn_marker_topic_tags = 0
                writable_txn_marker_topic_tagged = bytearray()
                if writable_txn_marker_topic.leader_epoch != -1:
                    writable_txn_marker_topic_tags += 1
                    leader_epoch_body = bytearray()
                    leader_epoch = writable_txn_marker_topic.leader_epoch
                    leader_epoch_body += pack_i(leader_epoch)
                    put_tag(writable_txn_marker_topic_tagged, 1000, leader_epoch_body)
                if writable_txn_marker_topic.topic_id != ZERO_UUID:
                    writable_txn_marker_topic_tags += 1
                    topic_id_body = bytearray()
                    topic_id = writable_txn_marker_topic.topic_id
                    topic_id_body += pack_16s(topic_id)
                    put_tag(writable_txn_marker_topic_tagged, 1001, topic_id_body)
                out.append(writable_txn_marker_topic_tags)
                out += writable_txn_marker_topic_tagged
        out += pack_ix(writable_txn_marker.coordinator_epoch)
    out.append(0)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[WriteTxnMarkersRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    markers: list[WritableTxnMarker] = []
    for _ in range(count - 1):
        producer_id, producer_epoch, transaction_result, count = unpack_qhtB(view, position)
        position += 12
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        topics: list[WritableTxnMarkerTopic] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            count -= 1
            partition_indexes = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            topics_tags = view[position]
            position += 1
            leader_epoch: int = -1
            topic_id: bytes = ZERO_UUID
            if topics_tags:
                elements = add_tags(view, position, topics_tags, elements)
                topics_tags, position = tag_count(view, position, topics_tags)
                for _ in range(topics_tags):
                    tag, position, topics_tag_end = read_tag(view, position)
                    if tag == 1000:
                        (leader_epoch,) = unpack_i(view, position)
                        position += 4
                        if position != topics_tag_end:
                            raise wrong_tag_size(1000)
                    elif tag == 1001:
                        (topic_id,) = unpack_16s(view, position)
                        position += 16
                        if position != topics_tag_end:
                            raise wrong_tag_size(1001)
                    position = topics_tag_end
            topics.append(WritableTxnMarkerTopic(name, partition_indexes, leader_epoch, topic_id))
        coordinator_epoch, transaction_version, tags = unpack_ibB(view, position)
        position += 6
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        markers.append(
            WritableTxnMarker(
                producer_id,
                producer_epoch,
                transaction_result,
                topics,
                coordinator_epoch,
                transaction_version,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return WriteTxnMarkersRequest(markers), position


def encode_request_v2(message: WriteTxnMarkersRequest, out: bytearray) -> Chunks:
    markers = message.markers
    size = len(markers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for writable_txn_marker in markers:
        topics = writable_txn_marker.topics
        out += pack_qht(
            writable_txn_marker.producer_id,
            writable_txn_marker.producer_epoch,
            writable_txn_marker.transaction_result,
        )
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for writable_txn_marker_topic in topics:
            name = writable_txn_marker_topic.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partition_indexes = writable_txn_marker_topic.partition_indexes
            size = len(partition_indexes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partition_indexes)}i", *partition_indexes)
            if (
                writable_txn_marker_topic.leader_epoch == -1
                and writable_txn_marker_topic.topic_id == ZERO_UUID
            ):
                out.append(0)
            else:
                writable_txn_marker_topic_tags = 0
                writable_txn_marker_topic_tagged = bytearray()
                if writable_txn_marker_topic.leader_epoch != -1:
                    writable_txn_marker_topic_tags += 1
                    leader_epoch_body = bytearray()
                    leader_epoch = writable_txn_marker_topic.leader_epoch
                    leader_epoch_body += pack_i(leader_epoch)
                    put_tag(writable_txn_marker_topic_tagged, 1000, leader_epoch_body)
                if writable_txn_marker_topic.topic_id != ZERO_UUID:
                    writable_txn_marker_topic_tags += 1
                    topic_id_body = bytearray()
                    topic_id = writable_txn_marker_topic.topic_id
                    topic_id_body += pack_16s(topic_id)
                    put_tag(writable_txn_marker_topic_tagged, 1001, topic_id_body)
                out.append(writable_txn_marker_topic_tags)
                out += writable_txn_marker_topic_tagged
        out += pack_ibx(
            writable_txn_marker.coordinator_epoch,
            writable_txn_marker.transaction_version,
        )
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[WriteTxnMarkersResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 10)
    markers: list[WritableTxnMarkerResult] = []
    for _ in range(count - 1):
        producer_id, count = unpack_qB(view, position)
        position += 9
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics: list[WritableTxnMarkerTopicResult] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 7)
            partitions: list[WritableTxnMarkerPartitionResult] = []
            for _ in range(count - 1):
                partition_index, error_code, tags = unpack_ihB(view, position)
                position += 7
                if tags:
                    position = skip_tags(view, position, tags)
                partitions.append(WritableTxnMarkerPartitionResult(partition_index, error_code))
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topics.append(WritableTxnMarkerTopicResult(name, partitions))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        markers.append(WritableTxnMarkerResult(producer_id, topics))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return WriteTxnMarkersResponse(markers), position


def encode_response_v1(message: WriteTxnMarkersResponse, out: bytearray) -> Chunks:
    markers = message.markers
    size = len(markers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for writable_txn_marker_result in markers:
        topics = writable_txn_marker_result.topics
        out += pack_q(writable_txn_marker_result.producer_id)
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for writable_txn_marker_topic_result in topics:
            name = writable_txn_marker_topic_result.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partitions = writable_txn_marker_topic_result.partitions
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for writable_txn_marker_partition_result in partitions:
                out += pack_ihx(
                    writable_txn_marker_partition_result.partition_index,
                    writable_txn_marker_partition_result.error_code,
                )
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


WRITE_TXN_MARKERS = Api(
    27,
    "WriteTxnMarkers",
    Message(
        "WriteTxnMarkersRequest",
        (1, 2),
        1,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "WriteTxnMarkersResponse",
        (1, 2),
        1,
        {
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
