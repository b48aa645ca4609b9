"""StreamsGroupMetadata: generated from streams_group_metadata_record.schema by protocol/generate. Do not edit."""

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
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    wrong_tag_size,
)

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_iq = Struct(">iq").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iqB = Struct(">iqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMetadataKey(Structure):
    """StreamsGroupMetadata, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class LastAssignmentConfig(Structure):
    """Part of StreamsGroupMetadata."""

    key: str
    value: str

    def __init__(
        self,
        key: str = "",
        value: str = "",
    ) -> None:
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
        self,
        epoch: int = 0,
        metadata_hash: int = 0,
        validated_topology_epoch: int = -1,
        last_assignment_configs: list[LastAssignmentConfig] | None = ABSENT,
    ) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash
        self.validated_topology_epoch = validated_topology_epoch
        self.last_assignment_configs = [] if last_assignment_configs is ABSENT else last_assignment_configs


def decode_key_v0(view: memoryview, position: int) -> tuple[StreamsGroupMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("StreamsGroupMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return StreamsGroupMetadataKey(group_id), position


def encode_key_v0(message: StreamsGroupMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[StreamsGroupMetadataValue, int]:
    epoch, metadata_hash, streams_group_metadata_value_tags = unpack_iqB(view, position)
    position += 13
    validated_topology_epoch: int = -1
    last_assignment_configs: list[LastAssignmentConfig] | None = []
    if streams_group_metadata_value_tags:
        streams_group_metadata_value_tags, position = tag_count(view, position, streams_group_metadata_value_tags)
        for _ in range(streams_group_metadata_value_tags):
            tag, position, streams_group_metadata_value_tag_end = read_tag(view, position)
            if tag == 0:
                (validated_topology_epoch,) = unpack_i(view, position)
                position += 4
                if position != streams_group_metadata_value_tag_end:
                    raise wrong_tag_size(0)
            elif tag == 1:
                count = view[position]
                position += 1
                tagged_last_assignment_configs: list[LastAssignmentConfig] | None = None
                if count:
                    if not 0 < count < 0x80:
                        count, position = long_count(view, position, count, 3)
                    tagged_last_assignment_configs = []
                    for _ in range(count - 1):
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        key = view[position:end].tobytes().decode()
                        position = end
                        size = view[position]
                        position += 1
                        if not 0 < size < 0x80:
                            size, position = long_size(view, position, size)
                        end = position + size - 1
                        value = view[position:end].tobytes().decode()
                        position = end
                        tags = view[position]
                        position += 1
                        if tags:
                            position = skip_tags(view, position, tags)
                        tagged_last_assignment_configs.append(LastAssignmentConfig(key, value))
                last_assignment_configs = tagged_last_assignment_configs
                if position != streams_group_metadata_value_tag_end:
                    raise wrong_tag_size(1)
            position = streams_group_metadata_value_tag_end
    message = StreamsGroupMetadataValue(
        epoch,
        metadata_hash,
        validated_topology_epoch,
        last_assignment_configs,
    )
    return message, position


def encode_value_v0(message: StreamsGroupMetadataValue, out: bytearray) -> Chunks:
    out += pack_iq(message.epoch, message.metadata_hash)
    if message.validated_topology_epoch == -1 and message.last_assignment_configs == []:
        out.append(0)
    else:
        streams_group_metadata_value_tags = 0
        streams_group_metadata_value_tagged = bytearray()
        if message.validated_topology_epoch != -1:
            streams_group_metadata_value_tags += 1
            validated_topology_epoch_body = bytearray()
            validated_topology_epoch = message.validated_topology_epoch
            validated_topology_epoch_body += pack_i(validated_topology_epoch)
            put_tag(streams_group_metadata_value_tagged, 0, validated_topology_epoch_body)
        if message.last_assignment_configs != []:
            streams_group_metadata_value_tags += 1
            last_assignment_configs_body = bytearray()
            last_assignment_configs = message.last_assignment_configs
            if last_assignment_configs is None:
                last_assignment_configs_body.append(0)
            else:
                size = len(last_assignment_configs) + 1
                if size < 0x80:
                    last_assignment_configs_body.append(size)
                else:
                    put_varint(last_assignment_configs_body, size)
                for last_assignment_config in last_assignment_configs:
                    key = last_assignment_config.key
                    data = key.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        last_assignment_configs_body.append(size)
                    else:
                        put_varint(last_assignment_configs_body, size)
                    last_assignment_configs_body += data
                    value = last_assignment_config.value
                    data = value.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        last_assignment_configs_body.append(size)
                    else:
                        put_varint(last_assignment_configs_body, size)
                    last_assignment_configs_body += data
                    last_assignment_configs_body.append(0)
            put_tag(streams_group_metadata_value_tagged, 1, last_assignment_configs_body)
        out.append(streams_group_metadata_value_tags)
        out += streams_group_metadata_value_tagged
    return [out]


STREAMS_GROUP_METADATA_RECORD = RecordType(
    17,
    "StreamsGroupMetadata",
    Message(
        "StreamsGroupMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "StreamsGroupMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
