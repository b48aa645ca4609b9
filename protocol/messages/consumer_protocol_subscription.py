"""ConsumerProtocolSubscription: generated from consumer_protocol_subscription.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartition(Structure):
    """Part of ConsumerProtocolSubscription."""

    topic: str
    partitions: list[int]

    def __init__(self, topic: str = "", partitions: list[int] = ABSENT) -> None:
        self.topic = topic
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerProtocolSubscription(Structure):
    """ConsumerProtocolSubscription, versions 0-3."""

    topics: list[str]
    user_data: bytes | None
    owned_partitions: list[TopicPartition]
    generation_id: int
    rack_id: str | None

    def __init__(
        self, topics: list[str] = ABSENT, user_data: bytes | None = None,
        owned_partitions: list[TopicPartition] = ABSENT, generation_id: int = -1,
        rack_id: str | None = None,
    ) -> None:
        self.topics = [] if topics is ABSENT else topics
        self.user_data = user_data
        self.owned_partitions = [] if owned_partitions is ABSENT else owned_partitions
        self.generation_id = generation_id
        self.rack_id = rack_id


def read_topic_partition(reader: Reader, version: int) -> TopicPartition:
    return TopicPartition(reader.string(), reader.values(reader.int32, 4))


def write_topic_partition(writer: Writer, message: TopicPartition, version: int) -> None:
    writer.string(message.topic)
    writer.values(message.partitions, writer.int32)


def read_consumer_protocol_subscription(
    reader: Reader, version: int
) -> ConsumerProtocolSubscription:
    return ConsumerProtocolSubscription(
        reader.values(reader.string, 2),
        reader.optional_blob(),
        reader.array(read_topic_partition, version, 6) if version >= 1 else [],
        reader.int32() if version >= 2 else -1,
        reader.optional_string() if version >= 3 else None,
    )


def write_consumer_protocol_subscription(
    writer: Writer, message: ConsumerProtocolSubscription, version: int
) -> None:
    writer.values(message.topics, writer.string)
    writer.optional_blob(message.user_data)
    if version >= 1:
        writer.array(message.owned_partitions, write_topic_partition, version)
    if version >= 2:
        writer.int32(message.generation_id)
    if version >= 3:
        writer.optional_string(message.rack_id)


CONSUMER_PROTOCOL_SUBSCRIPTION = message_of_fields(
    "ConsumerProtocolSubscription", (0, 3), NEVER, read_consumer_protocol_subscription,
    write_consumer_protocol_subscription,
)
