"""ShareGroupMemberMetadata: generated from share_group_member_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMemberMetadataKey(Structure):
    """ShareGroupMemberMetadata, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(self, group_id: str = "", member_id: str = "") -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ShareGroupMemberMetadataValue(Structure):
    """ShareGroupMemberMetadata, versions 0-0."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: list[str]

    def __init__(
        self, rack_id: str | None = "", client_id: str = "", client_host: str = "",
        subscribed_topic_names: list[str] = ABSENT,
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = [] if subscribed_topic_names is ABSENT else subscribed_topic_names


def read_share_group_member_metadata_key(
    reader: Reader, version: int
) -> ShareGroupMemberMetadataKey:
    return ShareGroupMemberMetadataKey(reader.string(), reader.string())


def write_share_group_member_metadata_key(
    writer: Writer, message: ShareGroupMemberMetadataKey, version: int
) -> None:
    writer.string(message.group_id)
    writer.string(message.member_id)


def read_share_group_member_metadata_value(
    reader: Reader, version: int
) -> ShareGroupMemberMetadataValue:
    message = ShareGroupMemberMetadataValue(
        reader.optional_string(),
        reader.string(),
        reader.string(),
        reader.values(reader.string, 1),
    )
    reader.skip_tags()
    return message


def write_share_group_member_metadata_value(
    writer: Writer, message: ShareGroupMemberMetadataValue, version: int
) -> None:
    writer.optional_string(message.rack_id)
    writer.string(message.client_id)
    writer.string(message.client_host)
    writer.values(message.subscribed_topic_names, writer.string)
    writer.no_tags()


SHARE_GROUP_MEMBER_METADATA_RECORD = RecordType(
    10,
    "ShareGroupMemberMetadata",
    message_of_fields(
        "ShareGroupMemberMetadataKey", (0, 0), NEVER, read_share_group_member_metadata_key,
        write_share_group_member_metadata_key,
    ),
    message_of_fields(
        "ShareGroupMemberMetadataValue", (0, 0), 0, read_share_group_member_metadata_value,
        write_share_group_member_metadata_value,
    ),
)
