"""ListPartitionReassignments: generated from list_partition_reassignments.schema by protocol/generate. Do not edit."""

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
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    varint_tail,
    wrong_tag_size,
)

pack_t = Struct(">?").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_iix = Struct(">iix").pack
unpack_t = Struct(">?").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iiB = Struct(">iiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListPartitionReassignmentsTopics(Structure):
    """Part of ListPartitionReassignments."""

    name: str
    partition_indexes: list[int]

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] = ABSENT,
    ) -> None:
        self.name = name
        self.partition_indexes = [] if partition_indexes is ABSENT else partition_indexes


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListPartitionReassignmentsRequest(Structure):
    """ListPartitionReassignments, versions 0-0."""

    timeout_ms: int
    topics: list[ListPartitionReassignmentsTopics] | None
    include_pins: bool

    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
        include_pins: bool = False,
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.include_pins = include_pins


@dataclass(slots=True, init=False, repr=False, eq=False)
class OngoingPartitionReassignment(Structure):
    """Part of ListPartitionReassignments."""

    partition_index: int
    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] = ABSENT,
        adding_replicas: list[int] = ABSENT,
        removing_replicas: list[int] = ABSENT,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = [] if replicas is ABSENT else replicas
        self.adding_replicas = [] if adding_replicas is ABSENT else adding_replicas
        self.removing_replicas = [] if removing_replicas is ABSENT else removing_replicas


