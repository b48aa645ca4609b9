"""DescribeCluster: generated from describe_cluster.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_tbtx = Struct(">?b?x").pack
pack_tbx = Struct(">?bx").pack
pack_tx = Struct(">?x").pack
pack_b = Struct(">b").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ix = Struct(">ix").pack
unpack_tB = Struct(">?B").unpack_from
unpack_tbtB = Struct(">?b?B").unpack_from
unpack_tbB = Struct(">?bB").unpack_from
unpack_bB = Struct(">bB").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClusterRequest(Structure):
    """DescribeCluster, versions 0-2."""

    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool

    def __init__(
        self,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,
        include_fenced_brokers: bool = False,
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClusterBroker(Structure):
    """Part of DescribeCluster."""

    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool

    def __init__(
        self,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClusterResponse(Structure):
    """DescribeCluster, versions 0-2."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    endpoint_type: int
    cluster_id: str
    controller_id: int
    brokers: list[DescribeClusterBroker]
    cluster_authorized_operations: int

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        endpoint_type: int = 1,
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = ABSENT,
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is ABSENT else brokers
        self.cluster_authorized_operations = cluster_authorized_operations


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeClusterRequest, int]:
    include_cluster_authorized_operations, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeClusterRequest(include_cluster_authorized_operations, 1, False), position


def encode_request_v0(message: DescribeClusterRequest, out: bytearray) -> Chunks:
    out += pack_tx(message.include_cluster_authorized_operations)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[DescribeClusterRequest, int]:
    include_cluster_authorized_operations, endpoint_type, tags = unpack_tbB(view, position)
    position += 3
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeClusterRequest(include_cluster_authorized_operations, endpoint_type, False)
    return message, position


def encode_request_v1(message: DescribeClusterRequest, out: bytearray) -> Chunks:
    out += pack_tbx(message.include_cluster_authorized_operations, message.endpoint_type)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[DescribeClusterRequest, int]:
    (
        include_cluster_authorized_operations,
        endpoint_type,
        include_fenced_brokers,
        tags,
    ) = unpack_tbtB(view, position)
    position += 4
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeClusterRequest(
        include_cluster_authorized_operations,
        endpoint_type,
        include_fenced_brokers,
    )
    return message, position


def encode_request_v2(message: DescribeClusterRequest, out: bytearray) -> Chunks:
    out += pack_tbtx(
        message.include_cluster_authorized_operations,
        message.endpoint_type,
        message.include_fenced_brokers,
    )
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    size = view[position]
    position += 1
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    cluster_id = view[position:end].tobytes().decode()
    position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count - 1):
        broker_id, size = unpack_iB(view, position)
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
        brokers.append(DescribeClusterBroker(broker_id, host, port, rack, False))
    cluster_authorized_operations, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeClusterResponse(
        throttle_time_ms,
        error_code,
        error_message,
        1,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    )
    return message, position


def encode_response_v0(message: DescribeClusterResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
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
    cluster_id = message.cluster_id
    data = cluster_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    brokers = message.brokers
    out += pack_i(message.controller_id)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_cluster_broker in brokers:
        host = describe_cluster_broker.host
        out += pack_i(describe_cluster_broker.broker_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = describe_cluster_broker.rack
        out += pack_i(describe_cluster_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out += pack_ix(message.cluster_authorized_operations)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    endpoint_type, size = unpack_bB(view, position)
    position += 2
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    cluster_id = view[position:end].tobytes().decode()
    position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 11)
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count - 1):
        broker_id, size = unpack_iB(view, position)
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
        brokers.append(DescribeClusterBroker(broker_id, host, port, rack, False))
    cluster_authorized_operations, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeClusterResponse(
        throttle_time_ms,
        error_code,
        error_message,
        endpoint_type,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    )
    return message, position


def encode_response_v1(message: DescribeClusterResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
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
    cluster_id = message.cluster_id
    out += pack_b(message.endpoint_type)
    data = cluster_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    brokers = message.brokers
    out += pack_i(message.controller_id)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_cluster_broker in brokers:
        host = describe_cluster_broker.host
        out += pack_i(describe_cluster_broker.broker_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = describe_cluster_broker.rack
        out += pack_i(describe_cluster_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out += pack_ix(message.cluster_authorized_operations)
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[DescribeClusterResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    endpoint_type, size = unpack_bB(view, position)
    position += 2
    if not 0 < size < 0x80:
        size, position = long_size(view, position, size)
    end = position + size - 1
    cluster_id = view[position:end].tobytes().decode()
    position = end
    controller_id, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 12)
    brokers: list[DescribeClusterBroker] = []
    for _ in range(count - 1):
        broker_id, size = unpack_iB(view, position)
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
        is_fenced, tags = unpack_tB(view, position)
        position += 2
        if tags:
            position = skip_tags(view, position, tags)
        brokers.append(DescribeClusterBroker(broker_id, host, port, rack, is_fenced))
    cluster_authorized_operations, tags = unpack_iB(view, position)
    position += 5
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeClusterResponse(
        throttle_time_ms,
        error_code,
        error_message,
        endpoint_type,
        cluster_id,
        controller_id,
        brokers,
        cluster_authorized_operations,
    )
    return message, position


def encode_response_v2(message: DescribeClusterResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    out += pack_ih(message.throttle_time_ms, message.error_code)
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
    cluster_id = message.cluster_id
    out += pack_b(message.endpoint_type)
    data = cluster_id.encode()
    size = len(data) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += data
    brokers = message.brokers
    out += pack_i(message.controller_id)
    size = len(brokers) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_cluster_broker in brokers:
        host = describe_cluster_broker.host
        out += pack_i(describe_cluster_broker.broker_id)
        data = host.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        rack = describe_cluster_broker.rack
        out += pack_i(describe_cluster_broker.port)
        if rack is None:
            out.append(0)
        else:
            data = rack.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out += pack_tx(describe_cluster_broker.is_fenced)
    out += pack_ix(message.cluster_authorized_operations)
    return [out]


DESCRIBE_CLUSTER = Api(
    60,
    "DescribeCluster",
    Message(
        "DescribeClusterRequest",
        (0, 2),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "DescribeClusterResponse",
        (0, 2),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
