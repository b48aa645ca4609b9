"""LegacyOffsetCommit: generated from legacy_offset_commit_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_q = Struct(">q").pack
pack_qh = Struct(">qh").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qh = Struct(">qh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class LegacyOffsetCommitKey(Structure):
    """LegacyOffsetCommit, versions 0-0."""

    group: str
    topic: str
    partition: int

    def __init__(
        self,
        group: str = "",
        topic: str = "",
        partition: int = 0,
    ) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


@dataclass(slots=True, init=False, repr=False, eq=False)
class LegacyOffsetCommitValue(Structure):
    """LegacyOffsetCommit, versions 0-0."""

    offset: int
    metadata: str
    commit_timestamp: int

    def __init__(
        self,
        offset: int = 0,
        metadata: str = "",
        commit_timestamp: int = 0,
    ) -> None:
        self.offset = offset
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp


def decode_key_v0(view: memoryview, position: int) -> tuple[LegacyOffsetCommitKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("LegacyOffsetCommitKey.group: negative length")
    end = position + size
    group = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("LegacyOffsetCommitKey.topic: negative length")
    end = position + size
    topic = view[position:end].tobytes().decode()
    position = end
    (partition,) = unpack_i(view, position)
    position += 4
    return LegacyOffsetCommitKey(group, topic, partition), position


def encode_key_v0(message: LegacyOffsetCommitKey, out: bytearray) -> Chunks:
    group = message.group
    data = group.encode()
    out += pack_h(len(data))
    out += data
    topic = message.topic
    data = topic.encode()
    out += pack_h(len(data))
    out += data
    out += pack_i(message.partition)
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[LegacyOffsetCommitValue, int]:
    offset, size = unpack_qh(view, position)
    position += 10
    if size < 0:
        raise Malformed("LegacyOffsetCommitValue.metadata: negative length")
    end = position + size
    metadata = view[position:end].tobytes().decode()
    position = end
    (commit_timestamp,) = unpack_q(view, position)
    position += 8
    return LegacyOffsetCommitValue(offset, metadata, commit_timestamp), position


def encode_value_v0(message: LegacyOffsetCommitValue, out: bytearray) -> Chunks:
    metadata = message.metadata
    data = metadata.encode()
    out += pack_qh(message.offset, len(data))
    out += data
    out += pack_q(message.commit_timestamp)
    return [out]


LEGACY_OFFSET_COMMIT_RECORD = RecordType(
    0,
    "LegacyOffsetCommit",
    Message(
        "LegacyOffsetCommitKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "LegacyOffsetCommitValue",
        (0, 0),
        NEVER,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
