"""StreamsGroupMetadata: generated from streams_group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMetadataKey(Structure):
    """StreamsGroupMetadata, versions 0-0."""

    group_id: str

    def __init__(self, group_id: str = "") -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class LastAssignmentConfig(Structure):
    """Part of StreamsGroupMetadata."""

    key: str
    value: str

    def __init__(self, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMetadataValue(Structure):
    """StreamsGroupMetadata, versions 0-0."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int
    last_assignment_configs: list[LastAssignmentConfig] | None

    def __init__(
        self, epoch: int = 0, metadata_hash: int = 0, validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = ABSENT,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is ABSENT else last_assignment_configs


def read_streams_group_metadata_key(reader: Reader, version: int) -> StreamsGroupMetadataKey:
    return StreamsGroupMetadataKey(reader.string())


def write_streams_group_metadata_key(
    writer: Writer, message: StreamsGroupMetadataKey, version: int
) -> None:
    writer.string(message.group_id)


def read_last_assignment_config(reader: Reader, version: int) -> LastAssignmentConfig:
    message = LastAssignmentConfig(reader.string(), reader.string())
    reader.skip_tags()
    return message


def write_last_assignment_config(
    writer: Writer, message: LastAssignmentConfig, version: int
) -> None:
    writer.string(message.key)
    writer.string(message.value)
    writer.no_tags()


def read_streams_group_metadata_value(reader: Reader, version: int) -> StreamsGroupMetadataValue:
    message = StreamsGroupMetadataValue(reader.int32(), reader.int64())
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.validated_topology_epoch = reader.int32()
        elif tag == 1:
            message.last_assignment_configs = reader.optional_array(read_last_assignment_config, version, 3)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_streams_group_metadata_value(
    writer: Writer, message: StreamsGroupMetadataValue, version: int
) -> None:
    writer.int32(message.epoch)
    writer.int64(message.metadata_hash)
    tagged = TaggedFields()
    if message.validated_topology_epoch != -1:
        tagged.int32(message.validated_topology_epoch)
        tagged.end(0)
    if message.last_assignment_configs != []:
        tagged.optional_array(message.last_assignment_configs, write_last_assignment_config, version)
        tagged.end(1)
    writer.tags(tagged)


STREAMS_GROUP_METADATA_RECORD = RecordType(
    17,
    "StreamsGroupMetadata",
    message_of_fields(
        "StreamsGroupMetadataKey", (0, 0), NEVER, read_streams_group_metadata_key,
        write_streams_group_metadata_key,
    ),
    message_of_fields(
        "StreamsGroupMetadataValue", (0, 0), 0, read_streams_group_metadata_value,
        write_streams_group_metadata_value,
    ),
)
