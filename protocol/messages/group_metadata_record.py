"""GroupMetadata: generated from group_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class GroupMetadataKey(Structure):
    """GroupMetadata, versions 0-4."""

    group: str

    def __init__(self, group: str = "") -> None:
        self.group = group


@dataclass(slots=True, init=False, repr=False, eq=False)
class MemberMetadata(Structure):
    """Part of GroupMetadata."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes

    def __init__(
        self, member_id: str = "", group_instance_id: str | None = None, client_id: str = "",
        client_host: str = "", rebalance_timeout: int = -1, session_timeout: int = 0,
        subscription: bytes = b"", assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout = rebalance_timeout
        self.session_timeout = session_timeout
        self.subscription = subscription
        self.assignment = assignment


@dataclass(slots=True, init=False, repr=False, eq=False)
class GroupMetadataValue(Structure):
    """GroupMetadata, versions 0-4."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int
    members: list[MemberMetadata]

    def __init__(
        self, protocol_type: str = "", generation: int = 0, protocol: str | None = "",
        leader: str | None = "", current_state_timestamp: int = -1,
        members: list[MemberMetadata] = ABSENT,
    ) -> None:
        self.protocol_type = protocol_type
        self.generation = generation
        self.protocol = protocol
        self.leader = leader
        self.current_state_timestamp = current_state_timestamp
        self.members = [] if members is ABSENT else members


def read_group_metadata_key(reader: Reader, version: int) -> GroupMetadataKey:
    return GroupMetadataKey(reader.string())


def write_group_metadata_key(writer: Writer, message: GroupMetadataKey, version: int) -> None:
    writer.string(message.group)


def read_member_metadata(reader: Reader, version: int) -> MemberMetadata:
    message = MemberMetadata(
        reader.string(),
        reader.optional_string() if version >= 3 else None,
        reader.string(),
        reader.string(),
        reader.int32() if version >= 1 else -1,
        reader.int32(),
        reader.blob(),
        reader.blob(),
    )
    reader.skip_tags()
    return message


def write_member_metadata(writer: Writer, message: MemberMetadata, version: int) -> None:
    writer.string(message.member_id)
    if version >= 3:
        writer.optional_string(message.group_instance_id)
    writer.string(message.client_id)
    writer.string(message.client_host)
    if version >= 1:
        writer.int32(message.rebalance_timeout)
    writer.int32(message.session_timeout)
    writer.blob(message.subscription)
    writer.blob(message.assignment)
    writer.no_tags()


def read_group_metadata_value(reader: Reader, version: int) -> GroupMetadataValue:
    message = GroupMetadataValue(
        reader.string(),
        reader.int32(),
        reader.optional_string(),
        reader.optional_string(),
        reader.int64() if version >= 2 else -1,
        reader.array(read_member_metadata, version, 15),
    )
    reader.skip_tags()
    return message


def write_group_metadata_value(writer: Writer, message: GroupMetadataValue, version: int) -> None:
    writer.string(message.protocol_type)
    writer.int32(message.generation)
    writer.optional_string(message.protocol)
    writer.optional_string(message.leader)
    if version >= 2:
        writer.int64(message.current_state_timestamp)
    writer.array(message.members, write_member_metadata, version)
    writer.no_tags()


GROUP_METADATA_RECORD = RecordType(
    2,
    "GroupMetadata",
    message_of_fields(
        "GroupMetadataKey", (0, 0), NEVER, read_group_metadata_key, write_group_metadata_key
    ),
    message_of_fields(
        "GroupMetadataValue", (0, 4), 4, read_group_metadata_value, write_group_metadata_value
    ),
)
