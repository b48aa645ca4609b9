"""DeleteShareGroupOffsets: generated from delete_share_group_offsets.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16sh = Struct(">16sh").pack
pack_ih = Struct(">ih").pack
unpack_16shB = Struct(">16shB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsRequestTopic(Structure):
    """Part of DeleteShareGroupOffsets."""

    topic_name: str

    def __init__(
        self,
        topic_name: str = "",
    ) -> None:
        self.topic_name = topic_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsRequest(Structure):
    """DeleteShareGroupOffsets, versions 0-0."""

    group_id: str
    topics: list[DeleteShareGroupOffsetsRequestTopic]

    def __init__(
        self,
        group_id: str = "",
        topics: list[DeleteShareGroupOffsetsRequestTopic] = ABSENT,
    ) -> None:
        self.group_id = group_id
        self.topics = [] if topics is ABSENT else topics


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsResponseTopic(Structure):
    """Part of DeleteShareGroupOffsets."""

    topic_name: str
    topic_id: bytes
    error_code: int
    error_message: str | None

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteShareGroupOffsetsResponse(Structure):
    """DeleteShareGroupOffsets, versions 0-0."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    responses: list[DeleteShareGroupOffsetsResponseTopic]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[DeleteShareGroupOffsetsResponseTopic] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = [] if responses is ABSENT else responses


def decode_request_v0(view: memoryview, position: int) -> tuple[DeleteShareGroupOffsetsRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    group_id = view[position:end].tobytes().decode()
    position = end
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 2)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(DeleteShareGroupOffsetsRequestTopic(topic_name))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteShareGroupOffsetsRequest(group_id, topics), position


def encode_request_v0(message: DeleteShareGroupOffsetsRequest, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
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
    for delete_share_group_offsets_request_topic in topics:
        topic_name = delete_share_group_offsets_request_topic.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DeleteShareGroupOffsetsResponse, int]:
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
        count, position = long_count(view, position, count, 21)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_name = view[position:end].tobytes().decode()
        position = end
        topic_id, responses_error_code, size = unpack_16shB(view, position)
        position += 19
        responses_error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            responses_error_message = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(
            DeleteShareGroupOffsetsResponseTopic(
                topic_name,
                topic_id,
                responses_error_code,
                responses_error_message,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = DeleteShareGroupOffsetsResponse(
        throttle_time_ms,
        error_code,
        error_message,
        responses,
    )
    return message, position


def encode_response_v0(message: DeleteShareGroupOffsetsResponse, out: bytearray) -> Chunks:
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
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for delete_share_group_offsets_response_topic in responses:
        topic_name = delete_share_group_offsets_response_topic.topic_name
        data = topic_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        delete_share_group_offsets_response_topic_error_message = delete_share_group_offsets_response_topic.error_message
        out += pack_16sh(
            delete_share_group_offsets_response_topic.topic_id,
            delete_share_group_offsets_response_topic.error_code,
        )
        if delete_share_group_offsets_response_topic_error_message is None:
            out.append(0)
        else:
            data = delete_share_group_offsets_response_topic_error_message.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out.append(0)
    return [out]


DELETE_SHARE_GROUP_OFFSETS = Api(
    92,
    "DeleteShareGroupOffsets",
    Message(
        "DeleteShareGroupOffsetsRequest",
        (0, 0),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
        },
    ),
    Message(
        "DeleteShareGroupOffsetsResponse",
        (0, 0),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
        },
    ),
)
