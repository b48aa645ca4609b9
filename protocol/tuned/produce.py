"""Produce with one topic and one partition: decoding its request, encoding its response.

The two decoders repeat each other where a shared function would cost half of what they save.
"""

from __future__ import annotations

from struct import Struct

from protocol.api import Chunks
from protocol.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    decode_request_v9,
    decode_request_v13,
    encode_response_v10,
    encode_response_v13,
)
from protocol.wire import ZERO_UUID

# Compact lengths are one more than what they count.
_NULL, _EMPTY, _ONE = 0, 1, 2

# Transactional id, acks, timeout, number of topics, length of the topic's name.
_unpack_named = Struct(">BhiBB").unpack_from
_NAME_AT = 9
# Number of partitions, index, first byte of the length of the records.
_unpack_partition = Struct(">BiB").unpack_from
# The same with a topic id between them.
_unpack_by_id = Struct(">BhiB16sBiB").unpack_from
_BY_ID_BYTES = 30
# No tagged fields in partition, topic and request.
_unpack_tags = Struct(">3s").unpack_from
_NO_TAGS = bytes(3)
_LEAST_BYTES_AFTER_NAME = 9

# Number of partitions, then the partition: index, error, offset, append time, log start, number of
# record errors, no message, no tags; no tags in the topic; throttle time, no tags.
_pack_named = Struct(">BihqqqBxxxix").pack
_pack_by_id = Struct(">B16sBihqqqBxxxix").pack


def decode_named(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    """Decode versions 9 to 12, whose topics have names."""
    transactional_id, acks, timeout_ms, topics, size = _unpack_named(view, position)
    start = position + _NAME_AT
    end = start + size - 1
    if (
        transactional_id != _NULL
        or topics != _ONE
        or not 0 < size < 0x80
        or len(view) - end < _LEAST_BYTES_AFTER_NAME
    ):
        return decode_request_v9(view, position)
    partitions, index, size = _unpack_partition(view, end)
    if partitions != _ONE or size < 0x80:
        return decode_request_v9(view, position)
    first = end + 7
    byte = view[first - 1]
    size += (byte << 7) - 0x80
    if byte >= 0x80:
        byte = view[first]
        first += 1
        size += (byte << 14) - 0x4000
        if byte >= 0x80:
            return decode_request_v9(view, position)
    last = first + size - 1
    if _unpack_tags(view, last)[0] != _NO_TAGS:
        return decode_request_v9(view, position)
    partition = PartitionProduceData(index, view[first:last])
    topic = TopicProduceData(view[start:end].tobytes().decode(), ZERO_UUID, [partition])
    return ProduceRequest(None, acks, timeout_ms, [topic]), last + 3


def decode_by_id(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    """Decode version 13, whose topics have ids."""
    if len(view) - position <= _BY_ID_BYTES:
        return decode_request_v13(view, position)
    transactional_id, acks, timeout_ms, topics, topic_id, partitions, index, size = _unpack_by_id(
        view, position
    )
    if transactional_id != _NULL or topics != _ONE or partitions != _ONE or size < 0x80:
        return decode_request_v13(view, position)
    first = position + _BY_ID_BYTES + 1
    byte = view[first - 1]
    size += (byte << 7) - 0x80
    if byte >= 0x80:
        byte = view[first]
        first += 1
        size += (byte << 14) - 0x4000
        if byte >= 0x80:
            return decode_request_v13(view, position)
    last = first + size - 1
    if _unpack_tags(view, last)[0] != _NO_TAGS:
        return decode_request_v13(view, position)
    topic = TopicProduceData("", topic_id, [PartitionProduceData(index, view[first:last])])
    return ProduceRequest(None, acks, timeout_ms, [topic]), last + 3


def encode_named(message: ProduceResponse, out: bytearray) -> Chunks:
    """Encode versions 10 to 12, whose topics have names."""
    responses = message.responses
    if len(responses) == 1 and not message.node_endpoints:
        topic = responses[0]
        name = topic.name.encode()
        if len(topic.partition_responses) == 1 and len(name) < 0x7F:
            partition = topic.partition_responses[0]
            if (
                partition.error_message is None
                and not partition.record_errors
                and partition.current_leader is None
            ):
                out.append(_ONE)
                out.append(len(name) + 1)
                out += name
                out += _pack_named(
                    _ONE,
                    partition.index,
                    partition.error_code,
                    partition.base_offset,
                    partition.log_append_time_ms,
                    partition.log_start_offset,
                    _EMPTY,
                    message.throttle_time_ms,
                )
                return [out]
    return encode_response_v10(message, out)


def encode_by_id(message: ProduceResponse, out: bytearray) -> Chunks:
    """Encode version 13, whose topics have ids."""
    responses = message.responses
    if len(responses) == 1 and not message.node_endpoints:
        topic = responses[0]
        if len(topic.partition_responses) == 1:
            partition = topic.partition_responses[0]
            if (
                partition.error_message is None
                and not partition.record_errors
                and partition.current_leader is None
            ):
                out += _pack_by_id(
                    _ONE,
                    topic.topic_id,
                    _ONE,
                    partition.index,
                    partition.error_code,
                    partition.base_offset,
                    partition.log_append_time_ms,
                    partition.log_start_offset,
                    _EMPTY,
                    message.throttle_time_ms,
                )
                return [out]
    return encode_response_v13(message, out)


PRODUCE.request.tune(9, 12, decoder=decode_named)
PRODUCE.request.tune(13, 13, decoder=decode_by_id)
PRODUCE.response.tune(10, 12, encoder=encode_named)
PRODUCE.response.tune(13, 13, encoder=encode_by_id)
