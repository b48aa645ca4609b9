"""DescribeCluster: generated from describe_cluster.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import TaggedFields, Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClusterRequest(Structure):
    """DescribeCluster, versions 0-2."""

    include_cluster_authorized_operations: bool
    endpoint_type: int
    include_fenced_brokers: bool

    def __init__(
        self, include_cluster_authorized_operations: bool = False, endpoint_type: int = 1,
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
        self, broker_id: int = 0, host: str = "", port: int = 0, rack: str | None = None,
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
    lacks_object_store: list[int] | None

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = None,
        endpoint_type: int = 1, cluster_id: str = "", controller_id: int = -1,
        brokers: list[DescribeClusterBroker] = ABSENT,
        cluster_authorized_operations: int = -2147483648,
        lacks_object_store: list[int] | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = [] if brokers is ABSENT else brokers
        self.cluster_authorized_operations = cluster_authorized_operations
        self.lacks_object_store = lacks_object_store


def read_describe_cluster_request(reader: Reader, version: int) -> DescribeClusterRequest:
    message = DescribeClusterRequest(
        reader.boolean(),
        reader.int8() if version >= 1 else 1,
        reader.boolean() if version >= 2 else False,
    )
    reader.skip_tags()
    return message


def write_describe_cluster_request(
    writer: Writer, message: DescribeClusterRequest, version: int
) -> None:
    writer.boolean(message.include_cluster_authorized_operations)
    if version >= 1:
        writer.int8(message.endpoint_type)
    if version >= 2:
        writer.boolean(message.include_fenced_brokers)
    writer.no_tags()


def read_describe_cluster_broker(reader: Reader, version: int) -> DescribeClusterBroker:
    message = DescribeClusterBroker(
        reader.int32(),
        reader.string(),
        reader.int32(),
        reader.optional_string(),
        reader.boolean() if version >= 2 else False,
    )
    reader.skip_tags()
    return message


def write_describe_cluster_broker(
    writer: Writer, message: DescribeClusterBroker, version: int
) -> None:
    writer.int32(message.broker_id)
    writer.string(message.host)
    writer.int32(message.port)
    writer.optional_string(message.rack)
    if version >= 2:
        writer.boolean(message.is_fenced)
    writer.no_tags()


def read_describe_cluster_response(reader: Reader, version: int) -> DescribeClusterResponse:
    message = DescribeClusterResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.int8() if version >= 1 else 1,
        reader.string(),
        reader.int32(),
        reader.array(read_describe_cluster_broker, version, 11),
        reader.int32(),
    )
    for _ in range(reader.tags()):
        tag, end = reader.tag()
        if tag == 1000:
            message.lacks_object_store = reader.optional_values(reader.int32, 4)
        else:
            reader.position = end
        reader.end_tag(tag, end)
    return message


def write_describe_cluster_response(
    writer: Writer, message: DescribeClusterResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    if version >= 1:
        writer.int8(message.endpoint_type)
    writer.string(message.cluster_id)
    writer.int32(message.controller_id)
    writer.array(message.brokers, write_describe_cluster_broker, version)
    writer.int32(message.cluster_authorized_operations)
    tagged = TaggedFields()
    if message.lacks_object_store is not None:
        tagged.values(message.lacks_object_store, tagged.int32)
        tagged.end(1000)
    writer.tags(tagged)


DESCRIBE_CLUSTER = Api(
    60,
    "DescribeCluster",
    message_of_fields(
        "DescribeClusterRequest", (0, 2), 0, read_describe_cluster_request,
        write_describe_cluster_request, bounded=True,
    ),
    message_of_fields(
        "DescribeClusterResponse", (0, 2), 0, read_describe_cluster_response,
        write_describe_cluster_response,
    ),
)