@dataclass(slots=True, init=False, repr=False, eq=False)
class OngoingTopicReassignment(Structure):
    """Part of ListPartitionReassignments."""

    name: str
    partitions: list[OngoingPartitionReassignment]

    def __init__(
        self,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class PinnedPartition(Structure):
    """Part of ListPartitionReassignments."""

    partition_index: int
    node_id: int

    def __init__(
        self,
        partition_index: int = 0,
        node_id: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.node_id = node_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class PinnedTopic(Structure):
    """Part of ListPartitionReassignments."""

    name: str
    partitions: list[PinnedPartition]

    def __init__(
        self,
        name: str = "",
        partitions: list[PinnedPartition] = ABSENT,
    ) -> None:
        self.name = name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListPartitionReassignmentsResponse(Structure):
    """ListPartitionReassignments, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    topics: list[OngoingTopicReassignment]
    pinned_topics: list[PinnedTopic] | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] = ABSENT,
        pinned_topics: list[PinnedTopic] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = [] if topics is ABSENT else topics
        self.pinned_topics = pinned_topics


def decode_request_v0(view: memoryview, position: int) -> tuple[ListPartitionReassignmentsRequest, int]:
    elements = 0
    timeout_ms, count = unpack_iB(view, position)
    position += 5
    topics: list[ListPartitionReassignmentsTopics] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        topics = []
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
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            topics.append(ListPartitionReassignmentsTopics(name, partition_indexes))
    list_partition_reassignments_request_tags = view[position]
    position += 1
    include_pins: bool = False
    if list_partition_reassignments_request_tags:
        list_partition_reassignments_request_tags, position = tag_count(view, position, list_partition_reassignments_request_tags)
        for _ in range(list_partition_reassignments_request_tags):
            tag, position, list_partition_reassignments_request_tag_end = read_tag(view, position)
            if tag == 1000:
                (include_pins,) = unpack_t(view, position)
                position += 1
                if position != list_partition_reassignments_request_tag_end:
                    raise wrong_tag_size(1000)
            position = list_partition_reassignments_request_tag_end
    return ListPartitionReassignmentsRequest(timeout_ms, topics, include_pins), position


def encode_request_v0(message: ListPartitionReassignmentsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    out += pack_i(message.timeout_ms)
    if topics is None:
        out.append(0)
    else:
        size = len(topics) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for list_partition_reassignments_topics in topics:
            name = list_partition_reassignments_topics.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partition_indexes = list_partition_reassignments_topics.partition_indexes
            size = len(partition_indexes) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partition_indexes)}i", *partition_indexes)
            out.append(0)
    if not message.include_pins:
        out.append(0)
    else:
        list_partition_reassignments_request_tags = 0
        list_partition_reassignments_request_tagged = bytearray()
        if message.include_pins:
            list_partition_reassignments_request_tags += 1
            include_pins_body = bytearray()
            include_pins = message.include_pins
            include_pins_body += pack_t(include_pins)
            put_tag(list_partition_reassignments_request_tagged, 1000, include_pins_body)
        out.append(list_partition_reassignments_request_tags)
        out += list_partition_reassignments_request_tagged
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ListPartitionReassignmentsResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topics: list[OngoingTopicReassignment] = []
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
            count, position = long_count(view, position, count, 8)
        partitions: list[OngoingPartitionReassignment] = []
        for _ in range(count - 1):
            partition_index, count = unpack_iB(view, position)
            position += 5
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            adding_replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            removing_replicas = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partitions.append(
                OngoingPartitionReassignment(
                    partition_index,
                    replicas,
                    adding_replicas,
                    removing_replicas,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        topics.append(OngoingTopicReassignment(name, partitions))
    list_partition_reassignments_response_tags = view[position]
    position += 1
    pinned_topics: list[PinnedTopic] | None = None
    if list_partition_reassignments_response_tags:
        list_partition_reassignments_response_tags, position = tag_count(view, position, list_partition_reassignments_response_tags)
        for _ in range(list_partition_reassignments_response_tags):
            tag, position, list_partition_reassignments_response_tag_end = read_tag(view, position)
            if tag == 1000:
                count = view[position]
                position += 1
                tagged_pinned_topics: list[PinnedTopic] | None = None
                if count:
                    if not 0 < count < 0x80:
                        count, position = long_count(view, position, count, 3)
                    tagged_pinned_topics = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        tagged_pinned_topics_name = view[position:end].tobytes().decode()
                        position = end
                        count = view[position]
                        position += 1
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 9)
                        tagged_pinned_topics_partitions: list[PinnedPartition] = []
                        for _ in range(count - 1):
                            (
                                tagged_pinned_topics_partitions_partition_index,
                                node_id,
                                tags,
                            ) = unpack_iiB(view, position)
                            position += 9
                            if tags:
                                position = skip_tags(view, position, tags)
                            tagged_pinned_topics_partitions.append(
                                PinnedPartition(
                                    tagged_pinned_topics_partitions_partition_index,
                                    node_id,
                                )
                            )
                        tags = view[position]
                        position += 1
                        if tags:
                            position = skip_tags(view, position, tags)
                        tagged_pinned_topics.append(
                            PinnedTopic(tagged_pinned_topics_name, tagged_pinned_topics_partitions)
                        )
                pinned_topics = tagged_pinned_topics
                if position != list_partition_reassignments_response_tag_end:
                    raise wrong_tag_size(1000)
            position = list_partition_reassignments_response_tag_end
    message = ListPartitionReassignmentsResponse(
        throttle_time_ms,
        error_code,
        error_message,
        topics,
        pinned_topics,
    )
    return message, position


def encode_response_v0(message: ListPartitionReassignmentsResponse, out: bytearray) -> Chunks:
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
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for ongoing_topic_reassignment in topics:
        name = ongoing_topic_reassignment.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partitions = ongoing_topic_reassignment.partitions
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for ongoing_partition_reassignment in partitions:
            replicas = ongoing_partition_reassignment.replicas
            out += pack_i(ongoing_partition_reassignment.partition_index)
            size = len(replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(replicas)}i", *replicas)
            adding_replicas = ongoing_partition_reassignment.adding_replicas
            size = len(adding_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(adding_replicas)}i", *adding_replicas)
            removing_replicas = ongoing_partition_reassignment.removing_replicas
            size = len(removing_replicas) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(removing_replicas)}i", *removing_replicas)
            out.append(0)
        out.append(0)
    if message.pinned_topics is None:
        out.append(0)
    else:
        list_partition_reassignments_response_tags = 0
        list_partition_reassignments_response_tagged = bytearray()
        if message.pinned_topics is not None:
            list_partition_reassignments_response_tags += 1
            pinned_topics_body = bytearray()
            pinned_topics = message.pinned_topics
            size = len(pinned_topics) + 1
            if size < 0x80:
                pinned_topics_body.append(size)
            else:
                put_varint(pinned_topics_body, size)
            for pinned_topic in pinned_topics:
                pinned_topic_name = pinned_topic.name
                data = pinned_topic_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    pinned_topics_body.append(size)
                else:
                    put_varint(pinned_topics_body, size)
                pinned_topics_body += data
                pinned_topic_partitions = pinned_topic.partitions
                size = len(pinned_topic_partitions) + 1
                if size < 0x80:
                    pinned_topics_body.append(size)
                else:
                    put_varint(pinned_topics_body, size)
                for pinned_partition in pinned_topic_partitions:
                    pinned_topics_body += pack_iix(
                        pinned_partition.partition_index,
                        pinned_partition.node_id,
                    )
                pinned_topics_body.append(0)
            put_tag(list_partition_reassignments_response_tagged, 1000, pinned_topics_body)
        out.append(list_partition_reassignments_response_tags)
        out += list_partition_reassignments_response_tagged
    return [out]


LIST_PARTITION_REASSIGNMENTS = Api(
    46,
    "ListPartitionReassignments",
    Message(
        "ListPartitionReassignmentsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "ListPartitionReassignmentsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
