"""The records of ``__transaction_state``: encoding them. Three make one transaction."""

from __future__ import annotations

from struct import Struct, pack
from typing import Final

from barnabas.protocol.api import Chunks
from barnabas.protocol.messages.transaction_log_record import (
    TRANSACTION_LOG_RECORD,
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
    encode_value_v1,
)
from barnabas.protocol.wire import put_varint

_pack_size: Final = Struct(">h").pack
# Producer id and epoch, timeout, state.
_pack_head: Final = Struct(">qhib").pack
# Last update, start, number of tagged fields.
_pack_times: Final = Struct(">qqB").pack
# Tags, each behind its number and its size.
_pack_previous_id: Final = Struct(">BBq").pack
_pack_generation: Final = Struct(">BBh").pack
_pack_last_epoch: Final = Struct(">HBh").pack
_LAST_EPOCH_TAG: Final = 0xE807
"""1000 as a varint."""
_NONE: Final = -1


def encode_key(message: TransactionLogKey, out: bytearray) -> Chunks:
    """Encode the only version of the key."""
    data = message.transactional_id.encode()
    out += _pack_size(len(data))
    out += data
    return [out]


def encode_value(message: TransactionLogValue, out: bytearray) -> Chunks:
    """Encode version 1."""
    if message.next_producer_id != _NONE or message.next_producer_epoch != _NONE:
        return encode_value_v1(message, out)
    out += _pack_head(
        message.producer_id,
        message.producer_epoch,
        message.transaction_timeout_ms,
        message.transaction_status,
    )
    _add_partitions(message.transaction_partitions, out)
    tags = b""
    count = 0
    if message.previous_producer_id != _NONE:
        tags = _pack_previous_id(0, 8, message.previous_producer_id)
        count = 1
    if message.client_transaction_version:
        tags += _pack_generation(2, 2, message.client_transaction_version)
        count += 1
    if message.last_producer_epoch != _NONE:
        tags += _pack_last_epoch(_LAST_EPOCH_TAG, 2, message.last_producer_epoch)
        count += 1
    out += _pack_times(
        message.transaction_last_update_timestamp_ms,
        message.transaction_start_timestamp_ms,
        count,
    )
    out += tags
    return [out]


def _add_partitions(topics: list[PartitionsSchema] | None, out: bytearray) -> None:
    if topics is None:
        out.append(0)
        return
    put_varint(out, len(topics) + 1)
    for topic in topics:
        name = topic.topic.encode()
        put_varint(out, len(name) + 1)
        out += name
        ids = topic.partition_ids
        put_varint(out, len(ids) + 1)
        out += pack(f">{len(ids)}ix", *ids)


TRANSACTION_LOG_RECORD.key.tune(0, 0, encoder=encode_key)
TRANSACTION_LOG_RECORD.value.tune(1, 1, encoder=encode_value)
