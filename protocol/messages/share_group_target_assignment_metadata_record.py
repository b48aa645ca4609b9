"""ShareGroupTargetAssignmentMetadata: generated from share_group_target_assignment_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupTargetAssignmentMetadataKey(Structure):
    """ShareGroupTargetAssignmentMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupTargetAssignmentMetadataValue(Structure):
    """ShareGroupTargetAssignmentMetadata, versions 0-0."""

    assignment_epoch: int
    assignment_timestamp: int

    def __init__(self, assignment_epoch: int = 0, assignment_timestamp: int = 0) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp


def read_share_group_target_assignment_metadata_key(
    reader: Reader, version: int
) -> ShareGroupTargetAssignmentMetadataKey:
    return ShareGroupTargetAssignmentMetadataKey(reader.string())


def write_share_group_target_assignment_metadata_key(
    writer: Writer, message: ShareGroupTargetAssignmentMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_share_group_target_assignment_metadata_value(
    reader: Reader, version: int
) -> ShareGroupTargetAssignmentMetadataValue:
    message = ShareGroupTargetAssignmentMetadataValue(reader.int32())
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.assignment_timestamp = reader.int64()
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_share_group_target_assignment_metadata_value(
    writer: Writer, message: ShareGroupTargetAssignmentMetadataValue, version: int
) -> None:
    writer.int32(message.assignment_epoch)
    tagged = TaggedFields()
    if message.assignment_timestamp:
        tagged.int64(message.assignment_timestamp)
        tagged.end(0)
    writer.tags(tagged)


SHARE_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD = RecordType(
    12,
    "ShareGroupTargetAssignmentMetadata",
    message_of_fields(
        "ShareGroupTargetAssignmentMetadataKey", (0, 0), NEVER,
        read_share_group_target_assignment_metadata_key,
        write_share_group_target_assignment_metadata_key,
    ),
    message_of_fields(
        "ShareGroupTargetAssignmentMetadataValue", (0, 0), 0,
        read_share_group_target_assignment_metadata_value,
        write_share_group_target_assignment_metadata_value,
    ),
)
