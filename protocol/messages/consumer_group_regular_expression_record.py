"""ConsumerGroupRegularExpression: generated from consumer_group_regular_expression_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
)

pack_h = Struct(">h").pack
pack_qqx = Struct(">qqx").pack
unpack_h = Struct(">h").unpack_from
unpack_qqB = Struct(">qqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupRegularExpressionKey(Structure):
    """ConsumerGroupRegularExpression, versions 0-0."""

    group_id: str
    regular_expression: str

    def __init__(
        self,
        group_id: str = "",
        regular_expression: str = "",
    ) -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupRegularExpressionValue(Structure):
    """ConsumerGroupRegularExpression, versions 0-0."""

    topics: list[str]
    version: int
    timestamp: int

    def __init__(
        self,
        topics: list[str] = ABSENT,
        version: int = 0,
        timestamp: int = 0,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.version = version
        self.timestamp = timestamp


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupRegularExpressionKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupRegularExpressionKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupRegularExpressionKey.regular_expression: negative length")
    end = position + size
    regular_expression = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupRegularExpressionKey(group_id, regular_expression), position


def encode_key_v0(message: ConsumerGroupRegularExpressionKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    regular_expression = message.regular_expression
    data = regular_expression.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupRegularExpressionValue, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    topics: list[str] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        topics_item = view[position:end].tobytes().decode()
        position = end
        topics.append(topics_item)
    version, timestamp, tags = unpack_qqB(view, position)
    position += 17
    if tags:
        position = skip_tags(view, position, tags)
    return ConsumerGroupRegularExpressionValue(topics, version, timestamp), position


def encode_value_v0(message: ConsumerGroupRegularExpressionValue, out: bytearray) -> Chunks:
    topics = message.topics
    size = len(topics) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topics_item in topics:
        data = topics_item.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    out += pack_qqx(message.version, message.timestamp)
    return [out]


CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD = RecordType(
    16,
    "ConsumerGroupRegularExpression",
    Message(
        "ConsumerGroupRegularExpressionKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupRegularExpressionValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
