"""ShareGroupHeartbeat: generated from share_group_heartbeat.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16s = Struct(">16s").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ii = Struct(">ii").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_iib = Struct(">iib").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupHeartbeatRequest(Structure):
    """ShareGroupHeartbeat, versions 1-1."""

    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    subscribed_topic_names: list[str] | None

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        rack_id: str | None = None,
        subscribed_topic_names: list[str] | None = None,
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.rack_id = rack_id
        self.subscribed_topic_names = subscribed_topic_names


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ShareGroupHeartbeat."""

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
class Assignment(Structure):
    """Part of ShareGroupHeartbeat."""

    topic_partitions: list[TopicPartitions]

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] = ABSENT,
    ) -> None:
        self.topic_partitions = [] if topic_partitions is ABSENT else topic_partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupHeartbeatResponse(Structure):
    """ShareGroupHeartbeat, versions 1-1."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment


def decode_request_v1(view: memoryview, position: int) -> tuple[ShareGroupHeartbeatRequest, int]:
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    member_id = view[position:end].tobytes().decode()
    position = end
    member_epoch, size = unpack_iB(view, position)
    position += 5
    rack_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        rack_id = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    subscribed_topic_names: list[str] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 1)
        subscribed_topic_names = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            subscribed_topic_names_item = view[position:end].tobytes().decode()
            position = end
            subscribed_topic_names.append(subscribed_topic_names_item)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareGroupHeartbeatRequest(
        group_id,
        member_id,
        member_epoch,
        rack_id,
        subscribed_topic_names,
    )
    return message, position


def encode_request_v1(message: ShareGroupHeartbeatRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    member_id = message.member_id
    data = member_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    rack_id = message.rack_id
    out += pack_i(message.member_epoch)
    if rack_id is None:
        out.append(0)
    else:
        data = rack_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    subscribed_topic_names = message.subscribed_topic_names
    if subscribed_topic_names is None:
        out.append(0)
    else:
        size = len(subscribed_topic_names) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for subscribed_topic_names_item in subscribed_topic_names:
            data = subscribed_topic_names_item.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ShareGroupHeartbeatResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
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
    member_epoch, heartbeat_interval_ms, assignment_present = unpack_iib(view, position)
    position += 9
    assignment: Assignment | None = None
    if assignment_present >= 0:
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 18)
        topic_partitions: list[TopicPartitions] = []
        for _ in range(count - 1):
            topic_id, count = unpack_16sB(view, position)
            position += 17
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            partitions = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            topic_partitions.append(TopicPartitions(topic_id, partitions))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        assignment = Assignment(topic_partitions)
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ShareGroupHeartbeatResponse(
        throttle_time_ms,
        error_code,
        error_message,
        member_id,
        member_epoch,
        heartbeat_interval_ms,
        assignment,
    )
    return message, position


def encode_response_v1(message: ShareGroupHeartbeatResponse, out: bytearray) -> Chunks:
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
    assignment = message.assignment
    out += pack_ii(message.member_epoch, message.heartbeat_interval_ms)
    if assignment is None:
        out.append(0xFF)
    else:
        out.append(1)
        topic_partitions = assignment.topic_partitions
        size = len(topic_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for topic_partitions_topic_partitions in topic_partitions:
            partitions = topic_partitions_topic_partitions.partitions
            out += pack_16s(topic_partitions_topic_partitions.topic_id)
            size = len(partitions) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partitions)}i", *partitions)
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


SHARE_GROUP_HEARTBEAT = Api(
    76,
    "ShareGroupHeartbeat",
    Message(
        "ShareGroupHeartbeatRequest",
        (1, 1),
        1,
        {
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "ShareGroupHeartbeatResponse",
        (1, 1),
        1,
        {
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
