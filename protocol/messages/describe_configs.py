"""DescribeConfigs: generated from describe_configs.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsResource(Structure):
    """Part of DescribeConfigs."""

    resource_type: int
    resource_name: str
    configuration_keys: list[str] | None

    def __init__(
        self, resource_type: int = 0, resource_name: str = "",
        configuration_keys: list[str] | None = ABSENT,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = [] if configuration_keys is ABSENT else configuration_keys


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsRequest(Structure):
    """DescribeConfigs, versions 1-4."""

    resources: list[DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool

    def __init__(
        self, resources: list[DescribeConfigsResource] = ABSENT, include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = [] if resources is ABSENT else resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsSynonym(Structure):
    """Part of DescribeConfigs."""

    name: str
    value: str | None
    source: int

    def __init__(self, name: str = "", value: str | None = "", source: int = 0) -> None:
        self.name = name
        self.value = value
        self.source = source


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsResourceResult(Structure):
    """Part of DescribeConfigs."""

    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: list[DescribeConfigsSynonym]
    config_type: int
    documentation: str | None

    def __init__(
        self, name: str = "", value: str | None = "", read_only: bool = False,
        config_source: int = -1, is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = ABSENT, config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = [] if synonyms is ABSENT else synonyms
        self.config_type = config_type
        self.documentation = documentation


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsResult(Structure):
    """Part of DescribeConfigs."""

    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: list[DescribeConfigsResourceResult]

    def __init__(
        self, error_code: int = 0, error_message: str | None = "", resource_type: int = 0,
        resource_name: str = "", configs: list[DescribeConfigsResourceResult] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = [] if configs is ABSENT else configs


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsResponse(Structure):
    """DescribeConfigs, versions 1-4."""

    throttle_time_ms: int
    results: list[DescribeConfigsResult]

    def __init__(
        self, throttle_time_ms: int = 0, results: list[DescribeConfigsResult] = ABSENT
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def read_describe_configs_resource(reader: Reader, version: int) -> DescribeConfigsResource:
    message = DescribeConfigsResource(
        reader.int8(),
        reader.string(),
        reader.optional_values(reader.string, 1),
    )
    reader.skip_tags()
    return message


def write_describe_configs_resource(
    writer: Writer, message: DescribeConfigsResource, version: int
) -> None:
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.optional_values(message.configuration_keys, writer.string)
    writer.no_tags()


def read_describe_configs_request(reader: Reader, version: int) -> DescribeConfigsRequest:
    message = DescribeConfigsRequest(
        reader.array(read_describe_configs_resource, version, 4),
        reader.boolean(),
        reader.boolean() if version >= 3 else False,
    )
    reader.skip_tags()
    return message


def write_describe_configs_request(
    writer: Writer, message: DescribeConfigsRequest, version: int
) -> None:
    writer.array(message.resources, write_describe_configs_resource, version)
    writer.boolean(message.include_synonyms)
    if version >= 3:
        writer.boolean(message.include_documentation)
    writer.no_tags()


def read_describe_configs_synonym(reader: Reader, version: int) -> DescribeConfigsSynonym:
    message = DescribeConfigsSynonym(reader.string(), reader.optional_string(), reader.int8())
    reader.skip_tags()
    return message


def write_describe_configs_synonym(
    writer: Writer, message: DescribeConfigsSynonym, version: int
) -> None:
    writer.string(message.name)
    writer.optional_string(message.value)
    writer.int8(message.source)
    writer.no_tags()


def read_describe_configs_resource_result(
    reader: Reader, version: int
) -> DescribeConfigsResourceResult:
    message = DescribeConfigsResourceResult(
        reader.string(),
        reader.optional_string(),
        reader.boolean(),
        reader.int8(),
        reader.boolean(),
        reader.array(read_describe_configs_synonym, version, 4),
        reader.int8() if version >= 3 else 0,
        reader.optional_string() if version >= 3 else "",
    )
    reader.skip_tags()
    return message


def write_describe_configs_resource_result(
    writer: Writer, message: DescribeConfigsResourceResult, version: int
) -> None:
    writer.string(message.name)
    writer.optional_string(message.value)
    writer.boolean(message.read_only)
    writer.int8(message.config_source)
    writer.boolean(message.is_sensitive)
    writer.array(message.synonyms, write_describe_configs_synonym, version)
    if version >= 3:
        writer.int8(message.config_type)
    if version >= 3:
        writer.optional_string(message.documentation)
    writer.no_tags()


def read_describe_configs_result(reader: Reader, version: int) -> DescribeConfigsResult:
    message = DescribeConfigsResult(
        reader.int16(),
        reader.optional_string(),
        reader.int8(),
        reader.string(),
        reader.array(read_describe_configs_resource_result, version, 9),
    )
    reader.skip_tags()
    return message


def write_describe_configs_result(
    writer: Writer, message: DescribeConfigsResult, version: int
) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.int8(message.resource_type)
    writer.string(message.resource_name)
    writer.array(message.configs, write_describe_configs_resource_result, version)
    writer.no_tags()


def read_describe_configs_response(reader: Reader, version: int) -> DescribeConfigsResponse:
    message = DescribeConfigsResponse(
        reader.int32(),
        reader.array(read_describe_configs_result, version, 7),
    )
    reader.skip_tags()
    return message


def write_describe_configs_response(
    writer: Writer, message: DescribeConfigsResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.results, write_describe_configs_result, version)
    writer.no_tags()


DESCRIBE_CONFIGS = Api(
    32,
    "DescribeConfigs",
    message_of_fields(
        "DescribeConfigsRequest", (1, 4), 4, read_describe_configs_request,
        write_describe_configs_request, bounded=True,
    ),
    message_of_fields(
        "DescribeConfigsResponse", (1, 4), 4, read_describe_configs_response,
        write_describe_configs_response,
    ),
)
