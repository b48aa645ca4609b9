"""Fetch: generated from fetch.schema by protocol/generate. Do not edit."""

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
    varint_end,
    varint_tail,
    wrong_tag_size,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ihi = Struct(">ihi").pack
pack_ihii = Struct(">ihii").pack
pack_ihqqi = Struct(">ihqqi").pack
pack_ihqqq = Struct(">ihqqq").pack
pack_ihqqqi = Struct(">ihqqqi").pack
pack_ii = Struct(">ii").pack
pack_iiibii = Struct(">iiibii").pack
pack_iiiibi = Struct(">iiiibi").pack
pack_iiiibii = Struct(">iiiibii").pack
pack_iiiibiii = Struct(">iiiibiii").pack
pack_iiqiqi = Struct(">iiqiqi").pack
pack_iiqiqix = Struct(">iiqiqix").pack
pack_iiqqi = Struct(">iiqqi").pack
pack_iix = Struct(">iix").pack
pack_iqi = Struct(">iqi").pack
pack_iqqi = Struct(">iqqi").pack
pack_iqx = Struct(">iqx").pack
pack_q = Struct(">q").pack
pack_qix = Struct(">qix").pack
pack_qq = Struct(">qq").pack
pack_qqx = Struct(">qqx").pack
unpack_16s = Struct(">16s").unpack_from
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihiB = Struct(">ihiB").unpack_from
unpack_ihii = Struct(">ihii").unpack_from
unpack_ihqqi = Struct(">ihqqi").unpack_from
unpack_ihqqqB = Struct(">ihqqqB").unpack_from
unpack_ihqqqi = Struct(">ihqqqi").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iiB = Struct(">iiB").unpack_from
unpack_iiibiiB = Struct(">iiibiiB").unpack_from
unpack_iiiibi = Struct(">iiiibi").unpack_from
unpack_iiiibiiB = Struct(">iiiibiiB").unpack_from
unpack_iiiibiii = Struct(">iiiibiii").unpack_from
unpack_iiqiqiB = Struct(">iiqiqiB").unpack_from
unpack_iiqqi = Struct(">iiqqi").unpack_from
unpack_iqB = Struct(">iqB").unpack_from
unpack_iqi = Struct(">iqi").unpack_from
unpack_iqqi = Struct(">iqqi").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qiB = Struct(">qiB").unpack_from
unpack_qq = Struct(">qq").unpack_from
unpack_qqB = Struct(">qqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ReplicaState(Structure):
    """Part of Fetch."""

    replica_id: int
    replica_epoch: int

    def __init__(self, replica_id: int = -1, replica_epoch: int = -1) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class FetchPartition(Structure):
    """Part of Fetch."""

    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: bytes
    high_watermark: int

    def __init__(
        self, partition: int = 0, current_leader_epoch: int = -1, fetch_offset: int = 0,
        last_fetched_epoch: int = -1, log_start_offset: int = -1, partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID, high_watermark: int = 9223372036854775807,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark


@dataclass(slots=True, init=False, repr=False, eq=False)
class FetchTopic(Structure):
    """Part of Fetch."""

    topic: str
    topic_id: bytes
    partitions: list[FetchPartition]

    def __init__(
        self, topic: str = "", topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] = ABSENT,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ForgottenTopic(Structure):
    """Part of Fetch."""

    topic: str
    topic_id: bytes
    partitions: list[int]

    def __init__(
        self, topic: str = "", topic_id: bytes = ZERO_UUID, partitions: list[int] = ABSENT
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class FetchRequest(Structure):
    """Fetch, versions 4-18."""

    cluster_id: str | None
    replica_id: int
    replica_state: ReplicaState | None
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]
    rack_id: str

    def __init__(
        self, cluster_id: str | None = None, replica_id: int = -1,
        replica_state: ReplicaState | None = None, max_wait_ms: int = 0, min_bytes: int = 0,
        max_bytes: int = 2147483647, isolation_level: int = 0, session_id: int = 0,
        session_epoch: int = -1, topics: list[FetchTopic] = ABSENT,
        forgotten_topics_data: list[ForgottenTopic] = ABSENT, rack_id: str = "",
    ) -> None:
        self.cluster_id = cluster_id
        self.replica_id = replica_id
        self.replica_state = replica_state
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = [] if topics is ABSENT else topics
        self.forgotten_topics_data = [] if forgotten_topics_data is ABSENT else forgotten_topics_data
        self.rack_id = rack_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class EpochEndOffset(Structure):
    """Part of Fetch."""

    epoch: int
    end_offset: int

    def __init__(self, epoch: int = -1, end_offset: int = -1) -> None:
        self.epoch = epoch
        self.end_offset = end_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaderIdAndEpoch(Structure):
    """Part of Fetch."""

    leader_id: int
    leader_epoch: int

    def __init__(self, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class SnapshotId(Structure):
    """Part of Fetch."""

    end_offset: int
    epoch: int

    def __init__(self, end_offset: int = -1, epoch: int = -1) -> None:
        self.end_offset = end_offset
        self.epoch = epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class AbortedTransaction(Structure):
    """Part of Fetch."""

    producer_id: int
    first_offset: int

    def __init__(self, producer_id: int = 0, first_offset: int = 0) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionData(Structure):
    """Part of Fetch."""

    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: EpochEndOffset | None
    current_leader: LeaderIdAndEpoch | None
    snapshot_id: SnapshotId | None
    aborted_transactions: list[AbortedTransaction] | None
    preferred_read_replica: int
    records: memoryview | None

    def __init__(
        self, partition_index: int = 0, error_code: int = 0, high_watermark: int = 0,
        last_stable_offset: int = -1, log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None, snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = ABSENT,
        preferred_read_replica: int = -1, records: memoryview | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id
        self.aborted_transactions = [] if aborted_transactions is ABSENT else aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records


@dataclass(slots=True, init=False, repr=False, eq=False)
class FetchableTopicResponse(Structure):
    """Part of Fetch."""

    topic: str
    topic_id: bytes
    partitions: list[PartitionData]

    def __init__(
        self, topic: str = "", topic_id: bytes = ZERO_UUID, partitions: list[PartitionData] = ABSENT
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class NodeEndpoint(Structure):
    """Part of Fetch."""

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
class FetchResponse(Structure):
    """Fetch, versions 4-18."""

    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, session_id: int = 0,
        responses: list[FetchableTopicResponse] = ABSENT,
        node_endpoints: list[NodeEndpoint] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = [] if responses is ABSENT else responses
        self.node_endpoints = [] if node_endpoints is ABSENT else node_endpoints


def decode_request_v4(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        count,
    ) = unpack_iiiibi(view, position)
    position += 21
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[FetchTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 16)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count):
            partition, fetch_offset, partition_max_bytes = unpack_iqi(view, position)
            position += 16
            partitions.append(
                FetchPartition(
                    partition,
                    -1,
                    fetch_offset,
                    -1,
                    -1,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        topics.append(FetchTopic(topic, ZERO_UUID, partitions))
    message = FetchRequest(
        None,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        0,
        -1,
        topics,
        [],
        "",
    )
    return message, position


def encode_request_v4(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibi(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        len(topics),
    )
    for fetch_topic in topics:
        topic = fetch_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetch_topic.partitions
        out += pack_i(len(partitions))
        for fetch_partition in partitions:
            out += pack_iqi(
                fetch_partition.partition,
                fetch_partition.fetch_offset,
                fetch_partition.partition_max_bytes,
            )
    return [out]


def decode_request_v5(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        count,
    ) = unpack_iiiibi(view, position)
    position += 21
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[FetchTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 24)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                fetch_offset,
                log_start_offset,
                partition_max_bytes,
            ) = unpack_iqqi(view, position)
            position += 24
            partitions.append(
                FetchPartition(
                    partition,
                    -1,
                    fetch_offset,
                    -1,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        topics.append(FetchTopic(topic, ZERO_UUID, partitions))
    message = FetchRequest(
        None,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        0,
        -1,
        topics,
        [],
        "",
    )
    return message, position


def encode_request_v5(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibi(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        len(topics),
    )
    for fetch_topic in topics:
        topic = fetch_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetch_topic.partitions
        out += pack_i(len(partitions))
        for fetch_partition in partitions:
            out += pack_iqqi(
                fetch_partition.partition,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    return [out]


def decode_request_v7(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiiibiii(view, position)
    position += 29
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[FetchTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 24)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                fetch_offset,
                log_start_offset,
                partition_max_bytes,
            ) = unpack_iqqi(view, position)
            position += 24
            partitions.append(
                FetchPartition(
                    partition,
                    -1,
                    fetch_offset,
                    -1,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        topics.append(FetchTopic(topic, ZERO_UUID, partitions))
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ForgottenTopic.topic: negative length")
        end = position + size
        forgotten_topics_data_topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        forgotten_topics_data_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        forgotten_topics_data.append(
            ForgottenTopic(forgotten_topics_data_topic, ZERO_UUID, forgotten_topics_data_partitions)
        )
    message = FetchRequest(
        None,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        "",
    )
    return message, position


def encode_request_v7(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibiii(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        len(topics),
    )
    for fetch_topic in topics:
        topic = fetch_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetch_topic.partitions
        out += pack_i(len(partitions))
        for fetch_partition in partitions:
            out += pack_iqqi(
                fetch_partition.partition,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    forgotten_topics_data = message.forgotten_topics_data
    out += pack_i(len(forgotten_topics_data))
    for forgotten_topic in forgotten_topics_data:
        forgotten_topic_topic = forgotten_topic.topic
        data = forgotten_topic_topic.encode()
        out += pack_h(len(data))
        out += data
        forgotten_topic_partitions = forgotten_topic.partitions
        out += pack_i(len(forgotten_topic_partitions))
        out += pack(f">{len(forgotten_topic_partitions)}i", *forgotten_topic_partitions)
    return [out]


def decode_request_v9(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiiibiii(view, position)
    position += 29
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[FetchTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 28)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                log_start_offset,
                partition_max_bytes,
            ) = unpack_iiqqi(view, position)
            position += 28
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    -1,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        topics.append(FetchTopic(topic, ZERO_UUID, partitions))
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ForgottenTopic.topic: negative length")
        end = position + size
        forgotten_topics_data_topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        forgotten_topics_data_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        forgotten_topics_data.append(
            ForgottenTopic(forgotten_topics_data_topic, ZERO_UUID, forgotten_topics_data_partitions)
        )
    message = FetchRequest(
        None,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        "",
    )
    return message, position


def encode_request_v9(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibiii(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        len(topics),
    )
    for fetch_topic in topics:
        topic = fetch_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetch_topic.partitions
        out += pack_i(len(partitions))
        for fetch_partition in partitions:
            out += pack_iiqqi(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    forgotten_topics_data = message.forgotten_topics_data
    out += pack_i(len(forgotten_topics_data))
    for forgotten_topic in forgotten_topics_data:
        forgotten_topic_topic = forgotten_topic.topic
        data = forgotten_topic_topic.encode()
        out += pack_h(len(data))
        out += data
        forgotten_topic_partitions = forgotten_topic.partitions
        out += pack_i(len(forgotten_topic_partitions))
        out += pack(f">{len(forgotten_topic_partitions)}i", *forgotten_topic_partitions)
    return [out]


def decode_request_v11(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiiibiii(view, position)
    position += 29
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topics: list[FetchTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchTopic.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 28)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                log_start_offset,
                partition_max_bytes,
            ) = unpack_iiqqi(view, position)
            position += 28
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    -1,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        topics.append(FetchTopic(topic, ZERO_UUID, partitions))
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ForgottenTopic.topic: negative length")
        end = position + size
        forgotten_topics_data_topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        forgotten_topics_data_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        forgotten_topics_data.append(
            ForgottenTopic(forgotten_topics_data_topic, ZERO_UUID, forgotten_topics_data_partitions)
        )
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("FetchRequest.rack_id: negative length")
    end = position + size
    rack_id = view[position:end].tobytes().decode()
    position = end
    message = FetchRequest(
        None,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )
    return message, position


def encode_request_v11(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibiii(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
        len(topics),
    )
    for fetch_topic in topics:
        topic = fetch_topic.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetch_topic.partitions
        out += pack_i(len(partitions))
        for fetch_partition in partitions:
            out += pack_iiqqi(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
    forgotten_topics_data = message.forgotten_topics_data
    out += pack_i(len(forgotten_topics_data))
    for forgotten_topic in forgotten_topics_data:
        forgotten_topic_topic = forgotten_topic.topic
        data = forgotten_topic_topic.encode()
        out += pack_h(len(data))
        out += data
        forgotten_topic_partitions = forgotten_topic.partitions
        out += pack_i(len(forgotten_topic_partitions))
        out += pack(f">{len(forgotten_topic_partitions)}i", *forgotten_topic_partitions)
    rack_id = message.rack_id
    data = rack_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_request_v12(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiiibiiB(view, position)
    position += 26
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[FetchTopic] = []
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
            count, position = long_count(view, position, count, 33)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = unpack_iiqiqiB(view, position)
            position += 33
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    last_fetched_epoch,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic(topic, ZERO_UUID, partitions))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    forgotten_topics_data: list[ForgottenTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        forgotten_topics_data_topic = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
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
            ForgottenTopic(forgotten_topics_data_topic, ZERO_UUID, forgotten_topics_data_partitions)
        )
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    rack_id = view[position:end].tobytes().decode()
    position = end
    fetch_request_tags = view[position]
    position += 1
    cluster_id: str | None = None
    if fetch_request_tags:
        fetch_request_tags, position = tag_count(view, position, fetch_request_tags)
        for _ in range(fetch_request_tags):
            tag, position, fetch_request_tag_end = read_tag(view, position)
            if tag == 0:
                size = view[position]
                position += 1
                tagged_cluster_id: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    tagged_cluster_id = view[position:end].tobytes().decode()
                    position = end
                cluster_id = tagged_cluster_id
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(0)
            position = fetch_request_tag_end
    message = FetchRequest(
        cluster_id,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )
    return message, position


def encode_request_v12(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibii(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
    )
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for fetch_topic in topics:
        topic = fetch_topic.topic
        data = topic.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = fetch_topic.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for fetch_partition in partitions:
            out += pack_iiqiqix(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
        out.append(0)
    forgotten_topics_data = message.forgotten_topics_data
    size = len(forgotten_topics_data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for forgotten_topic in forgotten_topics_data:
        forgotten_topic_topic = forgotten_topic.topic
        data = forgotten_topic_topic.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        forgotten_topic_partitions = forgotten_topic.partitions
        size = len(forgotten_topic_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(forgotten_topic_partitions)}i", *forgotten_topic_partitions)
        out.append(0)
    rack_id = message.rack_id
    data = rack_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    if message.cluster_id is None:
        out.append(0)
    else:
        fetch_request_tags = 0
        fetch_request_tagged = bytearray()
        if message.cluster_id is not None:
            fetch_request_tags += 1
            cluster_id_body = bytearray()
            cluster_id = message.cluster_id
            data = cluster_id.encode()
            size = len(data) + 1
            if size < 0x80:
                cluster_id_body.append(size)
            else:
                put_varint(cluster_id_body, size)
            cluster_id_body += data
            put_tag(fetch_request_tagged, 0, cluster_id_body)
        out.append(fetch_request_tags)
        out += fetch_request_tagged
    return [out]


def decode_request_v13(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        replica_id,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiiibiiB(view, position)
    position += 26
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[FetchTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = unpack_iiqiqiB(view, position)
            position += 33
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    last_fetched_epoch,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic("", topic_id, partitions))
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
            ForgottenTopic("", forgotten_topics_data_topic_id, forgotten_topics_data_partitions)
        )
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    rack_id = view[position:end].tobytes().decode()
    position = end
    fetch_request_tags = view[position]
    position += 1
    cluster_id: str | None = None
    if fetch_request_tags:
        fetch_request_tags, position = tag_count(view, position, fetch_request_tags)
        for _ in range(fetch_request_tags):
            tag, position, fetch_request_tag_end = read_tag(view, position)
            if tag == 0:
                size = view[position]
                position += 1
                tagged_cluster_id: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    tagged_cluster_id = view[position:end].tobytes().decode()
                    position = end
                cluster_id = tagged_cluster_id
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(0)
            position = fetch_request_tag_end
    message = FetchRequest(
        cluster_id,
        replica_id,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )
    return message, position


def encode_request_v13(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiiibii(
        message.replica_id,
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += pack_iiqiqix(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
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
    rack_id = message.rack_id
    data = rack_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    if message.cluster_id is None:
        out.append(0)
    else:
        fetch_request_tags = 0
        fetch_request_tagged = bytearray()
        if message.cluster_id is not None:
            fetch_request_tags += 1
            cluster_id_body = bytearray()
            cluster_id = message.cluster_id
            data = cluster_id.encode()
            size = len(data) + 1
            if size < 0x80:
                cluster_id_body.append(size)
            else:
                put_varint(cluster_id_body, size)
            cluster_id_body += data
            put_tag(fetch_request_tagged, 0, cluster_id_body)
        out.append(fetch_request_tags)
        out += fetch_request_tagged
    return [out]


def decode_request_v15(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiibiiB(view, position)
    position += 22
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[FetchTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                tags,
            ) = unpack_iiqiqiB(view, position)
            position += 33
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    last_fetched_epoch,
                    log_start_offset,
                    partition_max_bytes,
                    ZERO_UUID,
                    9223372036854775807,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic("", topic_id, partitions))
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
            ForgottenTopic("", forgotten_topics_data_topic_id, forgotten_topics_data_partitions)
        )
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    rack_id = view[position:end].tobytes().decode()
    position = end
    fetch_request_tags = view[position]
    position += 1
    cluster_id: str | None = None
    replica_state: ReplicaState | None = None
    if fetch_request_tags:
        fetch_request_tags, position = tag_count(view, position, fetch_request_tags)
        for _ in range(fetch_request_tags):
            tag, position, fetch_request_tag_end = read_tag(view, position)
            if tag == 0:
                size = view[position]
                position += 1
                tagged_cluster_id: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    tagged_cluster_id = view[position:end].tobytes().decode()
                    position = end
                cluster_id = tagged_cluster_id
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(0)
            elif tag == 1:
                replica_id, replica_epoch, tags = unpack_iqB(view, position)
                position += 13
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                replica_state = ReplicaState(replica_id, replica_epoch)
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(1)
            position = fetch_request_tag_end
    message = FetchRequest(
        cluster_id,
        -1,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )
    return message, position


def encode_request_v15(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiibii(
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += pack_iiqiqix(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
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
    rack_id = message.rack_id
    data = rack_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    if message.cluster_id is None and message.replica_state is None:
        out.append(0)
    else:
        fetch_request_tags = 0
        fetch_request_tagged = bytearray()
        if message.cluster_id is not None:
            fetch_request_tags += 1
            cluster_id_body = bytearray()
            cluster_id = message.cluster_id
            data = cluster_id.encode()
            size = len(data) + 1
            if size < 0x80:
                cluster_id_body.append(size)
            else:
                put_varint(cluster_id_body, size)
            cluster_id_body += data
            put_tag(fetch_request_tagged, 0, cluster_id_body)
        if message.replica_state is not None:
            fetch_request_tags += 1
            replica_state_body = bytearray()
            replica_state = message.replica_state
            replica_state_body += pack_iqx(replica_state.replica_id, replica_state.replica_epoch)
            put_tag(fetch_request_tagged, 1, replica_state_body)
        out.append(fetch_request_tags)
        out += fetch_request_tagged
    return [out]


def decode_request_v17(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiibiiB(view, position)
    position += 22
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[FetchTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                partitions_tags,
            ) = unpack_iiqiqiB(view, position)
            position += 33
            replica_directory_id: bytes = ZERO_UUID
            if partitions_tags:
                elements = add_tags(view, position, partitions_tags, elements)
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 0:
                        (replica_directory_id,) = unpack_16s(view, position)
                        position += 16
                        if position != partitions_tag_end:
                            raise wrong_tag_size(0)
                    position = partitions_tag_end
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    last_fetched_epoch,
                    log_start_offset,
                    partition_max_bytes,
                    replica_directory_id,
                    9223372036854775807,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic("", topic_id, partitions))
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
            ForgottenTopic("", forgotten_topics_data_topic_id, forgotten_topics_data_partitions)
        )
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    rack_id = view[position:end].tobytes().decode()
    position = end
    fetch_request_tags = view[position]
    position += 1
    cluster_id: str | None = None
    replica_state: ReplicaState | None = None
    if fetch_request_tags:
        fetch_request_tags, position = tag_count(view, position, fetch_request_tags)
        for _ in range(fetch_request_tags):
            tag, position, fetch_request_tag_end = read_tag(view, position)
            if tag == 0:
                size = view[position]
                position += 1
                tagged_cluster_id: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    tagged_cluster_id = view[position:end].tobytes().decode()
                    position = end
                cluster_id = tagged_cluster_id
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(0)
            elif tag == 1:
                replica_id, replica_epoch, tags = unpack_iqB(view, position)
                position += 13
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                replica_state = ReplicaState(replica_id, replica_epoch)
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(1)
            position = fetch_request_tag_end
    message = FetchRequest(
        cluster_id,
        -1,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )
    return message, position


def encode_request_v17(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiibii(
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += pack_iiqiqi(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
            if fetch_partition.replica_directory_id == ZERO_UUID:
                out.append(0)
            else:
                fetch_partition_tags = 0
                fetch_partition_tagged = bytearray()
                if fetch_partition.replica_directory_id != ZERO_UUID:
                    fetch_partition_tags += 1
                    replica_directory_id_body = bytearray()
                    replica_directory_id = fetch_partition.replica_directory_id
                    replica_directory_id_body += pack_16s(replica_directory_id)
                    put_tag(fetch_partition_tagged, 0, replica_directory_id_body)
                out.append(fetch_partition_tags)
                out += fetch_partition_tagged
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
    rack_id = message.rack_id
    data = rack_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    if message.cluster_id is None and message.replica_state is None:
        out.append(0)
    else:
        fetch_request_tags = 0
        fetch_request_tagged = bytearray()
        if message.cluster_id is not None:
            fetch_request_tags += 1
            cluster_id_body = bytearray()
            cluster_id = message.cluster_id
            data = cluster_id.encode()
            size = len(data) + 1
            if size < 0x80:
                cluster_id_body.append(size)
            else:
                put_varint(cluster_id_body, size)
            cluster_id_body += data
            put_tag(fetch_request_tagged, 0, cluster_id_body)
        if message.replica_state is not None:
            fetch_request_tags += 1
            replica_state_body = bytearray()
            replica_state = message.replica_state
            replica_state_body += pack_iqx(replica_state.replica_id, replica_state.replica_epoch)
            put_tag(fetch_request_tagged, 1, replica_state_body)
        out.append(fetch_request_tags)
        out += fetch_request_tagged
    return [out]


def decode_request_v18(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    elements = 0
    (
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        count,
    ) = unpack_iiibiiB(view, position)
    position += 22
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[FetchTopic] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partitions: list[FetchPartition] = []
        for _ in range(count - 1):
            (
                partition,
                current_leader_epoch,
                fetch_offset,
                last_fetched_epoch,
                log_start_offset,
                partition_max_bytes,
                partitions_tags,
            ) = unpack_iiqiqiB(view, position)
            position += 33
            replica_directory_id: bytes = ZERO_UUID
            high_watermark: int = 9223372036854775807
            if partitions_tags:
                elements = add_tags(view, position, partitions_tags, elements)
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 0:
                        (replica_directory_id,) = unpack_16s(view, position)
                        position += 16
                        if position != partitions_tag_end:
                            raise wrong_tag_size(0)
                    elif tag == 1:
                        (high_watermark,) = unpack_q(view, position)
                        position += 8
                        if position != partitions_tag_end:
                            raise wrong_tag_size(1)
                    position = partitions_tag_end
            partitions.append(
                FetchPartition(
                    partition,
                    current_leader_epoch,
                    fetch_offset,
                    last_fetched_epoch,
                    log_start_offset,
                    partition_max_bytes,
                    replica_directory_id,
                    high_watermark,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(FetchTopic("", topic_id, partitions))
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
            ForgottenTopic("", forgotten_topics_data_topic_id, forgotten_topics_data_partitions)
        )
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    rack_id = view[position:end].tobytes().decode()
    position = end
    fetch_request_tags = view[position]
    position += 1
    cluster_id: str | None = None
    replica_state: ReplicaState | None = None
    if fetch_request_tags:
        fetch_request_tags, position = tag_count(view, position, fetch_request_tags)
        for _ in range(fetch_request_tags):
            tag, position, fetch_request_tag_end = read_tag(view, position)
            if tag == 0:
                size = view[position]
                position += 1
                tagged_cluster_id: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    tagged_cluster_id = view[position:end].tobytes().decode()
                    position = end
                cluster_id = tagged_cluster_id
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(0)
            elif tag == 1:
                replica_id, replica_epoch, tags = unpack_iqB(view, position)
                position += 13
                if tags:
                    elements = add_tags(view, position, tags, elements)
                    position = skip_tags(view, position, tags)
                replica_state = ReplicaState(replica_id, replica_epoch)
                if position != fetch_request_tag_end:
                    raise wrong_tag_size(1)
            position = fetch_request_tag_end
    message = FetchRequest(
        cluster_id,
        -1,
        replica_state,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        forgotten_topics_data,
        rack_id,
    )
    return message, position


def encode_request_v18(message: FetchRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_iiibii(
        message.max_wait_ms,
        message.min_bytes,
        message.max_bytes,
        message.isolation_level,
        message.session_id,
        message.session_epoch,
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
            out += pack_iiqiqi(
                fetch_partition.partition,
                fetch_partition.current_leader_epoch,
                fetch_partition.fetch_offset,
                fetch_partition.last_fetched_epoch,
                fetch_partition.log_start_offset,
                fetch_partition.partition_max_bytes,
            )
            if (
                fetch_partition.replica_directory_id == ZERO_UUID
                and fetch_partition.high_watermark == 9223372036854775807
            ):
                out.append(0)
            else:
                fetch_partition_tags = 0
                fetch_partition_tagged = bytearray()
                if fetch_partition.replica_directory_id != ZERO_UUID:
                    fetch_partition_tags += 1
                    replica_directory_id_body = bytearray()
                    replica_directory_id = fetch_partition.replica_directory_id
                    replica_directory_id_body += pack_16s(replica_directory_id)
                    put_tag(fetch_partition_tagged, 0, replica_directory_id_body)
                if fetch_partition.high_watermark != 9223372036854775807:
                    fetch_partition_tags += 1
                    high_watermark_body = bytearray()
                    high_watermark = fetch_partition.high_watermark
                    high_watermark_body += pack_q(high_watermark)
                    put_tag(fetch_partition_tagged, 1, high_watermark_body)
                out.append(fetch_partition_tags)
                out += fetch_partition_tagged
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
    rack_id = message.rack_id
    data = rack_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    if message.cluster_id is None and message.replica_state is None:
        out.append(0)
    else:
        fetch_request_tags = 0
        fetch_request_tagged = bytearray()
        if message.cluster_id is not None:
            fetch_request_tags += 1
            cluster_id_body = bytearray()
            cluster_id = message.cluster_id
            data = cluster_id.encode()
            size = len(data) + 1
            if size < 0x80:
                cluster_id_body.append(size)
            else:
                put_varint(cluster_id_body, size)
            cluster_id_body += data
            put_tag(fetch_request_tagged, 0, cluster_id_body)
        if message.replica_state is not None:
            fetch_request_tags += 1
            replica_state_body = bytearray()
            replica_state = message.replica_state
            replica_state_body += pack_iqx(replica_state.replica_id, replica_state.replica_epoch)
            put_tag(fetch_request_tagged, 1, replica_state_body)
        out.append(fetch_request_tags)
        out += fetch_request_tagged
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchableTopicResponse.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 30)
        partitions: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code,
                high_watermark,
                last_stable_offset,
                count,
            ) = unpack_ihqqi(view, position)
            position += 26
            aborted_transactions: list[AbortedTransaction] | None = None
            if count != -1:
                if not 0 <= count < 0x80:
                    check_count(view, position, count, 16)
                aborted_transactions = []
                for _ in range(count):
                    producer_id, first_offset = unpack_qq(view, position)
                    position += 16
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            (size,) = unpack_i(view, position)
            position += 4
            records: memoryview | None = None
            if size >= 0:
                end = position + size
                records = view[position:end]
                position = end
            elif size != -1:
                raise Malformed("PartitionData.records: negative length")
            partitions.append(
                PartitionData(
                    partition_index,
                    error_code,
                    high_watermark,
                    last_stable_offset,
                    -1,
                    None,
                    None,
                    None,
                    aborted_transactions,
                    -1,
                    records,
                )
            )
        responses.append(FetchableTopicResponse(topic, ZERO_UUID, partitions))
    return FetchResponse(throttle_time_ms, 0, 0, responses, []), position


def encode_response_v4(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ii(message.throttle_time_ms, len(responses))
    for fetchable_topic_response in responses:
        topic = fetchable_topic_response.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetchable_topic_response.partitions
        out += pack_i(len(partitions))
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqi(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for aborted_transaction in aborted_transactions or ():
                out += pack_qq(aborted_transaction.producer_id, aborted_transaction.first_offset)
            records = partition_data.records
            out += pack_i(-1 if records is None else len(records))
            if records is not None:
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
    chunks.append(out)
    return chunks


def decode_response_v5(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchableTopicResponse.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 38)
        partitions: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = unpack_ihqqqi(view, position)
            position += 34
            aborted_transactions: list[AbortedTransaction] | None = None
            if count != -1:
                if not 0 <= count < 0x80:
                    check_count(view, position, count, 16)
                aborted_transactions = []
                for _ in range(count):
                    producer_id, first_offset = unpack_qq(view, position)
                    position += 16
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            (size,) = unpack_i(view, position)
            position += 4
            records: memoryview | None = None
            if size >= 0:
                end = position + size
                records = view[position:end]
                position = end
            elif size != -1:
                raise Malformed("PartitionData.records: negative length")
            partitions.append(
                PartitionData(
                    partition_index,
                    error_code,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    None,
                    None,
                    None,
                    aborted_transactions,
                    -1,
                    records,
                )
            )
        responses.append(FetchableTopicResponse(topic, ZERO_UUID, partitions))
    return FetchResponse(throttle_time_ms, 0, 0, responses, []), position


def encode_response_v5(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ii(message.throttle_time_ms, len(responses))
    for fetchable_topic_response in responses:
        topic = fetchable_topic_response.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetchable_topic_response.partitions
        out += pack_i(len(partitions))
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqqi(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for aborted_transaction in aborted_transactions or ():
                out += pack_qq(aborted_transaction.producer_id, aborted_transaction.first_offset)
            records = partition_data.records
            out += pack_i(-1 if records is None else len(records))
            if records is not None:
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
    chunks.append(out)
    return chunks


def decode_response_v7(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id, count = unpack_ihii(view, position)
    position += 14
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchableTopicResponse.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 38)
        partitions: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                partitions_error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = unpack_ihqqqi(view, position)
            position += 34
            aborted_transactions: list[AbortedTransaction] | None = None
            if count != -1:
                if not 0 <= count < 0x80:
                    check_count(view, position, count, 16)
                aborted_transactions = []
                for _ in range(count):
                    producer_id, first_offset = unpack_qq(view, position)
                    position += 16
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            (size,) = unpack_i(view, position)
            position += 4
            records: memoryview | None = None
            if size >= 0:
                end = position + size
                records = view[position:end]
                position = end
            elif size != -1:
                raise Malformed("PartitionData.records: negative length")
            partitions.append(
                PartitionData(
                    partition_index,
                    partitions_error_code,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    None,
                    None,
                    None,
                    aborted_transactions,
                    -1,
                    records,
                )
            )
        responses.append(FetchableTopicResponse(topic, ZERO_UUID, partitions))
    return FetchResponse(throttle_time_ms, error_code, session_id, responses, []), position


def encode_response_v7(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ihii(
        message.throttle_time_ms,
        message.error_code,
        message.session_id,
        len(responses),
    )
    for fetchable_topic_response in responses:
        topic = fetchable_topic_response.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetchable_topic_response.partitions
        out += pack_i(len(partitions))
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqqi(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for aborted_transaction in aborted_transactions or ():
                out += pack_qq(aborted_transaction.producer_id, aborted_transaction.first_offset)
            records = partition_data.records
            out += pack_i(-1 if records is None else len(records))
            if records is not None:
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
    chunks.append(out)
    return chunks


def decode_response_v11(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id, count = unpack_ihii(view, position)
    position += 14
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[FetchableTopicResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("FetchableTopicResponse.topic: negative length")
        end = position + size
        topic = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 42)
        partitions: list[PartitionData] = []
        for _ in range(count):
            (
                partition_index,
                partitions_error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = unpack_ihqqqi(view, position)
            position += 34
            aborted_transactions: list[AbortedTransaction] | None = None
            if count != -1:
                if not 0 <= count < 0x80:
                    check_count(view, position, count, 16)
                aborted_transactions = []
                for _ in range(count):
                    producer_id, first_offset = unpack_qq(view, position)
                    position += 16
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            preferred_read_replica, size = unpack_ii(view, position)
            position += 8
            records: memoryview | None = None
            if size >= 0:
                end = position + size
                records = view[position:end]
                position = end
            elif size != -1:
                raise Malformed("PartitionData.records: negative length")
            partitions.append(
                PartitionData(
                    partition_index,
                    partitions_error_code,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    None,
                    None,
                    None,
                    aborted_transactions,
                    preferred_read_replica,
                    records,
                )
            )
        responses.append(FetchableTopicResponse(topic, ZERO_UUID, partitions))
    return FetchResponse(throttle_time_ms, error_code, session_id, responses, []), position


def encode_response_v11(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ihii(
        message.throttle_time_ms,
        message.error_code,
        message.session_id,
        len(responses),
    )
    for fetchable_topic_response in responses:
        topic = fetchable_topic_response.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partitions = fetchable_topic_response.partitions
        out += pack_i(len(partitions))
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqqi(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
                -1 if aborted_transactions is None else len(aborted_transactions),
            )
            for aborted_transaction in aborted_transactions or ():
                out += pack_qq(aborted_transaction.producer_id, aborted_transaction.first_offset)
            records = partition_data.records
            out += pack_ii(
                partition_data.preferred_read_replica,
                -1 if records is None else len(records),
            )
            if records is not None:
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
    chunks.append(out)
    return chunks


def decode_response_v12(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id, count = unpack_ihiB(view, position)
    position += 11
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    responses: list[FetchableTopicResponse] = []
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
            count, position = long_count(view, position, count, 37)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            (
                partition_index,
                partitions_error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = unpack_ihqqqB(view, position)
            position += 31
            aborted_transactions: list[AbortedTransaction] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 17)
                aborted_transactions = []
                for _ in range(count - 1):
                    producer_id, first_offset, tags = unpack_qqB(view, position)
                    position += 17
                    if tags:
                        position = skip_tags(view, position, tags)
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            preferred_read_replica, size = unpack_iB(view, position)
            position += 5
            records: memoryview | None = None
            if size:
                if size >= 0x80:
                    byte = view[position]
                    position += 1
                    size += (byte << 7) - 0x80
                    if byte >= 0x80:
                        byte = view[position]
                        position += 1
                        size += (byte << 14) - 0x4000
                        if byte >= 0x80:
                            size, position = varint_end(view, position, size)
                end = position + size - 1
                records = view[position:end]
                position = end
            partitions_tags = view[position]
            position += 1
            diverging_epoch: EpochEndOffset | None = None
            current_leader: LeaderIdAndEpoch | None = None
            snapshot_id: SnapshotId | None = None
            if partitions_tags:
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 0:
                        epoch, end_offset, tags = unpack_iqB(view, position)
                        position += 13
                        if tags:
                            position = skip_tags(view, position, tags)
                        diverging_epoch = EpochEndOffset(epoch, end_offset)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(0)
                    elif tag == 1:
                        leader_id, leader_epoch, tags = unpack_iiB(view, position)
                        position += 9
                        if tags:
                            position = skip_tags(view, position, tags)
                        current_leader = LeaderIdAndEpoch(leader_id, leader_epoch)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(1)
                    elif tag == 2:
                        snapshot_id_end_offset, snapshot_id_epoch, tags = unpack_qiB(view, position)
                        position += 13
                        if tags:
                            position = skip_tags(view, position, tags)
                        snapshot_id = SnapshotId(snapshot_id_end_offset, snapshot_id_epoch)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(2)
                    position = partitions_tag_end
            partitions.append(
                PartitionData(
                    partition_index,
                    partitions_error_code,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    diverging_epoch,
                    current_leader,
                    snapshot_id,
                    aborted_transactions,
                    preferred_read_replica,
                    records,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(FetchableTopicResponse(topic, ZERO_UUID, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return FetchResponse(throttle_time_ms, error_code, session_id, responses, []), position


def encode_response_v12(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for fetchable_topic_response in responses:
        topic = fetchable_topic_response.topic
        data = topic.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = fetchable_topic_response.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqq(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if aborted_transactions is None:
                out.append(0)
            else:
                size = len(aborted_transactions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                for aborted_transaction in aborted_transactions:
                    out += pack_qqx(
                        aborted_transaction.producer_id,
                        aborted_transaction.first_offset,
                    )
            records = partition_data.records
            out += pack_i(partition_data.preferred_read_replica)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
            if (
                partition_data.diverging_epoch is None
                and partition_data.current_leader is None
                and partition_data.snapshot_id is None
            ):
                out.append(0)
            else:
                partition_data_tags = 0
                partition_data_tagged = bytearray()
                if partition_data.diverging_epoch is not None:
                    partition_data_tags += 1
                    diverging_epoch_body = bytearray()
                    diverging_epoch = partition_data.diverging_epoch
                    diverging_epoch_body += pack_iqx(
                        diverging_epoch.epoch,
                        diverging_epoch.end_offset,
                    )
                    put_tag(partition_data_tagged, 0, diverging_epoch_body)
                if partition_data.current_leader is not None:
                    partition_data_tags += 1
                    current_leader_body = bytearray()
                    current_leader = partition_data.current_leader
                    current_leader_body += pack_iix(
                        current_leader.leader_id,
                        current_leader.leader_epoch,
                    )
                    put_tag(partition_data_tagged, 1, current_leader_body)
                if partition_data.snapshot_id is not None:
                    partition_data_tags += 1
                    snapshot_id_body = bytearray()
                    snapshot_id = partition_data.snapshot_id
                    snapshot_id_body += pack_qix(snapshot_id.end_offset, snapshot_id.epoch)
                    put_tag(partition_data_tagged, 2, snapshot_id_body)
                out.append(partition_data_tags)
                out += partition_data_tagged
        out.append(0)
    out.append(0)
    chunks.append(out)
    return chunks


def decode_response_v13(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id, count = unpack_ihiB(view, position)
    position += 11
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    responses: list[FetchableTopicResponse] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 37)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            (
                partition_index,
                partitions_error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = unpack_ihqqqB(view, position)
            position += 31
            aborted_transactions: list[AbortedTransaction] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 17)
                aborted_transactions = []
                for _ in range(count - 1):
                    producer_id, first_offset, tags = unpack_qqB(view, position)
                    position += 17
                    if tags:
                        position = skip_tags(view, position, tags)
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            preferred_read_replica, size = unpack_iB(view, position)
            position += 5
            records: memoryview | None = None
            if size:
                if size >= 0x80:
                    byte = view[position]
                    position += 1
                    size += (byte << 7) - 0x80
                    if byte >= 0x80:
                        byte = view[position]
                        position += 1
                        size += (byte << 14) - 0x4000
                        if byte >= 0x80:
                            size, position = varint_end(view, position, size)
                end = position + size - 1
                records = view[position:end]
                position = end
            partitions_tags = view[position]
            position += 1
            diverging_epoch: EpochEndOffset | None = None
            current_leader: LeaderIdAndEpoch | None = None
            snapshot_id: SnapshotId | None = None
            if partitions_tags:
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 0:
                        epoch, end_offset, tags = unpack_iqB(view, position)
                        position += 13
                        if tags:
                            position = skip_tags(view, position, tags)
                        diverging_epoch = EpochEndOffset(epoch, end_offset)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(0)
                    elif tag == 1:
                        leader_id, leader_epoch, tags = unpack_iiB(view, position)
                        position += 9
                        if tags:
                            position = skip_tags(view, position, tags)
                        current_leader = LeaderIdAndEpoch(leader_id, leader_epoch)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(1)
                    elif tag == 2:
                        snapshot_id_end_offset, snapshot_id_epoch, tags = unpack_qiB(view, position)
                        position += 13
                        if tags:
                            position = skip_tags(view, position, tags)
                        snapshot_id = SnapshotId(snapshot_id_end_offset, snapshot_id_epoch)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(2)
                    position = partitions_tag_end
            partitions.append(
                PartitionData(
                    partition_index,
                    partitions_error_code,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    diverging_epoch,
                    current_leader,
                    snapshot_id,
                    aborted_transactions,
                    preferred_read_replica,
                    records,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(FetchableTopicResponse("", topic_id, partitions))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return FetchResponse(throttle_time_ms, error_code, session_id, responses, []), position


def encode_response_v13(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for fetchable_topic_response in responses:
        partitions = fetchable_topic_response.partitions
        out += pack_16s(fetchable_topic_response.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqq(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if aborted_transactions is None:
                out.append(0)
            else:
                size = len(aborted_transactions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                for aborted_transaction in aborted_transactions:
                    out += pack_qqx(
                        aborted_transaction.producer_id,
                        aborted_transaction.first_offset,
                    )
            records = partition_data.records
            out += pack_i(partition_data.preferred_read_replica)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
            if (
                partition_data.diverging_epoch is None
                and partition_data.current_leader is None
                and partition_data.snapshot_id is None
            ):
                out.append(0)
            else:
                partition_data_tags = 0
                partition_data_tagged = bytearray()
                if partition_data.diverging_epoch is not None:
                    partition_data_tags += 1
                    diverging_epoch_body = bytearray()
                    diverging_epoch = partition_data.diverging_epoch
                    diverging_epoch_body += pack_iqx(
                        diverging_epoch.epoch,
                        diverging_epoch.end_offset,
                    )
                    put_tag(partition_data_tagged, 0, diverging_epoch_body)
                if partition_data.current_leader is not None:
                    partition_data_tags += 1
                    current_leader_body = bytearray()
                    current_leader = partition_data.current_leader
                    current_leader_body += pack_iix(
                        current_leader.leader_id,
                        current_leader.leader_epoch,
                    )
                    put_tag(partition_data_tagged, 1, current_leader_body)
                if partition_data.snapshot_id is not None:
                    partition_data_tags += 1
                    snapshot_id_body = bytearray()
                    snapshot_id = partition_data.snapshot_id
                    snapshot_id_body += pack_qix(snapshot_id.end_offset, snapshot_id.epoch)
                    put_tag(partition_data_tagged, 2, snapshot_id_body)
                out.append(partition_data_tags)
                out += partition_data_tagged
        out.append(0)
    out.append(0)
    chunks.append(out)
    return chunks


def decode_response_v16(view: memoryview, position: int) -> tuple[FetchResponse, int]:
    throttle_time_ms, error_code, session_id, count = unpack_ihiB(view, position)
    position += 11
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    responses: list[FetchableTopicResponse] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 37)
        partitions: list[PartitionData] = []
        for _ in range(count - 1):
            (
                partition_index,
                partitions_error_code,
                high_watermark,
                last_stable_offset,
                log_start_offset,
                count,
            ) = unpack_ihqqqB(view, position)
            position += 31
            aborted_transactions: list[AbortedTransaction] | None = None
            if count:
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 17)
                aborted_transactions = []
                for _ in range(count - 1):
                    producer_id, first_offset, tags = unpack_qqB(view, position)
                    position += 17
                    if tags:
                        position = skip_tags(view, position, tags)
                    aborted_transactions.append(AbortedTransaction(producer_id, first_offset))
            preferred_read_replica, size = unpack_iB(view, position)
            position += 5
            records: memoryview | None = None
            if size:
                if size >= 0x80:
                    byte = view[position]
                    position += 1
                    size += (byte << 7) - 0x80
                    if byte >= 0x80:
                        byte = view[position]
                        position += 1
                        size += (byte << 14) - 0x4000
                        if byte >= 0x80:
                            size, position = varint_end(view, position, size)
                end = position + size - 1
                records = view[position:end]
                position = end
            partitions_tags = view[position]
            position += 1
            diverging_epoch: EpochEndOffset | None = None
            current_leader: LeaderIdAndEpoch | None = None
            snapshot_id: SnapshotId | None = None
            if partitions_tags:
                partitions_tags, position = tag_count(view, position, partitions_tags)
                for _ in range(partitions_tags):
                    tag, position, partitions_tag_end = read_tag(view, position)
                    if tag == 0:
                        epoch, end_offset, tags = unpack_iqB(view, position)
                        position += 13
                        if tags:
                            position = skip_tags(view, position, tags)
                        diverging_epoch = EpochEndOffset(epoch, end_offset)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(0)
                    elif tag == 1:
                        leader_id, leader_epoch, tags = unpack_iiB(view, position)
                        position += 9
                        if tags:
                            position = skip_tags(view, position, tags)
                        current_leader = LeaderIdAndEpoch(leader_id, leader_epoch)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(1)
                    elif tag == 2:
                        snapshot_id_end_offset, snapshot_id_epoch, tags = unpack_qiB(view, position)
                        position += 13
                        if tags:
                            position = skip_tags(view, position, tags)
                        snapshot_id = SnapshotId(snapshot_id_end_offset, snapshot_id_epoch)
                        if position != partitions_tag_end:
                            raise wrong_tag_size(2)
                    position = partitions_tag_end
            partitions.append(
                PartitionData(
                    partition_index,
                    partitions_error_code,
                    high_watermark,
                    last_stable_offset,
                    log_start_offset,
                    diverging_epoch,
                    current_leader,
                    snapshot_id,
                    aborted_transactions,
                    preferred_read_replica,
                    records,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(FetchableTopicResponse("", topic_id, partitions))
    fetch_response_tags = view[position]
    position += 1
    node_endpoints: list[NodeEndpoint] = []
    if fetch_response_tags:
        fetch_response_tags, position = tag_count(view, position, fetch_response_tags)
        for _ in range(fetch_response_tags):
            tag, position, fetch_response_tag_end = read_tag(view, position)
            if tag == 0:
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 11)
                tagged_node_endpoints: list[NodeEndpoint] = []
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
                    tagged_node_endpoints.append(NodeEndpoint(node_id, host, port, rack))
                node_endpoints = tagged_node_endpoints
                if position != fetch_response_tag_end:
                    raise wrong_tag_size(0)
            position = fetch_response_tag_end
    message = FetchResponse(throttle_time_ms, error_code, session_id, responses, node_endpoints)
    return message, position


def encode_response_v16(message: FetchResponse, out: bytearray) -> Chunks:
    chunks: Chunks = []
    responses = message.responses
    out += pack_ihi(message.throttle_time_ms, message.error_code, message.session_id)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for fetchable_topic_response in responses:
        partitions = fetchable_topic_response.partitions
        out += pack_16s(fetchable_topic_response.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_data in partitions:
            aborted_transactions = partition_data.aborted_transactions
            out += pack_ihqqq(
                partition_data.partition_index,
                partition_data.error_code,
                partition_data.high_watermark,
                partition_data.last_stable_offset,
                partition_data.log_start_offset,
            )
            if aborted_transactions is None:
                out.append(0)
            else:
                size = len(aborted_transactions) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                for aborted_transaction in aborted_transactions:
                    out += pack_qqx(
                        aborted_transaction.producer_id,
                        aborted_transaction.first_offset,
                    )
            records = partition_data.records
            out += pack_i(partition_data.preferred_read_replica)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
            if (
                partition_data.diverging_epoch is None
                and partition_data.current_leader is None
                and partition_data.snapshot_id is None
            ):
                out.append(0)
            else:
                partition_data_tags = 0
                partition_data_tagged = bytearray()
                if partition_data.diverging_epoch is not None:
                    partition_data_tags += 1
                    diverging_epoch_body = bytearray()
                    diverging_epoch = partition_data.diverging_epoch
                    diverging_epoch_body += pack_iqx(
                        diverging_epoch.epoch,
                        diverging_epoch.end_offset,
                    )
                    put_tag(partition_data_tagged, 0, diverging_epoch_body)
                if partition_data.current_leader is not None:
                    partition_data_tags += 1
                    current_leader_body = bytearray()
                    current_leader = partition_data.current_leader
                    current_leader_body += pack_iix(
                        current_leader.leader_id,
                        current_leader.leader_epoch,
                    )
                    put_tag(partition_data_tagged, 1, current_leader_body)
                if partition_data.snapshot_id is not None:
                    partition_data_tags += 1
                    snapshot_id_body = bytearray()
                    snapshot_id = partition_data.snapshot_id
                    snapshot_id_body += pack_qix(snapshot_id.end_offset, snapshot_id.epoch)
                    put_tag(partition_data_tagged, 2, snapshot_id_body)
                out.append(partition_data_tags)
                out += partition_data_tagged
        out.append(0)
    if not message.node_endpoints:
        out.append(0)
    else:
        fetch_response_tags = 0
        fetch_response_tagged = bytearray()
        if message.node_endpoints:
            fetch_response_tags += 1
            node_endpoints_body = bytearray()
            node_endpoints = message.node_endpoints
            size = len(node_endpoints) + 1
            if size < 0x80:
                node_endpoints_body.append(size)
            else:
                put_varint(node_endpoints_body, size)
            for node_endpoint in node_endpoints:
                host = node_endpoint.host
                node_endpoints_body += pack_i(node_endpoint.node_id)
                data = host.encode()
                size = len(data) + 1
                if size < 0x80:
                    node_endpoints_body.append(size)
                else:
                    put_varint(node_endpoints_body, size)
                node_endpoints_body += data
                rack = node_endpoint.rack
                node_endpoints_body += pack_i(node_endpoint.port)
                if rack is None:
                    node_endpoints_body.append(0)
                else:
                    data = rack.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        node_endpoints_body.append(size)
                    else:
                        put_varint(node_endpoints_body, size)
                    node_endpoints_body += data
                node_endpoints_body.append(0)
            put_tag(fetch_response_tagged, 0, node_endpoints_body)
        out.append(fetch_response_tags)
        out += fetch_response_tagged
    chunks.append(out)
    return chunks


FETCH = Api(
    1,
    "Fetch",
    Message(
        "FetchRequest",
        (4, 18),
        12,
        {
            4: (decode_request_v4, encode_request_v4),
            5: (decode_request_v5, encode_request_v5),
            7: (decode_request_v7, encode_request_v7),
            9: (decode_request_v9, encode_request_v9),
            11: (decode_request_v11, encode_request_v11),
            12: (decode_request_v12, encode_request_v12),
            13: (decode_request_v13, encode_request_v13),
            15: (decode_request_v15, encode_request_v15),
            17: (decode_request_v17, encode_request_v17),
            18: (decode_request_v18, encode_request_v18),
        },
    ),
    Message(
        "FetchResponse",
        (4, 18),
        12,
        {
            4: (decode_response_v4, encode_response_v4),
            5: (decode_response_v5, encode_response_v5),
            7: (decode_response_v7, encode_response_v7),
            11: (decode_response_v11, encode_response_v11),
            12: (decode_response_v12, encode_response_v12),
            13: (decode_response_v13, encode_response_v13),
            16: (decode_response_v16, encode_response_v16),
        },
    ),
)

# Puts hand-tuned functions in the place of some of the above.
import barnabas.protocol.tuned.fetch  # noqa: E402, F401
