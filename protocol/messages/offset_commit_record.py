"""OffsetCommit: generated from offset_commit_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ZERO_UUID,
    Chunks,
    Structure,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    tag_count,
    wrong_tag_size,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_q = Struct(">q").pack
pack_qh = Struct(">qh").pack
pack_qi = Struct(">qi").pack
pack_qih = Struct(">qih").pack
pack_qq = Struct(">qq").pack
unpack_16s = Struct(">16s").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qB = Struct(">qB").unpack_from
unpack_qh = Struct(">qh").unpack_from
unpack_qiB = Struct(">qiB").unpack_from
unpack_qih = Struct(">qih").unpack_from
unpack_qq = Struct(">qq").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitKey(Structure):
    """OffsetCommit, versions 0-4."""

    group: str
    topic: str
    partition: int

    def __init__(self, group: str = "", topic: str = "", partition: int = 0) -> None:
        self.group = group
        self.topic = topic
        self.partition = partition


@dataclass(slots=True, init=False, repr=False, eq=False)
class OffsetCommitValue(Structure):
    """OffsetCommit, versions 0-4."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: bytes

    def __init__(
        self, offset: int = 0, leader_epoch: int = -1, metadata: str = "",
        commit_timestamp: int = 0, expire_timestamp: int = -1, topic_id: bytes = ZERO_UUID,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_timestamp = commit_timestamp
        self.expire_timestamp = expire_timestamp
        self.topic_id = topic_id


def decode_key_v0(view: memoryview, position: int) -> tuple[OffsetCommitKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetCommitKey.group: negative length")
    end = position + size
    group = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("OffsetCommitKey.topic: negative length")
    end = position + size
    topic = view[position:end].tobytes().decode()
    position = end
    (partition,) = unpack_i(view, position)
    position += 4
    return OffsetCommitKey(group, topic, partition), position


def encode_key_v0(message: OffsetCommitKey, out: bytearray) -> Chunks:
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


def decode_value_v0(view: memoryview, position: int) -> tuple[OffsetCommitValue, int]:
    offset, size = unpack_qh(view, position)
    position += 10
    if size < 0:
        raise Malformed("OffsetCommitValue.metadata: negative length")
    end = position + size
    metadata = view[position:end].tobytes().decode()
    position = end
    (commit_timestamp,) = unpack_q(view, position)
    position += 8
    return OffsetCommitValue(offset, -1, metadata, commit_timestamp, -1, ZERO_UUID), position


def encode_value_v0(message: OffsetCommitValue, out: bytearray) -> Chunks:
    metadata = message.metadata
    data = metadata.encode()
    out += pack_qh(message.offset, len(data))
    out += data
    out += pack_q(message.commit_timestamp)
    return [out]


def decode_value_v1(view: memoryview, position: int) -> tuple[OffsetCommitValue, int]:
    offset, size = unpack_qh(view, position)
    position += 10
    if size < 0:
        raise Malformed("OffsetCommitValue.metadata: negative length")
    end = position + size
    metadata = view[position:end].tobytes().decode()
    position = end
    commit_timestamp, expire_timestamp = unpack_qq(view, position)
    position += 16
    message = OffsetCommitValue(offset, -1, metadata, commit_timestamp, expire_timestamp, ZERO_UUID)
    return message, position


def encode_value_v1(message: OffsetCommitValue, out: bytearray) -> Chunks:
    metadata = message.metadata
    data = metadata.encode()
    out += pack_qh(message.offset, len(data))
    out += data
    out += pack_qq(message.commit_timestamp, message.expire_timestamp)
    return [out]


def decode_value_v2(view: memoryview, position: int) -> tuple[OffsetCommitValue, int]:
    offset, size = unpack_qh(view, position)
    position += 10
    if size < 0:
        raise Malformed("OffsetCommitValue.metadata: negative length")
    end = position + size
    metadata = view[position:end].tobytes().decode()
    position = end
    (commit_timestamp,) = unpack_q(view, position)
    position += 8
    return OffsetCommitValue(offset, -1, metadata, commit_timestamp, -1, ZERO_UUID), position


def encode_value_v2(message: OffsetCommitValue, out: bytearray) -> Chunks:
    metadata = message.metadata
    data = metadata.encode()
    out += pack_qh(message.offset, len(data))
    out += data
    out += pack_q(message.commit_timestamp)
    return [out]


def decode_value_v3(view: memoryview, position: int) -> tuple[OffsetCommitValue, int]:
    offset, leader_epoch, size = unpack_qih(view, position)
    position += 14
    if size < 0:
        raise Malformed("OffsetCommitValue.metadata: negative length")
    end = position + size
    metadata = view[position:end].tobytes().decode()
    position = end
    (commit_timestamp,) = unpack_q(view, position)
    position += 8
    message = OffsetCommitValue(offset, leader_epoch, metadata, commit_timestamp, -1, ZERO_UUID)
    return message, position


def encode_value_v3(message: OffsetCommitValue, out: bytearray) -> Chunks:
    metadata = message.metadata
    data = metadata.encode()
    out += pack_qih(message.offset, message.leader_epoch, len(data))
    out += data
    out += pack_q(message.commit_timestamp)
    return [out]


def decode_value_v4(view: memoryview, position: int) -> tuple[OffsetCommitValue, int]:
    offset, leader_epoch, size = unpack_qiB(view, position)
    position += 13
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    metadata = view[position:end].tobytes().decode()
    position = end
    commit_timestamp, offset_commit_value_tags = unpack_qB(view, position)
    position += 9
    topic_id: bytes = ZERO_UUID
    if offset_commit_value_tags:
        offset_commit_value_tags, position = tag_count(view, position, offset_commit_value_tags)
        for _ in range(offset_commit_value_tags):
            tag, position, offset_commit_value_tag_end = read_tag(view, position)
            if tag == 0:
                (topic_id,) = unpack_16s(view, position)
                position += 16
                if position != offset_commit_value_tag_end:
                    raise wrong_tag_size(0)
            position = offset_commit_value_tag_end
    message = OffsetCommitValue(offset, leader_epoch, metadata, commit_timestamp, -1, topic_id)
    return message, position


def encode_value_v4(message: OffsetCommitValue, out: bytearray) -> Chunks:
    metadata = message.metadata
    out += pack_qi(message.offset, message.leader_epoch)
    data = metadata.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    out += pack_q(message.commit_timestamp)
    if message.topic_id == ZERO_UUID:
        out.append(0)
    else:
        offset_commit_value_tags = 0
        offset_commit_value_tagged = bytearray()
        if message.topic_id != ZERO_UUID:
            offset_commit_value_tags += 1
            topic_id_body = bytearray()
            topic_id = message.topic_id
            topic_id_body += pack_16s(topic_id)
            put_tag(offset_commit_value_tagged, 0, topic_id_body)
        out.append(offset_commit_value_tags)
        out += offset_commit_value_tagged
    return [out]


OFFSET_COMMIT_RECORD = RecordType(
    1,
    "OffsetCommit",
    Message(
        "OffsetCommitKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "OffsetCommitValue",
        (0, 4),
        4,
        {
            0: (decode_value_v0, encode_value_v0),
            1: (decode_value_v1, encode_value_v1),
            2: (decode_value_v2, encode_value_v2),
            3: (decode_value_v3, encode_value_v3),
            4: (decode_value_v4, encode_value_v4),
        },
    ),
)
