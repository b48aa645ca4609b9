"""TransactionLog: generated from transaction_log_record.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import NEVER, Message, RecordType
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    check_count,
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
pack_q = Struct(">q").pack
pack_qhib = Struct(">qhib").pack
pack_qhibi = Struct(">qhibi").pack
pack_qq = Struct(">qq").pack
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_q = Struct(">q").unpack_from
unpack_qhibB = Struct(">qhibB").unpack_from
unpack_qhibi = Struct(">qhibi").unpack_from
unpack_qq = Struct(">qq").unpack_from
unpack_qqB = Struct(">qqB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class TransactionLogKey(Structure):
    """TransactionLog, versions 0-1."""

    transactional_id: str

    def __init__(self, transactional_id: str = "") -> None:
        self.transactional_id = transactional_id


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionsSchema(Structure):
    """Part of TransactionLog."""

    topic: str
    partition_ids: list[int]

    def __init__(self, topic: str = "", partition_ids: list[int] = ABSENT) -> None:
        self.topic = topic
        self.partition_ids = [] if partition_ids is ABSENT else partition_ids


@dataclass(slots=True, init=False, repr=False, eq=False)
class TransactionLogValue(Structure):
    """TransactionLog, versions 0-1."""

    producer_id: int
    previous_producer_id: int
    next_producer_id: int
    producer_epoch: int
    next_producer_epoch: int
    transaction_timeout_ms: int
    transaction_status: int
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: int
    transaction_start_timestamp_ms: int
    client_transaction_version: int
    last_producer_epoch: int

    def __init__(
        self, producer_id: int = 0, previous_producer_id: int = -1, next_producer_id: int = -1,
        producer_epoch: int = 0, next_producer_epoch: int = -1, transaction_timeout_ms: int = 0,
        transaction_status: int = 0, transaction_partitions: list[PartitionsSchema] | None = ABSENT,
        transaction_last_update_timestamp_ms: int = 0, transaction_start_timestamp_ms: int = 0,
        client_transaction_version: int = 0, last_producer_epoch: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.previous_producer_id = previous_producer_id
        self.next_producer_id = next_producer_id
        self.producer_epoch = producer_epoch
        self.next_producer_epoch = next_producer_epoch
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_status = transaction_status
        self.transaction_partitions = [] if transaction_partitions is ABSENT else transaction_partitions
        self.transaction_last_update_timestamp_ms = transaction_last_update_timestamp_ms
        self.transaction_start_timestamp_ms = transaction_start_timestamp_ms
        self.client_transaction_version = client_transaction_version
        self.last_producer_epoch = last_producer_epoch


def decode_key_v0(view: memoryview, position: int) -> tuple[TransactionLogKey, int]:
    (size,) = unpack_h(view, position)
    position += 2
    if size < 0:
        raise Malformed("TransactionLogKey.transactional_id: negative length")
    end = position + size
    transactional_id = view[position:end].tobytes().decode()
    position = end
    return TransactionLogKey(transactional_id), position


def encode_key_v0(message: TransactionLogKey, out: bytearray) -> Chunks:
    transactional_id = message.transactional_id
    data = transactional_id.encode()
    out += pack_h(len(data))
    out += data
    return [out]


def decode_value_v0(view: memoryview, position: int) -> tuple[TransactionLogValue, int]:
    (
        producer_id,
        producer_epoch,
        transaction_timeout_ms,
        transaction_status,
        count,
    ) = unpack_qhibi(view, position)
    position += 19
    transaction_partitions: list[PartitionsSchema] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 6)
        transaction_partitions = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("PartitionsSchema.topic: negative length")
            end = position + size
            topic = view[position:end].tobytes().decode()
            position = end
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 4)
            partition_ids = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            transaction_partitions.append(PartitionsSchema(topic, partition_ids))
    transaction_last_update_timestamp_ms, transaction_start_timestamp_ms = unpack_qq(view, position)
    position += 16
    message = TransactionLogValue(
        producer_id,
        -1,
        -1,
        producer_epoch,
        -1,
        transaction_timeout_ms,
        transaction_status,
        transaction_partitions,
        transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms,
        0,
        -1,
    )
    return message, position


def encode_value_v0(message: TransactionLogValue, out: bytearray) -> Chunks:
    transaction_partitions = message.transaction_partitions
    out += pack_qhibi(
        message.producer_id,
        message.producer_epoch,
        message.transaction_timeout_ms,
        message.transaction_status,
        -1 if transaction_partitions is None else len(transaction_partitions),
    )
    for partitions_schema in transaction_partitions or ():
        topic = partitions_schema.topic
        data = topic.encode()
        out += pack_h(len(data))
        out += data
        partition_ids = partitions_schema.partition_ids
        out += pack_i(len(partition_ids))
        out += pack(f">{len(partition_ids)}i", *partition_ids)
    out += pack_qq(
        message.transaction_last_update_timestamp_ms,
        message.transaction_start_timestamp_ms,
    )
    return [out]


def decode_value_v1(view: memoryview, position: int) -> tuple[TransactionLogValue, int]:
    (
        producer_id,
        producer_epoch,
        transaction_timeout_ms,
        transaction_status,
        count,
    ) = unpack_qhibB(view, position)
    position += 16
    transaction_partitions: list[PartitionsSchema] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        transaction_partitions = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            topic = view[position:end].tobytes().decode()
            position = end
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            count -= 1
            partition_ids = list(unpack_from(f">{count}i", view, position))
            position += count * 4
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            transaction_partitions.append(PartitionsSchema(topic, partition_ids))
    (
        transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms,
        transaction_log_value_tags,
    ) = unpack_qqB(view, position)
    position += 17
    previous_producer_id: int = -1
    next_producer_id: int = -1
    client_transaction_version: int = 0
    next_producer_epoch: int = -1
    last_producer_epoch: int = -1
    if transaction_log_value_tags:
        transaction_log_value_tags, position = tag_count(view, position, transaction_log_value_tags)
        for _ in range(transaction_log_value_tags):
            tag, position, transaction_log_value_tag_end = read_tag(view, position)
            if tag == 0:
                (previous_producer_id,) = unpack_q(view, position)
                position += 8
                if position != transaction_log_value_tag_end:
                    raise wrong_tag_size(0)
            elif tag == 1:
                (next_producer_id,) = unpack_q(view, position)
                position += 8
                if position != transaction_log_value_tag_end:
                    raise wrong_tag_size(1)
            elif tag == 2:
                (client_transaction_version,) = unpack_h(view, position)
                position += 2
                if position != transaction_log_value_tag_end:
                    raise wrong_tag_size(2)
            elif tag == 3:
                (next_producer_epoch,) = unpack_h(view, position)
                position += 2
                if position != transaction_log_value_tag_end:
                    raise wrong_tag_size(3)
            elif tag == 1000:
                (last_producer_epoch,) = unpack_h(view, position)
                position += 2
                if position != transaction_log_value_tag_end:
                    raise wrong_tag_size(1000)
            position = transaction_log_value_tag_end
    message = TransactionLogValue(
        producer_id,
        previous_producer_id,
        next_producer_id,
        producer_epoch,
        next_producer_epoch,
        transaction_timeout_ms,
        transaction_status,
        transaction_partitions,
        transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms,
        client_transaction_version,
        last_producer_epoch,
    )
    return message, position


def encode_value_v1(message: TransactionLogValue, out: bytearray) -> Chunks:
    transaction_partitions = message.transaction_partitions
    out += pack_qhib(
        message.producer_id,
        message.producer_epoch,
        message.transaction_timeout_ms,
        message.transaction_status,
    )
    if transaction_partitions is None:
        out.append(0)
    else:
        size = len(transaction_partitions) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partitions_schema in transaction_partitions:
            topic = partitions_schema.topic
            data = topic.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            partition_ids = partitions_schema.partition_ids
            size = len(partition_ids) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += pack(f">{len(partition_ids)}i", *partition_ids)
            out.append(0)
    out += pack_qq(
        message.transaction_last_update_timestamp_ms,
        message.transaction_start_timestamp_ms,
    )
    if (
        message.previous_producer_id == -1
        and message.next_producer_id == -1
        and not message.client_transaction_version
        and message.next_producer_epoch == -1
        and message.last_producer_epoch == -1
    ):
        out.append(0)
    else:
        transaction_log_value_tags = 0
        transaction_log_value_tagged = bytearray()
        if message.previous_producer_id != -1:
            transaction_log_value_tags += 1
            previous_producer_id_body = bytearray()
            previous_producer_id = message.previous_producer_id
            previous_producer_id_body += pack_q(previous_producer_id)
            put_tag(transaction_log_value_tagged, 0, previous_producer_id_body)
        if message.next_producer_id != -1:
            transaction_log_value_tags += 1
            next_producer_id_body = bytearray()
            next_producer_id = message.next_producer_id
            next_producer_id_body += pack_q(next_producer_id)
            put_tag(transaction_log_value_tagged, 1, next_producer_id_body)
        if message.client_transaction_version:
            transaction_log_value_tags += 1
            client_transaction_version_body = bytearray()
            client_transaction_version = message.client_transaction_version
            client_transaction_version_body += pack_h(client_transaction_version)
            put_tag(transaction_log_value_tagged, 2, client_transaction_version_body)
        if message.next_producer_epoch != -1:
            transaction_log_value_tags += 1
            next_producer_epoch_body = bytearray()
            next_producer_epoch = message.next_producer_epoch
            next_producer_epoch_body += pack_h(next_producer_epoch)
            put_tag(transaction_log_value_tagged, 3, next_producer_epoch_body)
        if message.last_producer_epoch != -1:
            transaction_log_value_tags += 1
            last_producer_epoch_body = bytearray()
            last_producer_epoch = message.last_producer_epoch
            last_producer_epoch_body += pack_h(last_producer_epoch)
            put_tag(transaction_log_value_tagged, 1000, last_producer_epoch_body)
        out.append(transaction_log_value_tags)
        out += transaction_log_value_tagged
    return [out]


TRANSACTION_LOG_RECORD = RecordType(
    0,
    "TransactionLog",
    Message(
        "TransactionLogKey",
        (0, 0),
        NEVER,
        {
            0: (decode_key_v0, encode_key_v0),
        },
    ),
    Message(
        "TransactionLogValue",
        (0, 1),
        1,
        {
            0: (decode_value_v0, encode_value_v0),
            1: (decode_value_v1, encode_value_v1),
        },
    ),
)

# Puts hand-tuned functions in the place of some of the above.
import barnabas.protocol.tuned.transaction_log_record  # noqa: E402, F401
