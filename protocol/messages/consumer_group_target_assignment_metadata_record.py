"""ConsumerGroupTargetAssignmentMetadata: generated from consumer_group_target_assignment_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMetadataKey(Structure):
    """ConsumerGroupTargetAssignmentMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMetadataValue(Structure):
    """ConsumerGroupTargetAssignmentMetadata, versions 0-0."""

    assignment_epoch: int
    assignment_timestamp: int

    def __init__(self, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp


def read_consumer_group_target_assignment_metadata_key(
    reader: Reader, version: int
) -> ConsumerGroupTargetAssignmentMetadataKey:
    return ConsumerGroupTargetAssignmentMetadataKey(reader.string())


def write_consumer_group_target_assignment_metadata_key(
    writer: Writer, message: ConsumerGroupTargetAssignmentMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_consumer_group_target_assignment_metadata_value(
    reader: Reader, version: int
) -> ConsumerGroupTargetAssignmentMetadataValue:
    message = ConsumerGroupTargetAssignmentMetadataValue(reader.int32())
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.assignment_timestamp = reader.int64()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_consumer_group_target_assignment_metadata_value(
    writer: Writer, message: ConsumerGroupTargetAssignmentMetadataValue, version: int
) -> None:
    writer.int32(message.assignment_epoch)
    tagged = TaggedFields()
    if message.assignment_timestamp:
        tagged.int64(message.assignment_timestamp)
        tagged.end(0)
    writer.tags(tagged)


CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD = RecordType(
    6,
    "ConsumerGroupTargetAssignmentMetadata",
    message_of_fields(
        "ConsumerGroupTargetAssignmentMetadataKey", (0, 0), NEVER,
        read_consumer_group_target_assignment_metadata_key,
        write_consumer_group_target_assignment_metadata_key,
    ),
    message_of_fields(
        "ConsumerGroupTargetAssignmentMetadataValue", (0, 0), 0,
        read_consumer_group_target_assignment_metadata_value,
        write_consumer_group_target_assignment_metadata_value,
    ),
)
