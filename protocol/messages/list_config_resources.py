"""ListConfigResources: generated from list_config_resources.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListConfigResourcesRequest(Structure):
    """ListConfigResources, versions 0-1."""

    resource_types: list[int]

    def __init__(self, resource_types: list[int] = ABSENT) -> None:
        self.resource_types = [] if resource_types is ABSENT else resource_types


@dataclass(slots=True, init=False, repr=False, eq=False)
class ConfigResource(Structure):
    """Part of ListConfigResources."""

    resource_name: str
    resource_type: int

    def __init__(self, resource_name: str = "", resource_type: int = 16) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


@dataclass(slots=True, init=False, repr=False, eq=False)
class ListConfigResourcesResponse(Structure):
    """ListConfigResources, versions 0-1."""

    throttle_time_ms: int
    error_code: int
    config_resources: list[ConfigResource]

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0,
        config_resources: list[ConfigResource] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = [] if config_resources is ABSENT else config_resources


def read_list_config_resources_request(reader: Reader, version: int) -> ListConfigResourcesRequest:
    message = ListConfigResourcesRequest(reader.values(reader.int8, 1) if version >= 1 else [])
    reader.skip_tags()
    return message


def write_list_config_resources_request(
    writer: Writer, message: ListConfigResourcesRequest, version: int
) -> None:
    if version >= 1:
        writer.values(message.resource_types, writer.int8)
    writer.no_tags()


def read_config_resource(reader: Reader, version: int) -> ConfigResource:
    message = ConfigResource(reader.string(), reader.int8() if version >= 1 else 16)
    reader.skip_tags()
    return message


def write_config_resource(writer: Writer, message: ConfigResource, version: int) -> None:
    writer.string(message.resource_name)
    if version >= 1:
        writer.int8(message.resource_type)
    writer.no_tags()


def read_list_config_resources_response(
    reader: Reader, version: int
) -> ListConfigResourcesResponse:
    message = ListConfigResourcesResponse(
        reader.int32(),
        reader.int16(),
        reader.array(read_config_resource, version, 2),
    )
    reader.skip_tags()
    return message


def write_list_config_resources_response(
    writer: Writer, message: ListConfigResourcesResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.array(message.config_resources, write_config_resource, version)
    writer.no_tags()


LIST_CONFIG_RESOURCES = Api(
    74,
    "ListConfigResources",
    message_of_fields(
        "ListConfigResourcesRequest", (0, 1), 0, read_list_config_resources_request,
        write_list_config_resources_request, bounded=True,
    ),
    message_of_fields(
        "ListConfigResourcesResponse", (0, 1), 0, read_list_config_resources_response,
        write_list_config_resources_response,
    ),
)
