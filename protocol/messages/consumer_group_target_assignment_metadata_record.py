"""ConsumerGroupTargetAssignmentMetadata: generated from consumer_group_target_assignment_metadata_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import Chunks, Structure, put_tag, read_tag, tag_count, wrong_tag_size

pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_q = Struct(">q").pack
unpack_h = Struct(">h").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_q = Struct(">q").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMetadataKey(Structure):
    """ConsumerGroupTargetAssignmentMetadata, versions 0-0."""

    group_id: str

    def __init__(
        self,
        group_id: str = "",
    ) -> None:
        self.group_id = group_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupTargetAssignmentMetadataValue(Structure):
    """ConsumerGroupTargetAssignmentMetadata, versions 0-0."""

    assignment_epoch: int
    assignment_timestamp: int

    def __init__(
        self,
        assignment_epoch: int = 0,
        assignment_timestamp: int = 0,
    ) -> None:
        self.assignment_epoch = assignment_epoch
        self.assignment_timestamp = assignment_timestamp


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupTargetAssignmentMetadataKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupTargetAssignmentMetadataKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupTargetAssignmentMetadataKey(group_id), position


def encode_key_v0(message: ConsumerGroupTargetAssignmentMetadataKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupTargetAssignmentMetadataValue, int]:
    (
        assignment_epoch,
        consumer_group_target_assignment_metadata_value_tags,
    ) = unpack_iB(view, position)
    position += 5
    assignment_timestamp: int = 0
    if consumer_group_target_assignment_metadata_value_tags:
        consumer_group_target_assignment_metadata_value_tags, position = tag_count(view, position, consumer_group_target_assignment_metadata_value_tags)
        for _ in range(consumer_group_target_assignment_metadata_value_tags):
            tag, position, consumer_group_target_assignment_metadata_value_tag_end = read_tag(view, position)
            if tag == 0:
                (assignment_timestamp,) = unpack_q(view, position)
                position += 8
                if position != consumer_group_target_assignment_metadata_value_tag_end:
                    raise wrong_tag_size(0)
            position = consumer_group_target_assignment_metadata_value_tag_end
    message = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch, assignment_timestamp)
    return message, position


def encode_value_v0(message: ConsumerGroupTargetAssignmentMetadataValue, out: bytearray) -> Chunks:
    out += pack_i(message.assignment_epoch)
    if not message.assignment_timestamp:
        out.append(0)
    else:
        consumer_group_target_assignment_metadata_value_tags = 0
        consumer_group_target_assignment_metadata_value_tagged = bytearray()
        if message.assignment_timestamp:
            consumer_group_target_assignment_metadata_value_tags += 1
            assignment_timestamp_body = bytearray()
            assignment_timestamp = message.assignment_timestamp
            assignment_timestamp_body += pack_q(assignment_timestamp)
            put_tag(consumer_group_target_assignment_metadata_value_tagged, 0, assignment_timestamp_body)
        out.append(consumer_group_target_assignment_metadata_value_tags)
        out += consumer_group_target_assignment_metadata_value_tagged
    return [out]


CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_RECORD = RecordType(
    6,
    "ConsumerGroupTargetAssignmentMetadata",
    Message(
        "ConsumerGroupTargetAssignmentMetadataKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupTargetAssignmentMetadataValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
