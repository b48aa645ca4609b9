"""Produce: generated from produce.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    ZERO_UUID,
    Chunks,
    Structure,
    add_tags,
    check_count,
    check_elements,
    long_count,
    long_size,
    put_tag,
    put_varint,
    read_tag,
    skip_tags,
    tag_count,
    varint_end,
    varint_tail,
    wrong_tag_size,
)

pack_16s = Struct(">16s").pack
pack_h = Struct(">h").pack
pack_hi = Struct(">hi").pack
pack_hii = Struct(">hii").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihqq = Struct(">ihqq").pack
pack_ihqqq = Struct(">ihqqq").pack
pack_ihqqqi = Struct(">ihqqqi").pack
pack_ii = Struct(">ii").pack
pack_iix = Struct(">iix").pack
pack_ix = Struct(">ix").pack
unpack_16sB = Struct(">16sB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hiB = Struct(">hiB").unpack_from
unpack_hii = Struct(">hii").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ih = Struct(">ih").unpack_from
unpack_ihqq = Struct(">ihqq").unpack_from
unpack_ihqqq = Struct(">ihqqq").unpack_from
unpack_ihqqqB = Struct(">ihqqqB").unpack_from
unpack_ihqqqi = Struct(">ihqqqi").unpack_from
unpack_ii = Struct(">ii").unpack_from
unpack_iiB = Struct(">iiB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionProduceData(Structure):
    """Part of Produce."""

    index: int
    records: memoryview | None

    def __init__(self, index: int = 0, records: memoryview | None = None) -> None:
        self.index = index
        self.records = records


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicProduceData(Structure):
    """Part of Produce."""

    name: str
    topic_id: bytes
    partition_data: list[PartitionProduceData]

    def __init__(
        self, name: str = "", topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = [] if partition_data is ABSENT else partition_data


@dataclass(slots=True, init=False, repr=False, eq=False)
class ProduceRequest(Structure):
    """Produce, versions 3-13."""

    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[TopicProduceData]

    def __init__(
        self, transactional_id: str | None = None, acks: int = 0, timeout_ms: int = 0,
        topic_data: list[TopicProduceData] = ABSENT,
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = [] if topic_data is ABSENT else topic_data


@dataclass(slots=True, init=False, repr=False, eq=False)
class BatchIndexAndErrorMessage(Structure):
    """Part of Produce."""

    batch_index: int
    batch_index_error_message: str | None

    def __init__(self, batch_index: int = 0, batch_index_error_message: str | None = None) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message


@dataclass(slots=True, init=False, repr=False, eq=False)
class LeaderIdAndEpoch(Structure):
    """Part of Produce."""

    leader_id: int
    leader_epoch: int

    def __init__(self, leader_id: int = -1, leader_epoch: int = -1) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch


@dataclass(slots=True, init=False, repr=False, eq=False)
class PartitionProduceResponse(Structure):
    """Part of Produce."""

    index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int
    log_start_offset: int
    record_errors: list[BatchIndexAndErrorMessage]
    error_message: str | None
    current_leader: LeaderIdAndEpoch | None

    def __init__(
        self, index: int = 0, error_code: int = 0, base_offset: int = 0,
        log_append_time_ms: int = -1, log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] = ABSENT, error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = [] if record_errors is ABSENT else record_errors
        self.error_message = error_message
        self.current_leader = current_leader


@dataclass(slots=True, init=False, repr=False, eq=False)
class TopicProduceResponse(Structure):
    """Part of Produce."""

    name: str
    topic_id: bytes
    partition_responses: list[PartitionProduceResponse]

    def __init__(
        self, name: str = "", topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] = ABSENT,
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = [] if partition_responses is ABSENT else partition_responses


@dataclass(slots=True, init=False, repr=False, eq=False)
class NodeEndpoint(Structure):
    """Part of Produce."""

    node_id: int
    host: str
    port: int
    rack: str | None

    def __init__(
        self, node_id: int = 0, host: str = "", port: int = 0, rack: str | None = None
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack


@dataclass(slots=True, init=False, repr=False, eq=False)
class ProduceResponse(Structure):
    """Produce, versions 3-13."""

    responses: list[TopicProduceResponse]
    throttle_time_ms: int
    node_endpoints: list[NodeEndpoint]

    def __init__(
        self, responses: list[TopicProduceResponse] = ABSENT, throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] = ABSENT,
    ) -> None:
        self.responses = [] if responses is ABSENT else responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = [] if node_endpoints is ABSENT else node_endpoints


def decode_request_v3(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    elements = 0
    (size,) = unpack_h(view, position)
    position += 2
    transactional_id: str | None = None
    if size >= 0:
        end = position + size
        transactional_id = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("ProduceRequest.transactional_id: negative length")
    acks, timeout_ms, count = unpack_hii(view, position)
    position += 10
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    topic_data: list[TopicProduceData] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TopicProduceData.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 8)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partition_data: list[PartitionProduceData] = []
        for _ in range(count):
            index, size = unpack_ii(view, position)
            position += 8
            records: memoryview | None = None
            if size >= 0:
                end = position + size
                records = view[position:end]
                position = end
            elif size != -1:
                raise Malformed("PartitionProduceData.records: negative length")
            partition_data.append(PartitionProduceData(index, records))
        topic_data.append(TopicProduceData(name, ZERO_UUID, partition_data))
    return ProduceRequest(transactional_id, acks, timeout_ms, topic_data), position


def encode_request_v3(message: ProduceRequest, out: bytearray) -> Chunks:
    chunks: Chunks = []
    transactional_id = message.transactional_id
    data = b"" if transactional_id is None else transactional_id.encode()
    out += pack_h(-1 if transactional_id is None else len(data))
    out += data
    topic_data = message.topic_data
    out += pack_hii(message.acks, message.timeout_ms, len(topic_data))
    for topic_produce_data in topic_data:
        name = topic_produce_data.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partition_data = topic_produce_data.partition_data
        out += pack_i(len(partition_data))
        for partition_produce_data in partition_data:
            records = partition_produce_data.records
            out += pack_ii(partition_produce_data.index, -1 if records is None else len(records))
            if records is not None:
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
    chunks.append(out)
    return chunks


def decode_request_v9(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    transactional_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
    acks, timeout_ms, count = unpack_hiB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    topic_data: list[TopicProduceData] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partition_data: list[PartitionProduceData] = []
        for _ in range(count - 1):
            index, size = unpack_iB(view, position)
            position += 5
            records: memoryview | None = None
            if size:
                if size >= 0x80:
                    byte = view[position]
                    position += 1
                    size += (byte << 7) - 0x80
                    if byte >= 0x80:
                        byte = view[position]
                        position += 1
                        size += (byte << 14) - 0x4000
                        if byte >= 0x80:
                            size, position = varint_end(view, position, size)
                end = position + size - 1
                records = view[position:end]
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partition_data.append(PartitionProduceData(index, records))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topic_data.append(TopicProduceData(name, ZERO_UUID, partition_data))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ProduceRequest(transactional_id, acks, timeout_ms, topic_data), position


def encode_request_v9(message: ProduceRequest, out: bytearray) -> Chunks:
    chunks: Chunks = []
    transactional_id = message.transactional_id
    if transactional_id is None:
        out.append(0)
    else:
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topic_data = message.topic_data
    out += pack_hi(message.acks, message.timeout_ms)
    size = len(topic_data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_produce_data in topic_data:
        name = topic_produce_data.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partition_data = topic_produce_data.partition_data
        size = len(partition_data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_produce_data in partition_data:
            records = partition_produce_data.records
            out += pack_i(partition_produce_data.index)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
            out.append(0)
        out.append(0)
    out.append(0)
    chunks.append(out)
    return chunks


def decode_request_v13(view: memoryview, position: int) -> tuple[ProduceRequest, int]:
    elements = 0
    size = view[position]
    position += 1
    transactional_id: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        transactional_id = view[position:end].tobytes().decode()
        position = end
    acks, timeout_ms, count = unpack_hiB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    topic_data: list[TopicProduceData] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 6)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        partition_data: list[PartitionProduceData] = []
        for _ in range(count - 1):
            index, size = unpack_iB(view, position)
            position += 5
            records: memoryview | None = None
            if size:
                if size >= 0x80:
                    byte = view[position]
                    position += 1
                    size += (byte << 7) - 0x80
                    if byte >= 0x80:
                        byte = view[position]
                        position += 1
                        size += (byte << 14) - 0x4000
                        if byte >= 0x80:
                            size, position = varint_end(view, position, size)
                end = position + size - 1
                records = view[position:end]
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            partition_data.append(PartitionProduceData(index, records))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        topic_data.append(TopicProduceData("", topic_id, partition_data))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ProduceRequest(transactional_id, acks, timeout_ms, topic_data), position


def encode_request_v13(message: ProduceRequest, out: bytearray) -> Chunks:
    chunks: Chunks = []
    transactional_id = message.transactional_id
    if transactional_id is None:
        out.append(0)
    else:
        data = transactional_id.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
    topic_data = message.topic_data
    out += pack_hi(message.acks, message.timeout_ms)
    size = len(topic_data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_produce_data in topic_data:
        partition_data = topic_produce_data.partition_data
        out += pack_16s(topic_produce_data.topic_id)
        size = len(partition_data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_produce_data in partition_data:
            records = partition_produce_data.records
            out += pack_i(partition_produce_data.index)
            if records is None:
                out.append(0)
            else:
                size = len(records) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                chunks.append(out)
                chunks.append(records)
                out = bytearray()
            out.append(0)
        out.append(0)
    out.append(0)
    chunks.append(out)
    return chunks


def decode_response_v3(view: memoryview, position: int) -> tuple[ProduceResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TopicProduceResponse.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 22)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count):
            index, error_code, base_offset, log_append_time_ms = unpack_ihqq(view, position)
            position += 22
            partition_responses.append(
                PartitionProduceResponse(
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    -1,
                    [],
                    None,
                    None,
                )
            )
        responses.append(TopicProduceResponse(name, ZERO_UUID, partition_responses))
    (throttle_time_ms,) = unpack_i(view, position)
    position += 4
    return ProduceResponse(responses, throttle_time_ms, []), position


def encode_response_v3(message: ProduceResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(len(responses))
    for topic_produce_response in responses:
        name = topic_produce_response.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partition_responses = topic_produce_response.partition_responses
        out += pack_i(len(partition_responses))
        for partition_produce_response in partition_responses:
            out += pack_ihqq(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
            )
    out += pack_i(message.throttle_time_ms)
    return [out]


def decode_response_v5(view: memoryview, position: int) -> tuple[ProduceResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TopicProduceResponse.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 30)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count):
            (
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                log_start_offset,
            ) = unpack_ihqqq(view, position)
            position += 30
            partition_responses.append(
                PartitionProduceResponse(
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    [],
                    None,
                    None,
                )
            )
        responses.append(TopicProduceResponse(name, ZERO_UUID, partition_responses))
    (throttle_time_ms,) = unpack_i(view, position)
    position += 4
    return ProduceResponse(responses, throttle_time_ms, []), position


def encode_response_v5(message: ProduceResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(len(responses))
    for topic_produce_response in responses:
        name = topic_produce_response.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partition_responses = topic_produce_response.partition_responses
        out += pack_i(len(partition_responses))
        for partition_produce_response in partition_responses:
            out += pack_ihqqq(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
    out += pack_i(message.throttle_time_ms)
    return [out]


def decode_response_v8(view: memoryview, position: int) -> tuple[ProduceResponse, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 6)
    responses: list[TopicProduceResponse] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("TopicProduceResponse.name: negative length")
        end = position + size
        name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 36)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count):
            (
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                log_start_offset,
                count,
            ) = unpack_ihqqqi(view, position)
            position += 34
            if not 0 <= count < 0x80:
                check_count(view, position, count, 6)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(count):
                batch_index, size = unpack_ih(view, position)
                position += 6
                batch_index_error_message: str | None = None
                if size >= 0:
                    end = position + size
                    batch_index_error_message = view[position:end].tobytes().decode()
                    position = end
                elif size != -1:
                    raise Malformed("BatchIndexAndErrorMessage.batch_index_error_message: negative length")
                record_errors.append(
                    BatchIndexAndErrorMessage(batch_index, batch_index_error_message)
                )
            (size,) = unpack_h(view, position)
            position += 2
            error_message: str | None = None
            if size >= 0:
                end = position + size
                error_message = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("PartitionProduceResponse.error_message: negative length")
            partition_responses.append(
                PartitionProduceResponse(
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    record_errors,
                    error_message,
                    None,
                )
            )
        responses.append(TopicProduceResponse(name, ZERO_UUID, partition_responses))
    (throttle_time_ms,) = unpack_i(view, position)
    position += 4
    return ProduceResponse(responses, throttle_time_ms, []), position


def encode_response_v8(message: ProduceResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(len(responses))
    for topic_produce_response in responses:
        name = topic_produce_response.name
        data = name.encode()
        out += pack_h(len(data))
        out += data
        partition_responses = topic_produce_response.partition_responses
        out += pack_i(len(partition_responses))
        for partition_produce_response in partition_responses:
            record_errors = partition_produce_response.record_errors
            out += pack_ihqqqi(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
                len(record_errors),
            )
            for batch_index_and_error_message in record_errors:
                batch_index_error_message = batch_index_and_error_message.batch_index_error_message
                data = b"" if batch_index_error_message is None else batch_index_error_message.encode()
                out += pack_ih(
                    batch_index_and_error_message.batch_index,
                    -1 if batch_index_error_message is None else len(data),
                )
                out += data
            error_message = partition_produce_response.error_message
            data = b"" if error_message is None else error_message.encode()
            out += pack_h(-1 if error_message is None else len(data))
            out += data
    out += pack_i(message.throttle_time_ms)
    return [out]


def decode_response_v9(view: memoryview, position: int) -> tuple[ProduceResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    responses: list[TopicProduceResponse] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count - 1):
            (
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                log_start_offset,
                count,
            ) = unpack_ihqqqB(view, position)
            position += 31
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 6)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(count - 1):
                batch_index, size = unpack_iB(view, position)
                position += 5
                batch_index_error_message: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    batch_index_error_message = view[position:end].tobytes().decode()
                    position = end
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                record_errors.append(
                    BatchIndexAndErrorMessage(batch_index, batch_index_error_message)
                )
            size = view[position]
            position += 1
            error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                error_message = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            partition_responses.append(
                PartitionProduceResponse(
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    record_errors,
                    error_message,
                    None,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(TopicProduceResponse(name, ZERO_UUID, partition_responses))
    throttle_time_ms, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    return ProduceResponse(responses, throttle_time_ms, []), position


def encode_response_v9(message: ProduceResponse, out: bytearray) -> Chunks:
    responses = message.responses
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_produce_response in responses:
        name = topic_produce_response.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partition_responses = topic_produce_response.partition_responses
        size = len(partition_responses) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_produce_response in partition_responses:
            record_errors = partition_produce_response.record_errors
            out += pack_ihqqq(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
            size = len(record_errors) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for batch_index_and_error_message in record_errors:
                batch_index_error_message = batch_index_and_error_message.batch_index_error_message
                out += pack_i(batch_index_and_error_message.batch_index)
                if batch_index_error_message is None:
                    out.append(0)
                else:
                    data = batch_index_error_message.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out.append(0)
            error_message = partition_produce_response.error_message
            if error_message is None:
                out.append(0)
            else:
                data = error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        out.append(0)
    out += pack_ix(message.throttle_time_ms)
    return [out]


def decode_response_v10(view: memoryview, position: int) -> tuple[ProduceResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    responses: list[TopicProduceResponse] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count - 1):
            (
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                log_start_offset,
                count,
            ) = unpack_ihqqqB(view, position)
            position += 31
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 6)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(count - 1):
                batch_index, size = unpack_iB(view, position)
                position += 5
                batch_index_error_message: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    batch_index_error_message = view[position:end].tobytes().decode()
                    position = end
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                record_errors.append(
                    BatchIndexAndErrorMessage(batch_index, batch_index_error_message)
                )
            size = view[position]
            position += 1
            error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                error_message = view[position:end].tobytes().decode()
                position = end
            partition_responses_tags = view[position]
            position += 1
            current_leader: LeaderIdAndEpoch | None = None
            if partition_responses_tags:
                partition_responses_tags, position = tag_count(view, position, partition_responses_tags)
                for _ in range(partition_responses_tags):
                    tag, position, partition_responses_tag_end = read_tag(view, position)
                    if tag == 0:
                        leader_id, leader_epoch, tags = unpack_iiB(view, position)
                        position += 9
                        if tags:
                            position = skip_tags(view, position, tags)
                        current_leader = LeaderIdAndEpoch(leader_id, leader_epoch)
                        if position != partition_responses_tag_end:
                            raise wrong_tag_size(0)
                    position = partition_responses_tag_end
            partition_responses.append(
                PartitionProduceResponse(
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    record_errors,
                    error_message,
                    current_leader,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(TopicProduceResponse(name, ZERO_UUID, partition_responses))
    throttle_time_ms, produce_response_tags = unpack_iB(view, position)
    position += 5
    node_endpoints: list[NodeEndpoint] = []
    if produce_response_tags:
        produce_response_tags, position = tag_count(view, position, produce_response_tags)
        for _ in range(produce_response_tags):
            tag, position, produce_response_tag_end = read_tag(view, position)
            if tag == 0:
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 11)
                tagged_node_endpoints: list[NodeEndpoint] = []
                for _ in range(count - 1):
                    node_id, size = unpack_iB(view, position)
                    position += 5
                    if not 0 < size < 0x80:
                        size, position = long_size(view, position, size)
                    end = position + size - 1
                    host = view[position:end].tobytes().decode()
                    position = end
                    port, size = unpack_iB(view, position)
                    position += 5
                    rack: str | None = None
                    if size:
                        if size >= 0x80:
                            size, position = varint_tail(view, position, size)
                        end = position + size - 1
                        rack = view[position:end].tobytes().decode()
                        position = end
                    tags = view[position]
                    position += 1
                    if tags:
                        position = skip_tags(view, position, tags)
                    tagged_node_endpoints.append(NodeEndpoint(node_id, host, port, rack))
                node_endpoints = tagged_node_endpoints
                if position != produce_response_tag_end:
                    raise wrong_tag_size(0)
            position = produce_response_tag_end
    return ProduceResponse(responses, throttle_time_ms, node_endpoints), position


def encode_response_v10(message: ProduceResponse, out: bytearray) -> Chunks:
    responses = message.responses
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_produce_response in responses:
        name = topic_produce_response.name
        data = name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        partition_responses = topic_produce_response.partition_responses
        size = len(partition_responses) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_produce_response in partition_responses:
            record_errors = partition_produce_response.record_errors
            out += pack_ihqqq(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
            size = len(record_errors) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for batch_index_and_error_message in record_errors:
                batch_index_error_message = batch_index_and_error_message.batch_index_error_message
                out += pack_i(batch_index_and_error_message.batch_index)
                if batch_index_error_message is None:
                    out.append(0)
                else:
                    data = batch_index_error_message.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out.append(0)
            error_message = partition_produce_response.error_message
            if error_message is None:
                out.append(0)
            else:
                data = error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            if partition_produce_response.current_leader is None:
                out.append(0)
            else:
                partition_produce_response_tags = 0
                partition_produce_response_tagged = bytearray()
                if partition_produce_response.current_leader is not None:
                    partition_produce_response_tags += 1
                    current_leader_body = bytearray()
                    current_leader = partition_produce_response.current_leader
                    current_leader_body += pack_iix(
                        current_leader.leader_id,
                        current_leader.leader_epoch,
                    )
                    put_tag(partition_produce_response_tagged, 0, current_leader_body)
                out.append(partition_produce_response_tags)
                out += partition_produce_response_tagged
        out.append(0)
    out += pack_i(message.throttle_time_ms)
    if not message.node_endpoints:
        out.append(0)
    else:
        produce_response_tags = 0
        produce_response_tagged = bytearray()
        if message.node_endpoints:
            produce_response_tags += 1
            node_endpoints_body = bytearray()
            node_endpoints = message.node_endpoints
            size = len(node_endpoints) + 1
            if size < 0x80:
                node_endpoints_body.append(size)
            else:
                put_varint(node_endpoints_body, size)
            for node_endpoint in node_endpoints:
                host = node_endpoint.host
                node_endpoints_body += pack_i(node_endpoint.node_id)
                data = host.encode()
                size = len(data) + 1
                if size < 0x80:
                    node_endpoints_body.append(size)
                else:
                    put_varint(node_endpoints_body, size)
                node_endpoints_body += data
                rack = node_endpoint.rack
                node_endpoints_body += pack_i(node_endpoint.port)
                if rack is None:
                    node_endpoints_body.append(0)
                else:
                    data = rack.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        node_endpoints_body.append(size)
                    else:
                        put_varint(node_endpoints_body, size)
                    node_endpoints_body += data
                node_endpoints_body.append(0)
            put_tag(produce_response_tagged, 0, node_endpoints_body)
        out.append(produce_response_tags)
        out += produce_response_tagged
    return [out]


def decode_response_v13(view: memoryview, position: int) -> tuple[ProduceResponse, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 18)
    responses: list[TopicProduceResponse] = []
    for _ in range(count - 1):
        topic_id, count = unpack_16sB(view, position)
        position += 17
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 33)
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count - 1):
            (
                index,
                error_code,
                base_offset,
                log_append_time_ms,
                log_start_offset,
                count,
            ) = unpack_ihqqqB(view, position)
            position += 31
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 6)
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(count - 1):
                batch_index, size = unpack_iB(view, position)
                position += 5
                batch_index_error_message: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    batch_index_error_message = view[position:end].tobytes().decode()
                    position = end
                tags = view[position]
                position += 1
                if tags:
                    position = skip_tags(view, position, tags)
                record_errors.append(
                    BatchIndexAndErrorMessage(batch_index, batch_index_error_message)
                )
            size = view[position]
            position += 1
            error_message: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                error_message = view[position:end].tobytes().decode()
                position = end
            partition_responses_tags = view[position]
            position += 1
            current_leader: LeaderIdAndEpoch | None = None
            if partition_responses_tags:
                partition_responses_tags, position = tag_count(view, position, partition_responses_tags)
                for _ in range(partition_responses_tags):
                    tag, position, partition_responses_tag_end = read_tag(view, position)
                    if tag == 0:
                        leader_id, leader_epoch, tags = unpack_iiB(view, position)
                        position += 9
                        if tags:
                            position = skip_tags(view, position, tags)
                        current_leader = LeaderIdAndEpoch(leader_id, leader_epoch)
                        if position != partition_responses_tag_end:
                            raise wrong_tag_size(0)
                    position = partition_responses_tag_end
            partition_responses.append(
                PartitionProduceResponse(
                    index,
                    error_code,
                    base_offset,
                    log_append_time_ms,
                    log_start_offset,
                    record_errors,
                    error_message,
                    current_leader,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(TopicProduceResponse("", topic_id, partition_responses))
    throttle_time_ms, produce_response_tags = unpack_iB(view, position)
    position += 5
    node_endpoints: list[NodeEndpoint] = []
    if produce_response_tags:
        produce_response_tags, position = tag_count(view, position, produce_response_tags)
        for _ in range(produce_response_tags):
            tag, position, produce_response_tag_end = read_tag(view, position)
            if tag == 0:
                count = view[position]
                position += 1
                if not 0 < count < 0x80:
                    count, position = long_count(view, position, count, 11)
                tagged_node_endpoints: list[NodeEndpoint] = []
                for _ in range(count - 1):
                    node_id, size = unpack_iB(view, position)
                    position += 5
                    if not 0 < size < 0x80:
                        size, position = long_size(view, position, size)
                    end = position + size - 1
                    host = view[position:end].tobytes().decode()
                    position = end
                    port, size = unpack_iB(view, position)
                    position += 5
                    rack: str | None = None
                    if size:
                        if size >= 0x80:
                            size, position = varint_tail(view, position, size)
                        end = position + size - 1
                        rack = view[position:end].tobytes().decode()
                        position = end
                    tags = view[position]
                    position += 1
                    if tags:
                        position = skip_tags(view, position, tags)
                    tagged_node_endpoints.append(NodeEndpoint(node_id, host, port, rack))
                node_endpoints = tagged_node_endpoints
                if position != produce_response_tag_end:
                    raise wrong_tag_size(0)
            position = produce_response_tag_end
    return ProduceResponse(responses, throttle_time_ms, node_endpoints), position


def encode_response_v13(message: ProduceResponse, out: bytearray) -> Chunks:
    responses = message.responses
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for topic_produce_response in responses:
        partition_responses = topic_produce_response.partition_responses
        out += pack_16s(topic_produce_response.topic_id)
        size = len(partition_responses) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for partition_produce_response in partition_responses:
            record_errors = partition_produce_response.record_errors
            out += pack_ihqqq(
                partition_produce_response.index,
                partition_produce_response.error_code,
                partition_produce_response.base_offset,
                partition_produce_response.log_append_time_ms,
                partition_produce_response.log_start_offset,
            )
            size = len(record_errors) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for batch_index_and_error_message in record_errors:
                batch_index_error_message = batch_index_and_error_message.batch_index_error_message
                out += pack_i(batch_index_and_error_message.batch_index)
                if batch_index_error_message is None:
                    out.append(0)
                else:
                    data = batch_index_error_message.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out.append(0)
            error_message = partition_produce_response.error_message
            if error_message is None:
                out.append(0)
            else:
                data = error_message.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            if partition_produce_response.current_leader is None:
                out.append(0)
            else:
                partition_produce_response_tags = 0
                partition_produce_response_tagged = bytearray()
                if partition_produce_response.current_leader is not None:
                    partition_produce_response_tags += 1
                    current_leader_body = bytearray()
                    current_leader = partition_produce_response.current_leader
                    current_leader_body += pack_iix(
                        current_leader.leader_id,
                        current_leader.leader_epoch,
                    )
                    put_tag(partition_produce_response_tagged, 0, current_leader_body)
                out.append(partition_produce_response_tags)
                out += partition_produce_response_tagged
        out.append(0)
    out += pack_i(message.throttle_time_ms)
    if not message.node_endpoints:
        out.append(0)
    else:
        produce_response_tags = 0
        produce_response_tagged = bytearray()
        if message.node_endpoints:
            produce_response_tags += 1
            node_endpoints_body = bytearray()
            node_endpoints = message.node_endpoints
            size = len(node_endpoints) + 1
            if size < 0x80:
                node_endpoints_body.append(size)
            else:
                put_varint(node_endpoints_body, size)
            for node_endpoint in node_endpoints:
                host = node_endpoint.host
                node_endpoints_body += pack_i(node_endpoint.node_id)
                data = host.encode()
                size = len(data) + 1
                if size < 0x80:
                    node_endpoints_body.append(size)
                else:
                    put_varint(node_endpoints_body, size)
                node_endpoints_body += data
                rack = node_endpoint.rack
                node_endpoints_body += pack_i(node_endpoint.port)
                if rack is None:
                    node_endpoints_body.append(0)
                else:
                    data = rack.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        node_endpoints_body.append(size)
                    else:
                        put_varint(node_endpoints_body, size)
                    node_endpoints_body += data
                node_endpoints_body.append(0)
            put_tag(produce_response_tagged, 0, node_endpoints_body)
        out.append(produce_response_tags)
        out += produce_response_tagged
    return [out]


PRODUCE = Api(
    0,
    "Produce",
    Message(
        "ProduceRequest",
        (3, 13),
        9,
        {
            3: (decode_request_v3, encode_request_v3),
            9: (decode_request_v9, encode_request_v9),
            13: (decode_request_v13, encode_request_v13),
        },
    ),
    Message(
        "ProduceResponse",
        (3, 13),
        9,
        {
            3: (decode_response_v3, encode_response_v3),
            5: (decode_response_v5, encode_response_v5),
            8: (decode_response_v8, encode_response_v8),
            9: (decode_response_v9, encode_response_v9),
            10: (decode_response_v10, encode_response_v10),
            13: (decode_response_v13, encode_response_v13),
        },
    ),
)

# Puts hand-tuned functions in the place of some of the above.
import barnabas.protocol.tuned.produce  # noqa: E402, F401
