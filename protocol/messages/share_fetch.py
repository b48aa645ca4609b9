"""ShareFetch: generated from share_fetch.schema by protocol/generate. Do not edit."""

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
    null_value,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_iiiiii = Struct(">iiiiii").pack
pack_iiiiiibt = Struct(">iiiiiib?").pack
pack_iix = Struct(">iix").pack
pack_qq = Struct(">qq").pack
pack_qqhx = Struct(">qqhx").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iiiiiiB = Struct(">iiiiiiB").unpack_from
unpack_iiiiiibtB = Struct(">iiiiiib?B").unpack_from
unpack_qqB = Struct(">qqB").unpack_from
unpack_qqhB = Struct(">qqhB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcknowledgementBatch(Structure):
    """Part of ShareFetch."""

    first_offset: int
    last_offset: int
    acknowledge_types: list[int]

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] = ABSENT,
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
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.acknowledgement_batches = [] if acknowledgement_batches is ABSENT else acknowledgement_batches


@dataclass(slots=True, init=False, repr=False, eq=False)
class FetchTopic(Structure):
    """Part of ShareFetch."""

    topic_id: bytes
    partitions: list[FetchPartition]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ForgottenTopic(Structure):
    """Part of ShareFetch."""

    topic_id: bytes
    partitions: list[int]

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = ABSENT,
    ) -> None:
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
        self,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] = ABSENT,
        forgotten_topics_data: list[ForgottenTopic] = ABSENT,
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

    def __init__(
        self,
        leader_id: int = 0,
        leader_epoch: int = 0,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class AcquiredRecords(Structure):
    """Part of ShareFetch."""

    first_offset: int
    last_offset: int
    delivery_count: int

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_count: int = 0,
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
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acknowledge_error_code: int = 0,
        acknowledge_error_message: str | None = None,
        current_leader: LeaderIdAndEpoch = ABSENT,
        records: memoryview | None = None,
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
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] = ABSENT,
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
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
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
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareFetchableTopicResponse] = ABSENT,
        node_endpoints: list[NodeEndpoint] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.acquisition_lock_timeout_ms = acquisition_lock_timeout_ms
        self.responses = [] if responses is ABSENT else responses
        self.node_endpoints = [] if node_endpoints is ABSENT else node_endpoints


