"""DescribeClientQuotas: generated from describe_client_quotas.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class ComponentData(Structure):
    """Part of DescribeClientQuotas."""

    entity_type: str
    match_type: int
    match: str | None

    def __init__(self, entity_type: str = "", match_type: int = 0, match: str | None = "") -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClientQuotasRequest(Structure):
    """DescribeClientQuotas, versions 0-1."""

    components: list[ComponentData]
    strict: bool

    def __init__(self, components: list[ComponentData] = ABSENT, strict: bool = False) -> None:
        self.components = [] if components is ABSENT else components
        self.strict = strict


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntityData(Structure):
    """Part of DescribeClientQuotas."""

    entity_type: str
    entity_name: str | None

    def __init__(self, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class ValueData(Structure):
    """Part of DescribeClientQuotas."""

    key: str
    value: float

    def __init__(self, key: str = "", value: float = 0.0) -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntryData(Structure):
    """Part of DescribeClientQuotas."""

    entity: list[EntityData]
    values: list[ValueData]

    def __init__(self, entity: list[EntityData] = ABSENT, values: list[ValueData] = ABSENT) -> None:
        self.entity = [] if entity is ABSENT else entity
        self.values = [] if values is ABSENT else values


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClientQuotasResponse(Structure):
    """DescribeClientQuotas, versions 0-1."""

    throttle_time_ms: int
    error_code: int
    error_message: str | None
    entries: list[EntryData] | None

    def __init__(
        self, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "",
        entries: list[EntryData] | None = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is ABSENT else entries


def read_component_data(reader: Reader, version: int) -> ComponentData:
    message = ComponentData(reader.string(), reader.int8(), reader.optional_string())
    reader.skip_tags()
    return message


def write_component_data(writer: Writer, message: ComponentData, version: int) -> None:
    writer.string(message.entity_type)
    writer.int8(message.match_type)
    writer.optional_string(message.match)
    writer.no_tags()


def read_describe_client_quotas_request(
    reader: Reader, version: int
) -> DescribeClientQuotasRequest:
    message = DescribeClientQuotasRequest(
        reader.array(read_component_data, version, 4),
        reader.boolean(),
    )
    reader.skip_tags()
    return message


def write_describe_client_quotas_request(
    writer: Writer, message: DescribeClientQuotasRequest, version: int
) -> None:
    writer.array(message.components, write_component_data, version)
    writer.boolean(message.strict)
    writer.no_tags()


def read_entity_data(reader: Reader, version: int) -> EntityData:
    message = EntityData(reader.string(), reader.optional_string())
    reader.skip_tags()
    return message


def write_entity_data(writer: Writer, message: EntityData, version: int) -> None:
    writer.string(message.entity_type)
    writer.optional_string(message.entity_name)
    writer.no_tags()


def read_value_data(reader: Reader, version: int) -> ValueData:
    message = ValueData(reader.string(), reader.float64())
    reader.skip_tags()
    return message


def write_value_data(writer: Writer, message: ValueData, version: int) -> None:
    writer.string(message.key)
    writer.float64(message.value)
    writer.no_tags()


def read_entry_data(reader: Reader, version: int) -> EntryData:
    message = EntryData(
        reader.array(read_entity_data, version, 3),
        reader.array(read_value_data, version, 10),
    )
    reader.skip_tags()
    return message


def write_entry_data(writer: Writer, message: EntryData, version: int) -> None:
    writer.array(message.entity, write_entity_data, version)
    writer.array(message.values, write_value_data, version)
    writer.no_tags()


def read_describe_client_quotas_response(
    reader: Reader, version: int
) -> DescribeClientQuotasResponse:
    message = DescribeClientQuotasResponse(
        reader.int32(),
        reader.int16(),
        reader.optional_string(),
        reader.optional_array(read_entry_data, version, 3),
    )
    reader.skip_tags()
    return message


def write_describe_client_quotas_response(
    writer: Writer, message: DescribeClientQuotasResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.optional_array(message.entries, write_entry_data, version)
    writer.no_tags()


DESCRIBE_CLIENT_QUOTAS = Api(
    48,
    "DescribeClientQuotas",
    message_of_fields(
        "DescribeClientQuotasRequest", (0, 1), 1, read_describe_client_quotas_request,
        write_describe_client_quotas_request, bounded=True,
    ),
    message_of_fields(
        "DescribeClientQuotasResponse", (0, 1), 1, read_describe_client_quotas_response,
        write_describe_client_quotas_response,
    ),
)
