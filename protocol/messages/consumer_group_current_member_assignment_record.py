"""ConsumerGroupCurrentMemberAssignment: generated from consumer_group_current_member_assignment_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    ZERO_UUID,
    Chunks,
    Structure,
    long_count,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    wrong_tag_size,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_iib = Struct(">iib").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_iibB = Struct(">iibB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupCurrentMemberAssignmentKey(Structure):
    """ConsumerGroupCurrentMemberAssignment, versions 0-0."""

    group_id: str
    member_id: str

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicPartitions(Structure):
    """Part of ConsumerGroupCurrentMemberAssignment."""

    topic_id: bytes
    partitions: list[int]
    assignment_epochs: list[int] | None

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] = ABSENT,
        assignment_epochs: list[int] | None = ABSENT,
    ) -> None:
        self.topic_id = topic_id
        self.partitions = [] if partitions is ABSENT else partitions
        self.assignment_epochs = [] if assignment_epochs is ABSENT else assignment_epochs


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConsumerGroupCurrentMemberAssignmentValue(Structure):
    """ConsumerGroupCurrentMemberAssignment, versions 0-0."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]

    def __init__(
        self,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: list[TopicPartitions] = ABSENT,
        partitions_pending_revocation: list[TopicPartitions] = ABSENT,
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = [] if assigned_partitions is ABSENT else assigned_partitions
        self.partitions_pending_revocation = [] if partitions_pending_revocation is ABSENT else partitions_pending_revocation


def decode_key_v0(view: memoryview, position: int) -> tuple[ConsumerGroupCurrentMemberAssignmentKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupCurrentMemberAssignmentKey.group_id: negative length")
    end = position + size
    group_id = view[position:end].tobytes().decode()
    position = end
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("ConsumerGroupCurrentMemberAssignmentKey.member_id: negative length")
    end = position + size
    member_id = view[position:end].tobytes().decode()
    position = end
    return ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), position


def encode_key_v0(message: ConsumerGroupCurrentMemberAssignmentKey, out: bytearray) -> Chunks:
    group_id = message.group_id
    data = group_id.encode()
    out += pack_h(len(data))
    out += data
    member_id = message.member_id
    data = member_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[ConsumerGroupCurrentMemberAssignmentValue, int]:
    member_epoch, previous_member_epoch, state, count = unpack_iibB(view, position)
    position += 10
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    assigned_partitions: list[TopicPartitions] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        assigned_partitions_tags = view[position]
        position += 1
        assignment_epochs: list[int] | None = []
        if assigned_partitions_tags:
            assigned_partitions_tags, position = tag_count(view, position, assigned_partitions_tags)
            for _ in range(assigned_partitions_tags):
                tag, position, assigned_partitions_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    assignment_epochs = tagged_assignment_epochs
                    if position != assigned_partitions_tag_end:
                        raise wrong_tag_size(0)
                position = assigned_partitions_tag_end
        assigned_partitions.append(TopicPartitions(topic_id, partitions, assignment_epochs))
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    partitions_pending_revocation: list[TopicPartitions] = []
    for _ in range(count - 1):
        partitions_pending_revocation_topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 4)
        count -= 1
        partitions_pending_revocation_partitions = list(unpack_from(f">{count}i", view, position))
        position += count * 4
        partitions_pending_revocation_tags = view[position]
        position += 1
        partitions_pending_revocation_assignment_epochs: list[int] | None = []
        if partitions_pending_revocation_tags:
            partitions_pending_revocation_tags, position = tag_count(view, position, partitions_pending_revocation_tags)
            for _ in range(partitions_pending_revocation_tags):
                tag, position, partitions_pending_revocation_tag_end = read_tag(view, position)
                if tag == 0:
                    count = view[position]
                    position += 1
                    tagged_partitions_pending_revocation_assignment_epochs: list[int] | None = None
                    if count:
                        if not 0 < count < 0x80:
                            count, position = long_count(view, position, count, 4)
                        count -= 1
                        tagged_partitions_pending_revocation_assignment_epochs = list(unpack_from(f">{count}i", view, position))
                        position += count * 4
                    partitions_pending_revocation_assignment_epochs = tagged_partitions_pending_revocation_assignment_epochs
                    if position != partitions_pending_revocation_tag_end:
                        raise wrong_tag_size(0)
                position = partitions_pending_revocation_tag_end
        partitions_pending_revocation.append(
            TopicPartitions(
                partitions_pending_revocation_topic_id,
                partitions_pending_revocation_partitions,
                partitions_pending_revocation_assignment_epochs,
            )
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch,
        previous_member_epoch,
        state,
        assigned_partitions,
        partitions_pending_revocation,
    )
    return message, position


