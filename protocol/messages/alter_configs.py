"""AlterConfigs: generated from alter_configs.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterableConfig(Structure):
    """Part of AlterConfigs."""

    name: str
    value: str | None

    def __init__(self, name: str = "", value: str | None = "") -> None:
        self.name = name
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterConfigsResource(Structure):
    """Part of AlterConfigs."""

    resource_type: int
    resource_name: str
    configs: list[AlterableConfig]

    def __init__(
        self, resource_type: int = 0, resource_name: str = "",
        configs: list[AlterableConfig] = ABSENT,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is ABSENT else configs


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterConfigsRequest(Structure):
    """AlterConfigs, versions 0-2."""

    resources: list[AlterConfigsResource]
    validate_only: bool

    def __init__(
        self, resources: list[AlterConfigsResource] = ABSENT, validate_only: bool = False
    ) -> None:
        self.resources = [] if resources is ABSENT else resources
        self.validate_only = validate_only


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterConfigsResourceResponse(Structure):
    """Part of AlterConfigs."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str

    def __init__(
        self, error_code: int = 0, error_message: str | None = "", resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterConfigsResponse(Structure):
    """AlterConfigs, versions 0-2."""

    throttle_time_ms: int
    responses: list[AlterConfigsResourceResponse]

    def __init__(
        self, throttle_time_ms: int = 0, responses: list[AlterConfigsResourceResponse] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is ABSENT else responses


def read_alterable_config(reader: Reader, version: int) -> AlterableConfig:
    message = AlterableConfig(reader.string(), reader.optional_string())
    reader.skip_tags()
    return message


def write_alterable_config(writer: Writer, message: AlterableConfig, version: int) -> None:
    writer.string(message.name)
    writer.optional_string(message.value)
    writer.no_tags()


def read_alter_configs_resource(reader: Reader, version: int) -> AlterConfigsResource:
    message = AlterConfigsResource(
        reader.int8(),
        reader.string(),
        reader.array(read_alterable_config, version, 3),
    )
    reader.skip_tags()
    return message


def write_alter_configs_resource(
    writer: Writer, message: AlterConfigsResource, version: int
) -> None:
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.array(message.configs, write_alterable_config, version)
    writer.no_tags()


def read_alter_configs_request(reader: Reader, version: int) -> AlterConfigsRequest:
    message = AlterConfigsRequest(
        reader.array(read_alter_configs_resource, version, 4),
        reader.boolean(),
    )
    reader.skip_tags()
    return message


def write_alter_configs_request(writer: Writer, message: AlterConfigsRequest, version: int) -> None:
    writer.array(message.resources, write_alter_configs_resource, version)
    writer.boolean(message.validate_only)
    writer.no_tags()


def read_alter_configs_resource_response(
    reader: Reader, version: int
) -> AlterConfigsResourceResponse:
    message = AlterConfigsResourceResponse(
        reader.int16(),
        reader.optional_string(),
        reader.int8(),
        reader.string(),
    )
    reader.skip_tags()
    return message


def write_alter_configs_resource_response(
    writer: Writer, message: AlterConfigsResourceResponse, version: int
) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.no_tags()


def read_alter_configs_response(reader: Reader, version: int) -> AlterConfigsResponse:
    message = AlterConfigsResponse(
        reader.int32(),
        reader.array(read_alter_configs_resource_response, version, 6),
    )
    reader.skip_tags()
    return message


def write_alter_configs_response(
    writer: Writer, message: AlterConfigsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.responses, write_alter_configs_resource_response, version)
    writer.no_tags()


ALTER_CONFIGS = Api(
    33,
    "AlterConfigs",
    message_of_fields(
        "AlterConfigsRequest", (0, 2), 2, read_alter_configs_request, write_alter_configs_request,
        bounded=True,
    ),
    message_of_fields(
        "AlterConfigsResponse", (0, 2), 2, read_alter_configs_response, write_alter_configs_response
    ),
)
