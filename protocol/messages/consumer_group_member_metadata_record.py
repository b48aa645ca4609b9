"""ConsumerGroupMemberMetadata: generated from consumer_group_member_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMemberMetadataKey(Structure):
    """ConsumerGroupMemberMetadata, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ClassicProtocol(Structure):
    """Part of ConsumerGroupMemberMetadata."""

    name: str
    metadata: bytes

    def __init__(self, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


@dataclass(slots=True, init=False, repr=False, eq=False)
class ClassicMemberMetadata(Structure):
    """Part of ConsumerGroupMemberMetadata."""

    session_timeout_ms: int
    supported_protocols: list[ClassicProtocol]

    def __init__(
        self, session_timeout_ms: int = 0, supported_protocols: list[ClassicProtocol] = ABSENT
    ) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = [] if supported_protocols is ABSENT else supported_protocols


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupMemberMetadataValue(Structure):
    """ConsumerGroupMemberMetadata, versions 0-0."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None

    def __init__(
        self, instance_id: str | None = "", rack_id: str | None = "", client_id: str = "",
        client_host: str = "", subscribed_topic_names: list[str] = ABSENT,
        subscribed_topic_regex: str | None = "", rebalance_timeout_ms: int = -1,
        server_assignor: str | None = "",
        classic_member_metadata: ClassicMemberMetadata | None = ABSENT,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is ABSENT else subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = ClassicMemberMetadata() if classic_member_metadata is ABSENT else classic_member_metadata


def read_consumer_group_member_metadata_key(
    reader: Reader, version: int
) -> ConsumerGroupMemberMetadataKey:
    return ConsumerGroupMemberMetadataKey(reader.string(), reader.string())


def write_consumer_group_member_metadata_key(
    writer: Writer, message: ConsumerGroupMemberMetadataKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_classic_protocol(reader: Reader, version: int) -> ClassicProtocol:
    message = ClassicProtocol(reader.string(), reader.blob())
    reader.skip_tags()
    return message


def write_classic_protocol(writer: Writer, message: ClassicProtocol, version: int) -> None:
    writer.string(message.name)
    writer.blob(message.metadata)
    writer.no_tags()


def read_classic_member_metadata(reader: Reader, version: int) -> ClassicMemberMetadata:
    message = ClassicMemberMetadata(reader.int32(), reader.array(read_classic_protocol, version, 3))
    reader.skip_tags()
    return message


def write_classic_member_metadata(
    writer: Writer, message: ClassicMemberMetadata, version: int
) -> None:
    writer.int32(message.session_timeout_ms)
    writer.array(message.supported_protocols, write_classic_protocol, version)
    writer.no_tags()


def read_consumer_group_member_metadata_value(
    reader: Reader, version: int
) -> ConsumerGroupMemberMetadataValue:
    message = ConsumerGroupMemberMetadataValue(
        reader.optional_string(),
        reader.optional_string(),
        reader.string(),
        reader.string(),
        reader.values(reader.string, 1),
        reader.optional_string(),
        reader.int32(),
        reader.optional_string(),
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 0:
            message.classic_member_metadata = reader.optional_tagged(read_classic_member_metadata, version)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_consumer_group_member_metadata_value(
    writer: Writer, message: ConsumerGroupMemberMetadataValue, version: int
) -> None:
    writer.optional_string(message.instance_id)
    writer.optional_string(message.rack_id)
    writer.string(message.client_id)
    writer.string(message.client_host)
    writer.values(message.subscribed_topic_names, writer.string)
    writer.optional_string(message.subscribed_topic_regex)
    writer.int32(message.rebalance_timeout_ms)
    writer.optional_string(message.server_assignor)
    tagged = TaggedFields()
    if message.classic_member_metadata != ClassicMemberMetadata():
        tagged.optional_tagged(message.classic_member_metadata, write_classic_member_metadata, version)
        tagged.end(0)
    writer.tags(tagged)


CONSUMER_GROUP_MEMBER_METADATA_RECORD = RecordType(
    5,
    "ConsumerGroupMemberMetadata",
    message_of_fields(
        "ConsumerGroupMemberMetadataKey", (0, 0), NEVER, read_consumer_group_member_metadata_key,
        write_consumer_group_member_metadata_key,
    ),
    message_of_fields(
        "ConsumerGroupMemberMetadataValue", (0, 0), 0, read_consumer_group_member_metadata_value,
        write_consumer_group_member_metadata_value,
    ),
)
