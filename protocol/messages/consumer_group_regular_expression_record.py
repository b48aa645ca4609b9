"""ConsumerGroupRegularExpression: generated from consumer_group_regular_expression_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupRegularExpressionKey(Structure):
    """ConsumerGroupRegularExpression, versions 0-0."""

    group_id: str
    regular_expression: str

    def __init__(self, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupRegularExpressionValue(Structure):
    """ConsumerGroupRegularExpression, versions 0-0."""

    topics: list[str]
    version: int
    timestamp: int

    def __init__(self, topics: list[str] = ABSENT, version: int = 0, timestamp: int = 0) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.version = version
        self.timestamp = timestamp


def read_consumer_group_regular_expression_key(
    reader: Reader, version: int
) -> ConsumerGroupRegularExpressionKey:
    return ConsumerGroupRegularExpressionKey(reader.string(), reader.string())


def write_consumer_group_regular_expression_key(
    writer: Writer, message: ConsumerGroupRegularExpressionKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.regular_expression)


def read_consumer_group_regular_expression_value(
    reader: Reader, version: int
) -> ConsumerGroupRegularExpressionValue:
    message = ConsumerGroupRegularExpressionValue(
        reader.values(reader.string, 1),
        reader.int64(),
        reader.int64(),
    )
    reader.skip_tags()
    return message


def write_consumer_group_regular_expression_value(
    writer: Writer, message: ConsumerGroupRegularExpressionValue, version: int
) -> None:
    writer.values(message.topics, writer.string)
    writer.int64(message.version)
    writer.int64(message.timestamp)
    writer.no_tags()


CONSUMER_GROUP_REGULAR_EXPRESSION_RECORD = RecordType(
    16,
    "ConsumerGroupRegularExpression",
    message_of_fields(
        "ConsumerGroupRegularExpressionKey", (0, 0), NEVER, read_consumer_group_regular_expression_key,
        write_consumer_group_regular_expression_key,
    ),
    message_of_fields(
        "ConsumerGroupRegularExpressionValue", (0, 0), 0, read_consumer_group_regular_expression_value,
        write_consumer_group_regular_expression_value,
    ),
)
