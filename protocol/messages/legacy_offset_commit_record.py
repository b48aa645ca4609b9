"""LegacyOffsetCommit: generated from legacy_offset_commit_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import NEVER, RecordType
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import Structure
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class LegacyOffsetCommitKey(Structure):
    """LegacyOffsetCommit, versions 0-0."""

    group: str
    topic: str
    partition: int

    def __init__(self, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


@dataclass(slots=True, init=False, repr=False, eq=False)
class LegacyOffsetCommitValue(Structure):
    """LegacyOffsetCommit, versions 0-0."""

    offset: int
    metadata: str
    commit_timestamp: int

    def __init__(self, offset: int = 0, metadata: str = "", commit_timestamp: int = 0) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp


def read_legacy_offset_commit_key(reader: Reader, version: int) -> LegacyOffsetCommitKey:
    return LegacyOffsetCommitKey(reader.string(), reader.string(), reader.int32())


def write_legacy_offset_commit_key(
    writer: Writer, message: LegacyOffsetCommitKey, version: int
) -> None:
    writer.string(message.group)
    writer.string(message.topic)
    writer.int32(message.partition)


def read_legacy_offset_commit_value(reader: Reader, version: int) -> LegacyOffsetCommitValue:
    return LegacyOffsetCommitValue(reader.int64(), reader.string(), reader.int64())


def write_legacy_offset_commit_value(
    writer: Writer, message: LegacyOffsetCommitValue, version: int
) -> None:
    writer.int64(message.offset)
    writer.string(message.metadata)
    writer.int64(message.commit_timestamp)


LEGACY_OFFSET_COMMIT_RECORD = RecordType(
    0,
    "LegacyOffsetCommit",
    message_of_fields(
        "LegacyOffsetCommitKey", (0, 0), NEVER, read_legacy_offset_commit_key,
        write_legacy_offset_commit_key,
    ),
    message_of_fields(
        "LegacyOffsetCommitValue", (0, 0), NEVER, read_legacy_offset_commit_value,
        write_legacy_offset_commit_value,
    ),
)
