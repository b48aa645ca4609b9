"""ListConfigResources: generated from list_config_resources.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, pack, unpack_from

from barnabas.protocol.api import Api, Message
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    long_count,
    long_size,
    put_varint,
    skip_tags,
)

pack_bx = Struct(">bx").pack
pack_ih = Struct(">ih").pack
unpack_bB = Struct(">bB").unpack_from
unpack_ihB = Struct(">ihB").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListConfigResourcesRequest(Structure):
    """ListConfigResources, versions 0-1."""

    resource_types: list[int]

    def __init__(
        self,
        resource_types: list[int] = ABSENT,
    ) -> None:
        self.resource_types = [] if resource_types is ABSENT else resource_types


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConfigResource(Structure):
    """Part of ListConfigResources."""

    resource_name: str
    resource_type: int

    def __init__(
        self,
        resource_name: str = "",
        resource_type: int = 16,
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListConfigResourcesResponse(Structure):
    """ListConfigResources, versions 0-1."""

    throttle_time_ms: int
    error_code: int
    config_resources: list[ConfigResource]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is ABSENT else config_resources


def decode_request_v0(view: memoryview, position: int) -> tuple[ListConfigResourcesRequest, int]:
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListConfigResourcesRequest([]), position


def encode_request_v0(message: ListConfigResourcesRequest, out: bytearray) -> Chunks:
    out.append(0)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[ListConfigResourcesRequest, int]:
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 1)
    count -= 1
    resource_types = list(unpack_from(f">{count}b", view, position))
    position += count
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return ListConfigResourcesRequest(resource_types), position


def encode_request_v1(message: ListConfigResourcesRequest, out: bytearray) -> Chunks:
    resource_types = message.resource_types
    size = len(resource_types) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    out += pack(f">{len(resource_types)}b", *resource_types)
    out.append(0)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[ListConfigResourcesResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 2)
    config_resources: list[ConfigResource] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        resource_name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        config_resources.append(ConfigResource(resource_name, 16))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ListConfigResourcesResponse(throttle_time_ms, error_code, config_resources)
    return message, position


def encode_response_v0(message: ListConfigResourcesResponse, out: bytearray) -> Chunks:
    config_resources = message.config_resources
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(config_resources) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for config_resource in config_resources:
        resource_name = config_resource.resource_name
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out.append(0)
    out.append(0)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[ListConfigResourcesResponse, int]:
    throttle_time_ms, error_code, count = unpack_ihB(view, position)
    position += 7
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    config_resources: list[ConfigResource] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        resource_name = view[position:end].tobytes().decode()
        position = end
        resource_type, tags = unpack_bB(view, position)
        position += 2
        if tags:
            position = skip_tags(view, position, tags)
        config_resources.append(ConfigResource(resource_name, resource_type))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = ListConfigResourcesResponse(throttle_time_ms, error_code, config_resources)
    return message, position


def encode_response_v1(message: ListConfigResourcesResponse, out: bytearray) -> Chunks:
    config_resources = message.config_resources
    out += pack_ih(message.throttle_time_ms, message.error_code)
    size = len(config_resources) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for config_resource in config_resources:
        resource_name = config_resource.resource_name
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        out += pack_bx(config_resource.resource_type)
    out.append(0)
    return [out]


LIST_CONFIG_RESOURCES = Api(
    74,
    "ListConfigResources",
    Message(
        "ListConfigResourcesRequest",
        (0, 1),
        0,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "ListConfigResourcesResponse",
        (0, 1),
        0,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
