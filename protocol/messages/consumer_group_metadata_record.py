"""ConsumerGroupMetadata: generated from consumer_group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMetadataKey(Structure):
    """ConsumerGroupMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMetadataValue(Structure):
    """ConsumerGroupMetadata, versions 0-0."""

    epoch: int
    metadata_hash: int

    def __init__(self, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


def read_consumer_group_metadata_key(reader: Reader, version: int) -> ConsumerGroupMetadataKey:
    return ConsumerGroupMetadataKey(reader.string())


def write_consumer_group_metadata_key(
    writer: Writer, message: ConsumerGroupMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_consumer_group_metadata_value(reader: Reader, version: int) -> ConsumerGroupMetadataValue:
    message = ConsumerGroupMetadataValue(reader.int32())
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.metadata_hash = reader.int64()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_consumer_group_metadata_value(
    writer: Writer, message: ConsumerGroupMetadataValue, version: int
) -> None:
    writer.int32(message.epoch)
    tagged = TaggedFields()
    if message.metadata_hash:
        tagged.int64(message.metadata_hash)
        tagged.end(0)
    writer.tags(tagged)


CONSUMER_GROUP_METADATA_RECORD = RecordType(
    3,
    "ConsumerGroupMetadata",
    message_of_fields(
        "ConsumerGroupMetadataKey", (0, 0), NEVER, read_consumer_group_metadata_key,
        write_consumer_group_metadata_key,
    ),
    message_of_fields(
        "ConsumerGroupMetadataValue", (0, 0), 0, read_consumer_group_metadata_value,
        write_consumer_group_metadata_value,
    ),
)
