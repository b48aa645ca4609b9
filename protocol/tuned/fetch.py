"""Fetch with one topic and one partition: decoding its request, encoding its response."""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.api import Chunks
from barnabas.protocol.messages.fetch import (
    FETCH,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    decode_request_v15,
    decode_request_v17,
    decode_request_v18,
    encode_response_v12,
    encode_response_v13,
    encode_response_v16,
)
from barnabas.protocol.wire import ZERO_UUID, put_varint

# Compact lengths are one more than what they count.
_NULL: Final = 0
_EMPTY: Final = 1
_ONE: Final = 2
_FAR_AWAY: Final = 0x7FFF_FFFF_FFFF_FFFF

# Wait, least and most bytes, isolation level, session id and epoch, number of topics, topic id,
# number of partitions. The partition: index, leader epoch, offset, last epoch, log start, most
# bytes, tags. Then tags of the topic, number of forgotten topics, length of the rack, tags.
_unpack_request: Final = Struct(">iiibiiB16sBiiqiqiBBBBB").unpack_from
_REQUEST_BYTES: Final = 76

# Throttle time, error, session id, number of topics, length of the topic's name.
_pack_head: Final = Struct(">ihiBB").pack
# Number of partitions; index, error, high watermark, last stable and log start offset, number of
# aborted transactions or null, preferred replica.
_pack_partition: Final = Struct(">BihqqqBi").pack
# All of it with a topic id in place of the name.
_pack_by_id: Final = Struct(">ihiB16sBihqqqBi").pack
# Null instead of records, and no tags in partition, topic and response.
_NO_RECORDS: Final = bytes(4)
_NO_TAGS: Final = bytes(3)


def _decode_request(view: memoryview, position: int) -> tuple[FetchRequest, int] | None:
    """Decode a request of version 15 or later with one partition, no rack and no tagged field."""
    if len(view) - position < _REQUEST_BYTES:
        return None
    (
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        topics,
        topic_id,
        partitions,
        index,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
        partition_tags,
        topic_tags,
        forgotten_topics,
        rack_id,
        tags,
    ) = _unpack_request(view, position)
    if (
        topics != _ONE
        or partitions != _ONE
        or partition_tags
        or topic_tags
        or forgotten_topics != _EMPTY
        or rack_id != _EMPTY
        or tags
    ):
        return None
    partition = FetchPartition(
        index,
        current_leader_epoch,
        fetch_offset,
        last_fetched_epoch,
        log_start_offset,
        partition_max_bytes,
        ZERO_UUID,
        _FAR_AWAY,
    )
    request = FetchRequest(
        None,
        -1,
        None,
        max_wait_ms,
        min_bytes,
        max_bytes,
        isolation_level,
        session_id,
        session_epoch,
        [FetchTopic("", topic_id, [partition])],
        [],
        "",
    )
    return request, position + _REQUEST_BYTES


def decode_v15(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    """Decode versions 15 and 16."""
    return _decode_request(view, position) or decode_request_v15(view, position)


def decode_v17(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    """Decode version 17."""
    return _decode_request(view, position) or decode_request_v17(view, position)


def decode_v18(view: memoryview, position: int) -> tuple[FetchRequest, int]:
    """Decode version 18."""
    return _decode_request(view, position) or decode_request_v18(view, position)


def encode_v12(message: FetchResponse, out: bytearray) -> Chunks:
    """Encode version 12, whose topics have names."""
    responses = message.responses
    if len(responses) == 1:
        topic = responses[0]
        name = topic.topic.encode()
        if len(topic.partitions) == 1 and len(name) < 0x7F:
            partition = topic.partitions[0]
            if _is_plain(partition):
                out += _pack_head(
                    message.throttle_time_ms,
                    message.error_code,
                    message.session_id,
                    _ONE,
                    len(name) + 1,
                )
                out += name
                out += _pack_partition(
                    _ONE,
                    partition.partition_index,
                    partition.error_code,
                    partition.high_watermark,
                    partition.last_stable_offset,
                    partition.log_start_offset,
                    _NULL if partition.aborted_transactions is None else _EMPTY,
                    partition.preferred_read_replica,
                )
                return _with_records(partition, out)
    return encode_response_v12(message, out)


def encode_v13(message: FetchResponse, out: bytearray) -> Chunks:
    """Encode versions 13 to 15."""
    return _encode_by_id(message, out) or encode_response_v13(message, out)


def encode_v16(message: FetchResponse, out: bytearray) -> Chunks:
    """Encode versions 16 to 18."""
    if message.node_endpoints:
        return encode_response_v16(message, out)
    return _encode_by_id(message, out) or encode_response_v16(message, out)


def _encode_by_id(message: FetchResponse, out: bytearray) -> Chunks | None:
    """Encode one partition of a topic with an ID; return None, without output, for more."""
    responses = message.responses
    if len(responses) != 1:
        return None
    topic = responses[0]
    if len(topic.partitions) != 1:
        return None
    partition = topic.partitions[0]
    if not _is_plain(partition):
        return None
    out += _pack_by_id(
        message.throttle_time_ms,
        message.error_code,
        message.session_id,
        _ONE,
        topic.topic_id,
        _ONE,
        partition.partition_index,
        partition.error_code,
        partition.high_watermark,
        partition.last_stable_offset,
        partition.log_start_offset,
        _NULL if partition.aborted_transactions is None else _EMPTY,
        partition.preferred_read_replica,
    )
    return _with_records(partition, out)


def _is_plain(partition: PartitionData) -> bool:
    """Whether the partition has neither aborted transactions nor tagged fields."""
    return (
        not partition.aborted_transactions
        and partition.diverging_epoch is None
        and partition.current_leader is None
        and partition.snapshot_id is None
    )


def _with_records(partition: PartitionData, out: bytearray) -> Chunks:
    """Append the length of the records; the records follow by reference, then no tags thrice."""
    records = partition.records
    if records is None:
        out += _NO_RECORDS
        return [out]
    size = len(records) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    return [out, records, _NO_TAGS]


FETCH.request.tune(15, 16, decoder=decode_v15)
FETCH.request.tune(17, 17, decoder=decode_v17)
FETCH.request.tune(18, 18, decoder=decode_v18)
FETCH.response.tune(12, 12, encoder=encode_v12)
FETCH.response.tune(13, 15, encoder=encode_v13)
FETCH.response.tune(16, 18, encoder=encode_v16)
