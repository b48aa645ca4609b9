"""ShareGroupMetadata: generated from share_group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMetadataKey(Structure):
    """ShareGroupMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMetadataValue(Structure):
    """ShareGroupMetadata, versions 0-0."""

    epoch: int
    metadata_hash: int

    def __init__(self, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


def read_share_group_metadata_key(reader: Reader, version: int) -> ShareGroupMetadataKey:
    return ShareGroupMetadataKey(reader.string())


def write_share_group_metadata_key(
    writer: Writer, message: ShareGroupMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_share_group_metadata_value(reader: Reader, version: int) -> ShareGroupMetadataValue:
    message = ShareGroupMetadataValue(reader.int32(), reader.int64())
    reader.skip_tags()
    return message


def write_share_group_metadata_value(
    writer: Writer, message: ShareGroupMetadataValue, version: int
) -> None:
    writer.int32(message.epoch)
    writer.int64(message.metadata_hash)
    writer.no_tags()


SHARE_GROUP_METADATA_RECORD = RecordType(
    11,
    "ShareGroupMetadata",
    message_of_fields(
        "ShareGroupMetadataKey", (0, 0), NEVER, read_share_group_metadata_key,
        write_share_group_metadata_key,
    ),
    message_of_fields(
        "ShareGroupMetadataValue", (0, 0), 0, read_share_group_metadata_value,
        write_share_group_metadata_value,
    ),
)
