"""StreamsGroupMemberMetadata: generated from streams_group_member_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMemberMetadataKey(Structure):
    """StreamsGroupMemberMetadata, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class Endpoint(Structure):
    """Part of StreamsGroupMemberMetadata."""

    host: str
    port: int

    def __init__(self, host: str = "", port: int = 0) -> None:
        self.host = host
        self.port = port


@dataclass(slots=True, init=False, repr=False, eq=False)
class KeyValue(Structure):
    """Part of StreamsGroupMemberMetadata."""

    key: str
    value: str

    def __init__(self, key: str = "", value: str = "") -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class StreamsGroupMemberMetadataValue(Structure):
    """StreamsGroupMemberMetadata, versions 0-0."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: list[KeyValue]

    def __init__(
        self, instance_id: str | None = "", rack_id: str | None = "", client_id: str = "",
        client_host: str = "", rebalance_timeout_ms: int = -1, topology_epoch: int = 0,
        process_id: str = "", user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] = ABSENT,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.topology_epoch = topology_epoch
        self.process_id = process_id
        self.user_endpoint = user_endpoint
        self.client_tags = [] if client_tags is ABSENT else client_tags


def read_streams_group_member_metadata_key(
    reader: Reader, version: int
) -> StreamsGroupMemberMetadataKey:
    return StreamsGroupMemberMetadataKey(reader.string(), reader.string())


def write_streams_group_member_metadata_key(
    writer: Writer, message: StreamsGroupMemberMetadataKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_endpoint(reader: Reader, version: int) -> Endpoint:
    message = Endpoint(reader.string(), reader.uint16())
    reader.skip_tags()
    return message


def write_endpoint(writer: Writer, message: Endpoint, version: int) -> None:
    writer.string(message.host)
    writer.uint16(message.port)
    writer.no_tags()


def read_key_value(reader: Reader, version: int) -> KeyValue:
    message = KeyValue(reader.string(), reader.string())
    reader.skip_tags()
    return message


def write_key_value(writer: Writer, message: KeyValue, version: int) -> None:
    writer.string(message.key)
    writer.string(message.value)
    writer.no_tags()


def read_streams_group_member_metadata_value(
    reader: Reader, version: int
) -> StreamsGroupMemberMetadataValue:
    message = StreamsGroupMemberMetadataValue(
        reader.optional_string(),
        reader.optional_string(),
        reader.string(),
        reader.string(),
        reader.int32(),
        reader.int32(),
        reader.string(),
        reader.optional(read_endpoint, version),
        reader.array(read_key_value, version, 3),
    )
    reader.skip_tags()
    return message


def write_streams_group_member_metadata_value(
    writer: Writer, message: StreamsGroupMemberMetadataValue, version: int
) -> None:
    writer.optional_string(message.instance_id)
    writer.optional_string(message.rack_id)
    writer.string(message.client_id)
    writer.string(message.client_host)
    writer.int32(message.rebalance_timeout_ms)
    writer.int32(message.topology_epoch)
    writer.string(message.process_id)
    writer.optional(message.user_endpoint, write_endpoint, version)
    writer.array(message.client_tags, write_key_value, version)
    writer.no_tags()


STREAMS_GROUP_MEMBER_METADATA_RECORD = RecordType(
    19,
    "StreamsGroupMemberMetadata",
    message_of_fields(
        "StreamsGroupMemberMetadataKey", (0, 0), NEVER, read_streams_group_member_metadata_key,
        write_streams_group_member_metadata_key,
    ),
    message_of_fields(
        "StreamsGroupMemberMetadataValue", (0, 0), 0, read_streams_group_member_metadata_value,
        write_streams_group_member_metadata_value,
    ),
)
