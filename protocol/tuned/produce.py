"""Produce for one topic: decoding its request, encoding its response."""

from __future__ import annotations

from struct import Struct
from typing import Final

from barnabas.protocol.api import Chunks
from barnabas.protocol.messages.produce import (
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
from barnabas.protocol.wire import FEW_ELEMENTS, ZERO_UUID, long_count, put_varint

# Compact lengths are one more than what they count.
_NULL: Final = 0
_EMPTY: Final = 1
_ONE: Final = 2

# Acks, timeout, number of topics, then the length of the topic's name, or its id.
_unpack_named: Final = Struct(">hiBB").unpack_from
_NAMED_BYTES: Final = 8
_unpack_by_id: Final = Struct(">hiB16s").unpack_from
_BY_ID_BYTES: Final = 23
# Index, first two bytes of the length of the records.
_unpack_partition: Final = Struct(">iBB").unpack_from
_LEAST_PARTITION_BYTES: Final = 6
# No tagged fields in topic and request.
_unpack_tags: Final = Struct(">2s").unpack_from
_NO_TAGS: Final = bytes(2)

# Index, error, offset, append time, log start, number of record errors, no message, no tags.
_pack_partition: Final = Struct(">ihqqqBxx").pack
# No tags in the topic; throttle time, no tags.
_pack_end: Final = Struct(">xix").pack


def decode_named(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    """Decode versions 9 to 12, whose topics have names."""
    at = _after_transactional_id(view, position)
    if at < 0:
        return decode_request_v9(view, position)
    acks, timeout_ms, topics, size = _unpack_named(view, at)
    start = at + _NAMED_BYTES
    end = start + size - 1
    if topics != _ONE or not 0 < size < 0x80 or end >= len(view):
        return decode_request_v9(view, position)
    partitions: list[PartitionProduceData] = []
    at_end = _decode_partitions(view, end, partitions)
    if at_end < 0:
        return decode_request_v9(view, position)
    topic = TopicProduceData(view[start:end].tobytes().decode(), ZERO_UUID, partitions)
    return ProduceRequest(_transactional_id(view, position), acks, timeout_ms, [topic]), at_end


def decode_by_id(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    """Decode version 13, whose topics have ids."""
    at = _after_transactional_id(view, position)
    if at < 0 or len(view) - at <= _BY_ID_BYTES:
        return decode_request_v13(view, position)
    acks, timeout_ms, topics, topic_id = _unpack_by_id(view, at)
    if topics != _ONE:
        return decode_request_v13(view, position)
    partitions: list[PartitionProduceData] = []
    at_end = _decode_partitions(view, at + _BY_ID_BYTES, partitions)
    if at_end < 0:
        return decode_request_v13(view, position)
    topic = TopicProduceData("", topic_id, partitions)
    return ProduceRequest(_transactional_id(view, position), acks, timeout_ms, [topic]), at_end


def _after_transactional_id(view: memoryview, position: int) -> int:
    """Return the position after the transactional id; -1 for an unusually long one."""
    size = view[position]
    if size == _NULL:
        return position + 1
    return position + size if size < 0x80 else -1


def _transactional_id(view: memoryview, position: int) -> str | None:
    """Return the ID at ``position``, or None for null; it must not be unusually long."""
    size = view[position]
    return None if size == _NULL else view[position + 1 : position + size].tobytes().decode()


def _decode_partitions(
    view: memoryview, position: int, partitions: list[PartitionProduceData]
) -> int:
    """Decode the part after the only topic's name or ID; return the end of the request.

    -1 for something unusual: partitions without records, large ones, fields with tags.
    """
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, _LEAST_PARTITION_BYTES)
    if count - 1 > FEW_ELEMENTS:
        return -1
    for _ in range(count - 1):
        index, size, byte = _unpack_partition(view, position)
        position += 5
        if size >= 0x80:
            position += 1
            size += (byte << 7) - 0x80
            if byte >= 0x80:
                byte = view[position]
                position += 1
                size += (byte << 14) - 0x4000
                if byte >= 0x80:
                    return -1
        elif size == _NULL:
            return -1
        end = position + size - 1
        if view[end]:
            return -1
        partitions.append(PartitionProduceData(index, view[position:end]))
        position = end + 1
    return -1 if _unpack_tags(view, position)[0] != _NO_TAGS else position + 2


def encode_named(message: ProduceResponse, out: bytearray) -> Chunks:
    """Encode versions 10 to 12, whose topics have names."""
    partitions = _encode_partitions(message)
    if partitions is None:
        return encode_response_v10(message, out)
    name = message.responses[0].name.encode()
    out.append(_ONE)
    put_varint(out, len(name) + 1)
    out += name
    out += partitions
    return [out]


def encode_by_id(message: ProduceResponse, out: bytearray) -> Chunks:
    """Encode version 13, whose topics have ids."""
    partitions = _encode_partitions(message)
    if partitions is None:
        return encode_response_v13(message, out)
    out.append(_ONE)
    out += message.responses[0].topic_id
    out += partitions
    return [out]


def _encode_partitions(message: ProduceResponse) -> bytearray | None:
    """Encode the part after the only topic's name or ID, or return None for an unusual response."""
    responses = message.responses
    if len(responses) != 1 or message.node_endpoints:
        return None
    partitions = responses[0].partition_responses
    encoded = bytearray()
    put_varint(encoded, len(partitions) + 1)
    for partition in partitions:
        if (
            partition.error_message is not None
            or partition.record_errors
            or partition.current_leader is not None
        ):
            return None
        encoded += _pack_partition(
            partition.index,
            partition.error_code,
            partition.base_offset,
            partition.log_append_time_ms,
            partition.log_start_offset,
            _EMPTY,
        )
    encoded += _pack_end(message.throttle_time_ms)
    return encoded


PRODUCE.request.tune(9, 12, decoder=decode_named)
PRODUCE.request.tune(13, 13, decoder=decode_by_id)
PRODUCE.response.tune(10, 12, encoder=encode_named)
PRODUCE.response.tune(13, 13, encoder=encode_by_id)
