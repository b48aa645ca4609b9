"""DeleteTopics: generated from delete_topics.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    check_count,
    long_count,
    long_size,
    null_value,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_16sh = Struct(">16sh").pack
pack_16sx = Struct(">16sx").pack
pack_h = Struct(">h").pack
pack_hx = Struct(">hx").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
pack_ix = Struct(">ix").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_16shB = Struct(">16shB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteTopicState(Structure):
    """Part of DeleteTopics."""

    name: str | None
    topic_id: bytes

    def __init__(
        self,
        name: str | None = None,
        topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.name = name
        self.topic_id = topic_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteTopicsRequest(Structure):
    """DeleteTopics, versions 1-6."""

    topics: list[DeleteTopicState]
    topic_names: list[str]
    timeout_ms: int

    def __init__(
        self,
        topics: list[DeleteTopicState] = ABSENT,
        topic_names: list[str] = ABSENT,
        timeout_ms: int = 0,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.topic_names = [] if topic_names is ABSENT else topic_names
        self.timeout_ms = timeout_ms


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeletableTopicResult(Structure):
    """Part of DeleteTopics."""

    name: str | None
    topic_id: bytes
    error_code: int
    error_message: str | None

    def __init__(
        self,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class DeleteTopicsResponse(Structure):
    """DeleteTopics, versions 1-6."""

    throttle_time_ms: int
    responses: list[DeletableTopicResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[DeletableTopicResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is ABSENT else responses


def decode_request_v1(view: memoryview, position: int) -> tuple[DeleteTopicsRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 2)
    topic_names: list[str] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("topic_names[]: negative length")
        end = position + size
        topic_names_item = view[position:end].tobytes().decode()
        position = end
        topic_names.append(topic_names_item)
    (timeout_ms,) = unpack_i(view, position)
    position += 4
    return DeleteTopicsRequest([], topic_names, timeout_ms), position


def encode_request_v1(message: DeleteTopicsRequest, out: bytearray) -> Chunks:
    topic_names = message.topic_names
    out += pack_i(len(topic_names))
    for topic_names_item in topic_names:
        data = topic_names_item.encode()
        out += pack_h(len(data))
        out += data
    out += pack_i(message.timeout_ms)
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[DeleteTopicsRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    topic_names: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topic_names_item = view[position:end].tobytes().decode()
        position = end
        topic_names.append(topic_names_item)
    timeout_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteTopicsRequest([], topic_names, timeout_ms), position


def encode_request_v4(message: DeleteTopicsRequest, out: bytearray) -> Chunks:
    topic_names = message.topic_names
    size = len(topic_names) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_names_item in topic_names:
        data = topic_names_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_ix(message.timeout_ms)
    return [out]


def decode_request_v6(view: memoryview, position: int) -> tuple[DeleteTopicsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topics: list[DeleteTopicState] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        name: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
        topic_id, tags = unpack_16sB(view, position)
        position += 17
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topics.append(DeleteTopicState(name, topic_id))
    timeout_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteTopicsRequest(topics, [], timeout_ms), position


def encode_request_v6(message: DeleteTopicsRequest, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for delete_topic_state in topics:
        name = delete_topic_state.name
        if name is None:
            out.append(0)
        else:
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out += pack_16sx(delete_topic_state.topic_id)
    out += pack_ix(message.timeout_ms)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DeleteTopicsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 4)
    responses: list[DeletableTopicResult] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("DeletableTopicResult.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (error_code,) = unpack_h(view, position)
        position += 2
        responses.append(DeletableTopicResult(name, ZERO_UUID, error_code, None))
    return DeleteTopicsResponse(throttle_time_ms, responses), position


def encode_response_v1(message: DeleteTopicsResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_ii(message.throttle_time_ms, len(responses))
    for deletable_topic_result in responses:
        name = deletable_topic_result.name
        if name is None:
            raise null_value("DeletableTopicResult.name")
        data = name.encode()
        out += pack_h(len(data))
        out += data
        out += pack_h(deletable_topic_result.error_code)
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[DeleteTopicsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    responses: list[DeletableTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        error_code, tags = unpack_hB(view, position)
        position += 3
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(DeletableTopicResult(name, ZERO_UUID, error_code, None))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteTopicsResponse(throttle_time_ms, responses), position


def encode_response_v4(message: DeleteTopicsResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(message.throttle_time_ms)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for deletable_topic_result in responses:
        name = deletable_topic_result.name
        if name is None:
            raise null_value("DeletableTopicResult.name")
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_hx(deletable_topic_result.error_code)
    out.append(0)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[DeleteTopicsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    responses: list[DeletableTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        error_code, size = unpack_hB(view, position)
        position += 3
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(DeletableTopicResult(name, ZERO_UUID, error_code, error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteTopicsResponse(throttle_time_ms, responses), position


def encode_response_v5(message: DeleteTopicsResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(message.throttle_time_ms)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for deletable_topic_result in responses:
        name = deletable_topic_result.name
        if name is None:
            raise null_value("DeletableTopicResult.name")
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        error_message = deletable_topic_result.error_message
        out += pack_h(deletable_topic_result.error_code)
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
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v6(view: memoryview, position: int) -> tuple[DeleteTopicsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 21)
    responses: list[DeletableTopicResult] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        name: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
        topic_id, error_code, size = unpack_16shB(view, position)
        position += 19
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(DeletableTopicResult(name, topic_id, error_code, error_message))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DeleteTopicsResponse(throttle_time_ms, responses), position


def encode_response_v6(message: DeleteTopicsResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(message.throttle_time_ms)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for deletable_topic_result in responses:
        name = deletable_topic_result.name
        if name is None:
            out.append(0)
        else:
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        error_message = deletable_topic_result.error_message
        out += pack_16sh(deletable_topic_result.topic_id, deletable_topic_result.error_code)
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
        out.append(0)
    out.append(0)
    return [out]


DELETE_TOPICS = Api(
    20,
    "DeleteTopics",
    Message(
        "DeleteTopicsRequest",
        (1, 6),
        4,
        {
            1: (decode_request_v1, encode_request_v1),
            4: (decode_request_v4, encode_request_v4),
            6: (decode_request_v6, encode_request_v6),
        },
    ),
    Message(
        "DeleteTopicsResponse",
        (1, 6),
        4,
        {
            1: (decode_response_v1, encode_response_v1),
            4: (decode_response_v4, encode_response_v4),
            5: (decode_response_v5, encode_response_v5),
            6: (decode_response_v6, encode_response_v6),
        },
    ),
)
