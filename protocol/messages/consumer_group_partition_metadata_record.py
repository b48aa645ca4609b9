"""ConsumerGroupPartitionMetadata: generated from consumer_group_partition_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupPartitionMetadataKey(Structure):
    """ConsumerGroupPartitionMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionMetadata(Structure):
    """Part of ConsumerGroupPartitionMetadata."""

    partition: int
    racks: list[str]

    def __init__(self, partition: int = 0, racks: list[str] = ABSENT) -> None:
        self.partition = partition
        self.racks = [] if racks is ABSENT else racks


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicMetadata(Structure):
    """Part of ConsumerGroupPartitionMetadata."""

    topic_id: bytes
    topic_name: str
    num_partitions: int
    partition_metadata: list[PartitionMetadata]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, topic_name: str = "", num_partitions: int = 0,
        partition_metadata: list[PartitionMetadata] = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = [] if partition_metadata is ABSENT else partition_metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupPartitionMetadataValue(Structure):
    """ConsumerGroupPartitionMetadata, versions 0-0."""

    topics: list[TopicMetadata]

    def __init__(self, topics: list[TopicMetadata] = ABSENT) -> None:
        self.topics = [] if topics is ABSENT else topics


def read_consumer_group_partition_metadata_key(
    reader: Reader, version: int
) -> ConsumerGroupPartitionMetadataKey:
    return ConsumerGroupPartitionMetadataKey(reader.string())


def write_consumer_group_partition_metadata_key(
    writer: Writer, message: ConsumerGroupPartitionMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_partition_metadata(reader: Reader, version: int) -> PartitionMetadata:
    message = PartitionMetadata(reader.int32(), reader.values(reader.string, 1))
    reader.skip_tags()
    return message


def write_partition_metadata(writer: Writer, message: PartitionMetadata, version: int) -> None:
    writer.int32(message.partition)
    writer.values(message.racks, writer.string)
    writer.no_tags()


def read_topic_metadata(reader: Reader, version: int) -> TopicMetadata:
    message = TopicMetadata(
        reader.uuid(),
        reader.string(),
        reader.int32(),
        reader.array(read_partition_metadata, version, 6),
    )
    reader.skip_tags()
    return message


def write_topic_metadata(writer: Writer, message: TopicMetadata, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.string(message.topic_name)
    writer.int32(message.num_partitions)
    writer.array(message.partition_metadata, write_partition_metadata, version)
    writer.no_tags()


def read_consumer_group_partition_metadata_value(
    reader: Reader, version: int
) -> ConsumerGroupPartitionMetadataValue:
    message = ConsumerGroupPartitionMetadataValue(reader.array(read_topic_metadata, version, 23))
    reader.skip_tags()
    return message


def write_consumer_group_partition_metadata_value(
    writer: Writer, message: ConsumerGroupPartitionMetadataValue, version: int
) -> None:
    writer.array(message.topics, write_topic_metadata, version)
    writer.no_tags()


CONSUMER_GROUP_PARTITION_METADATA_RECORD = RecordType(
    4,
    "ConsumerGroupPartitionMetadata",
    message_of_fields(
        "ConsumerGroupPartitionMetadataKey", (0, 0), NEVER, read_consumer_group_partition_metadata_key,
        write_consumer_group_partition_metadata_key,
    ),
    message_of_fields(
        "ConsumerGroupPartitionMetadataValue", (0, 0), 0, read_consumer_group_partition_metadata_value,
        write_consumer_group_partition_metadata_value,
    ),
)