def encode_value_v0(message: ConsumerGroupCurrentMemberAssignmentValue, out: bytearray) -> Chunks:
    assigned_partitions = message.assigned_partitions
    out += pack_iib(message.member_epoch, message.previous_member_epoch, message.state)
    size = len(assigned_partitions) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_partitions in assigned_partitions:
        partitions = topic_partitions.partitions
        out += pack_16s(topic_partitions.topic_id)
        size = len(partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions)}i", *partitions)
        if topic_partitions.assignment_epochs == []:
            out.append(0)
        else:
            topic_partitions_tags = 0
            topic_partitions_tagged = bytearray()
            if topic_partitions.assignment_epochs != []:
                topic_partitions_tags += 1
                assignment_epochs_body = bytearray()
                assignment_epochs = topic_partitions.assignment_epochs
                if assignment_epochs is None:
                    assignment_epochs_body.append(0)
                else:
                    size = len(assignment_epochs) + 1
                    if size < 0x80:
                        assignment_epochs_body.append(size)
                    else:
                        put_varint(assignment_epochs_body, size)
                    assignment_epochs_body += pack(f">{len(assignment_epochs)}i", *assignment_epochs)
                put_tag(topic_partitions_tagged, 0, assignment_epochs_body)
            out.append(topic_partitions_tags)
            out += topic_partitions_tagged
    partitions_pending_revocation = message.partitions_pending_revocation
    size = len(partitions_pending_revocation) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for partitions_pending_revocation_topic_partitions in partitions_pending_revocation:
        partitions_pending_revocation_topic_partitions_partitions = partitions_pending_revocation_topic_partitions.partitions
        out += pack_16s(partitions_pending_revocation_topic_partitions.topic_id)
        size = len(partitions_pending_revocation_topic_partitions_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += pack(f">{len(partitions_pending_revocation_topic_partitions_partitions)}i", *partitions_pending_revocation_topic_partitions_partitions)
        if partitions_pending_revocation_topic_partitions.assignment_epochs == []:
            out.append(0)
        else:
            known_topic_partitions_tags = 0
            known_topic_partitions_tagged = bytearray()
            if partitions_pending_revocation_topic_partitions.assignment_epochs != []:
                known_topic_partitions_tags += 1
                tagged_assignment_epochs_body = bytearray()
                partitions_pending_revocation_topic_partitions_assignment_epochs = partitions_pending_revocation_topic_partitions.assignment_epochs
                if partitions_pending_revocation_topic_partitions_assignment_epochs is None:
                    tagged_assignment_epochs_body.append(0)
                else:
                    size = len(partitions_pending_revocation_topic_partitions_assignment_epochs) + 1
                    if size < 0x80:
                        tagged_assignment_epochs_body.append(size)
                    else:
                        put_varint(tagged_assignment_epochs_body, size)
                    tagged_assignment_epochs_body += pack(f">{len(partitions_pending_revocation_topic_partitions_assignment_epochs)}i", *partitions_pending_revocation_topic_partitions_assignment_epochs)
                put_tag(known_topic_partitions_tagged, 0, tagged_assignment_epochs_body)
            out.append(known_topic_partitions_tags)
            out += known_topic_partitions_tagged
    out.append(0)
    return [out]


CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_RECORD = RecordType(
    8,
    "ConsumerGroupCurrentMemberAssignment",
    Message(
        "ConsumerGroupCurrentMemberAssignmentKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "ConsumerGroupCurrentMemberAssignmentValue",
        (0, 0),
        0,
        {
            0: (decode_value_v0, encode_value_v0),
        },
    ),
)
