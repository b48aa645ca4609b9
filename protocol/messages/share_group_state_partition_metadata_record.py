"""ShareGroupStatePartitionMetadata: generated from share_group_state_partition_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, ZERO_UUID, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupStatePartitionMetadataKey(Structure):
    """ShareGroupStatePartitionMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitionsInfo(Structure):
    """Part of ShareGroupStatePartitionMetadata."""

    topic_id: bytes
    topic_name: str
    partitions: list[int]

    def __init__(
        self, topic_id: bytes = ZERO_UUID, topic_name: str = "", partitions: list[int] = ABSENT
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = [] if partitions is ABSENT else partitions


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicInfo(Structure):
    """Part of ShareGroupStatePartitionMetadata."""

    topic_id: bytes
    topic_name: str

    def __init__(self, topic_id: bytes = ZERO_UUID, topic_name: str = "") -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupStatePartitionMetadataValue(Structure):
    """ShareGroupStatePartitionMetadata, versions 0-0."""

    initializing_topics: list[TopicPartitionsInfo]
    initialized_topics: list[TopicPartitionsInfo]
    deleting_topics: list[TopicInfo]

    def __init__(
        self, initializing_topics: list[TopicPartitionsInfo] = ABSENT,
        initialized_topics: list[TopicPartitionsInfo] = ABSENT,
        deleting_topics: list[TopicInfo] = ABSENT,
    ) -> None:
        self.initializing_topics = [] if initializing_topics is ABSENT else initializing_topics
        self.initialized_topics = [] if initialized_topics is ABSENT else initialized_topics
        self.deleting_topics = [] if deleting_topics is ABSENT else deleting_topics


def read_share_group_state_partition_metadata_key(
    reader: Reader, version: int
) -> ShareGroupStatePartitionMetadataKey:
    return ShareGroupStatePartitionMetadataKey(reader.string())


def write_share_group_state_partition_metadata_key(
    writer: Writer, message: ShareGroupStatePartitionMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_topic_partitions_info(reader: Reader, version: int) -> TopicPartitionsInfo:
    message = TopicPartitionsInfo(reader.uuid(), reader.string(), reader.values(reader.int32, 4))
    reader.skip_tags()
    return message


def write_topic_partitions_info(writer: Writer, message: TopicPartitionsInfo, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.string(message.topic_name)
    writer.values(message.partitions, writer.int32)
    writer.no_tags()


def read_topic_info(reader: Reader, version: int) -> TopicInfo:
    message = TopicInfo(reader.uuid(), reader.string())
    reader.skip_tags()
    return message


def write_topic_info(writer: Writer, message: TopicInfo, version: int) -> None:
    writer.uuid(message.topic_id)
    writer.string(message.topic_name)
    writer.no_tags()


def read_share_group_state_partition_metadata_value(
    reader: Reader, version: int
) -> ShareGroupStatePartitionMetadataValue:
    message = ShareGroupStatePartitionMetadataValue(
        reader.array(read_topic_partitions_info, version, 19),
        reader.array(read_topic_partitions_info, version, 19),
        reader.array(read_topic_info, version, 18),
    )
    reader.skip_tags()
    return message


def write_share_group_state_partition_metadata_value(
    writer: Writer, message: ShareGroupStatePartitionMetadataValue, version: int
) -> None:
    writer.array(message.initializing_topics, write_topic_partitions_info, version)
    writer.array(message.initialized_topics, write_topic_partitions_info, version)
    writer.array(message.deleting_topics, write_topic_info, version)
    writer.no_tags()


SHARE_GROUP_STATE_PARTITION_METADATA_RECORD = RecordType(
    15,
    "ShareGroupStatePartitionMetadata",
    message_of_fields(
        "ShareGroupStatePartitionMetadataKey", (0, 0), NEVER,
        read_share_group_state_partition_metadata_key, write_share_group_state_partition_metadata_key,
    ),
    message_of_fields(
        "ShareGroupStatePartitionMetadataValue", (0, 0), 0,
        read_share_group_state_partition_metadata_value,
        write_share_group_state_partition_metadata_value,
    ),
)