def decode_request_v1(view: memoryview, position: int) -> tuple[ShareFetchRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    group_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    member_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        member_id = view[position:end].tobytes().decode()
        position = end
    (
        share_session_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        max_records,
        batch_size,
        count,
    ) = unpack_iiiiiiB(view, position)
    position += 25
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[FetchTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            partition_index, count = unpack_iB(view, position)
            position += 5
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 18)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            acknowledgement_batches: list[AcknowledgementBatch] = []
            for _ in range(count - 1):
                first_offset, last_offset, count = unpack_qqB(view, position)
                position += 17
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 1)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                acknowledge_types = list(unpack_from(f">{count}b", view, position))
                position += count
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                acknowledgement_batches.append(
                    AcknowledgementBatch(first_offset, last_offset, acknowledge_types)
                )
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(FetchPartition(partition_index, acknowledgement_batches))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic(topic_id, partitions))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count - 1):
        forgotten_topics_data_topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        count -= 1
        forgotten_topics_data_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        forgotten_topics_data.append(
            ForgottenTopic(forgotten_topics_data_topic_id, forgotten_topics_data_partitions)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareFetchRequest(
        group_id,
        member_id,
        share_session_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        max_records,
        batch_size,
        0,
        False,
        topics,
        forgotten_topics_data,
    )
    return message, position


def encode_request_v1(message: ShareFetchRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    if group_id is None:
        out.append(0)
    else:
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    member_id = message.member_id
    if member_id is None:
        out.append(0)
    else:
        data = member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_iiiiii(
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
    )
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for fetch_topic in topics:
        partitions = fetch_topic.partitions
        out += pack_16s(fetch_topic.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for fetch_partition in partitions:
            acknowledgement_batches = fetch_partition.acknowledgement_batches
            out += pack_i(fetch_partition.partition_index)
            size = len(acknowledgement_batches) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for acknowledgement_batch in acknowledgement_batches:
                acknowledge_types = acknowledgement_batch.acknowledge_types
                out += pack_qq(
                    acknowledgement_batch.first_offset,
                    acknowledgement_batch.last_offset,
                )
                size = len(acknowledge_types) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(acknowledge_types)}b", *acknowledge_types)
                out.append(0)
            out.append(0)
        out.append(0)
    forgotten_topics_data = message.forgotten_topics_data
    size = len(forgotten_topics_data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for forgotten_topic in forgotten_topics_data:
        forgotten_topic_partitions = forgotten_topic.partitions
        out += pack_16s(forgotten_topic.topic_id)
        size = len(forgotten_topic_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(forgotten_topic_partitions)}i", *forgotten_topic_partitions)
        out.append(0)
    out.append(0)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[ShareFetchRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    group_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        group_id = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    member_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        member_id = view[position:end].tobytes().decode()
        position = end
    (
        share_session_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        max_records,
        batch_size,
        share_acquire_mode,
        is_renew_ack,
        count,
    ) = unpack_iiiiiibtB(view, position)
    position += 27
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[FetchTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            partition_index, count = unpack_iB(view, position)
            position += 5
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 18)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            acknowledgement_batches: list[AcknowledgementBatch] = []
            for _ in range(count - 1):
                first_offset, last_offset, count = unpack_qqB(view, position)
                position += 17
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 1)
                elements += count - 1
                if elements > FEW_ELEMENTS:
                    check_elements(elements)
                count -= 1
                acknowledge_types = list(unpack_from(f">{count}b", view, position))
                position += count
                tags = view[position]
                position += 1
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                acknowledgement_batches.append(
                    AcknowledgementBatch(first_offset, last_offset, acknowledge_types)
                )
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(FetchPartition(partition_index, acknowledgement_batches))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic(topic_id, partitions))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count - 1):
        forgotten_topics_data_topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        count -= 1
        forgotten_topics_data_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        forgotten_topics_data.append(
            ForgottenTopic(forgotten_topics_data_topic_id, forgotten_topics_data_partitions)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareFetchRequest(
        group_id,
        member_id,
        share_session_epoch,
        max_wait_ms,
        min_bytes,
        max_bytes,
        max_records,
        batch_size,
        share_acquire_mode,
        is_renew_ack,
        topics,
        forgotten_topics_data,
    )
    return message, position


def encode_request_v2(message: ShareFetchRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    if group_id is None:
        out.append(0)
    else:
        data = group_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    member_id = message.member_id
    if member_id is None:
        out.append(0)
    else:
        data = member_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topics = message.topics
    out += pack_iiiiiibt(
        message.share_session_epoch,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.max_records,
        message.batch_size,
        message.share_acquire_mode,
        message.is_renew_ack,
    )
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for fetch_topic in topics:
        partitions = fetch_topic.partitions
        out += pack_16s(fetch_topic.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for fetch_partition in partitions:
            acknowledgement_batches = fetch_partition.acknowledgement_batches
            out += pack_i(fetch_partition.partition_index)
            size = len(acknowledgement_batches) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for acknowledgement_batch in acknowledgement_batches:
                acknowledge_types = acknowledgement_batch.acknowledge_types
                out += pack_qq(
                    acknowledgement_batch.first_offset,
                    acknowledgement_batch.last_offset,
                )
                size = len(acknowledge_types) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += pack(f">{len(acknowledge_types)}b", *acknowledge_types)
                out.append(0)
            out.append(0)
        out.append(0)
    forgotten_topics_data = message.forgotten_topics_data
    size = len(forgotten_topics_data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for forgotten_topic in forgotten_topics_data:
        forgotten_topic_partitions = forgotten_topic.partitions
        out += pack_16s(forgotten_topic.topic_id)
        size = len(forgotten_topic_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(forgotten_topic_partitions)}i", *forgotten_topic_partitions)
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ShareFetchResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    acquisition_lock_timeout_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    responses: list[ShareFetchableTopicResponse] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 22)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            partition_index, partitions_error_code, size = unpack_ihB(view, position)
            position += 7
            partitions_error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                partitions_error_message = view[position:end].tobytes().decode()
                position = end
            acknowledge_error_code, size = unpack_hB(view, position)
            position += 3
            acknowledge_error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                acknowledge_error_message = view[position:end].tobytes().decode()
                position = end
            leader_id, leader_epoch, tags = unpack_iiB(view, position)
            position += 9
            if tags:
                position = skip_tags(view, position, tags)
            current_leader = LeaderIdAndEpoch(leader_id, leader_epoch)
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            records = view[position:end]
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 19)
            acquired_records: list[AcquiredRecords] = []
            for _ in range(count - 1):
                first_offset, last_offset, delivery_count, tags = unpack_qqhB(view, position)
                position += 19
                if tags:
                    position = skip_tags(view, position, tags)
                acquired_records.append(AcquiredRecords(first_offset, last_offset, delivery_count))
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                PartitionData(
                    partition_index,
                    partitions_error_code,
                    partitions_error_message,
                    acknowledge_error_code,
                    acknowledge_error_message,
                    current_leader,
                    records,
                    acquired_records,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(ShareFetchableTopicResponse(topic_id, partitions))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    node_endpoints: list[NodeEndpoint] = []
    for _ in range(count - 1):
        node_id, size = unpack_iB(view, position)
        position += 5
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        host = view[position:end].tobytes().decode()
        position = end
        port, size = unpack_iB(view, position)
        position += 5
        rack: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            rack = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        node_endpoints.append(NodeEndpoint(node_id, host, port, rack))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareFetchResponse(
        throttle_time_ms,
        error_code,
        error_message,
        acquisition_lock_timeout_ms,
        responses,
        node_endpoints,
    )
    return message, position


def encode_response_v1(message: ShareFetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
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
    responses = message.responses
    out += pack_i(message.acquisition_lock_timeout_ms)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for share_fetchable_topic_response in responses:
        partitions = share_fetchable_topic_response.partitions
        out += pack_16s(share_fetchable_topic_response.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            partition_data_error_message = partition_data.error_message
            out += pack_ih(partition_data.partition_index, partition_data.error_code)
            if partition_data_error_message is None:
                out.append(0)
            else:
                data = partition_data_error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            acknowledge_error_message = partition_data.acknowledge_error_message
            out += pack_h(partition_data.acknowledge_error_code)
            if acknowledge_error_message is None:
                out.append(0)
            else:
                data = acknowledge_error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            records = partition_data.records
            if records is None:
                raise null_value("PartitionData.records")
            out += pack_iix(
                partition_data.current_leader.leader_id,
                partition_data.current_leader.leader_epoch,
            )
            size = len(records) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            chunks.append(out)
            chunks.append(records)
            out = bytearray()
            acquired_records = partition_data.acquired_records
            size = len(acquired_records) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for acquired_records_acquired_records in acquired_records:
                out += pack_qqhx(
                    acquired_records_acquired_records.first_offset,
                    acquired_records_acquired_records.last_offset,
                    acquired_records_acquired_records.delivery_count,
                )
            out.append(0)
        out.append(0)
    node_endpoints = message.node_endpoints
    size = len(node_endpoints) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for node_endpoint in node_endpoints:
        host = node_endpoint.host
        out += pack_i(node_endpoint.node_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = node_endpoint.rack
        out += pack_i(node_endpoint.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    chunks.append(out)
    return chunks


SHARE_FETCH = Api(
    78,
    "ShareFetch",
    Message(
        "ShareFetchRequest",
        (1, 2),
        1,
        {
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "ShareFetchResponse",
        (1, 2),
        1,
        {
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
