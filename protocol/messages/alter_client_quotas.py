"""AlterClientQuotas: generated from alter_client_quotas.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.api import Api
from barnabas.protocol.field_codecs import message_of_fields
from barnabas.protocol.reader import Reader
from barnabas.protocol.wire import ABSENT, Structure, skip_tags
from barnabas.protocol.writer import Writer


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntityData(Structure):
    """Part of AlterClientQuotas."""

    entity_type: str
    entity_name: str | None

    def __init__(self, entity_type: str = "", entity_name: str | None = "") -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class OpData(Structure):
    """Part of AlterClientQuotas."""

    key: str
    value: float
    remove: bool

    def __init__(self, key: str = "", value: float = 0.0, remove: bool = False) -> None:
        self.key = key
        self.value = value
        self.remove = remove


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntryData(Structure):
    """Part of AlterClientQuotas."""

    entity: list[EntityData]
    ops: list[OpData]

    def __init__(self, entity: list[EntityData] = ABSENT, ops: list[OpData] = ABSENT) -> None:
        self.entity = [] if entity is ABSENT else entity
        self.ops = [] if ops is ABSENT else ops


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterClientQuotasRequest(Structure):
    """AlterClientQuotas, versions 0-1."""

    entries: list[EntryData]
    validate_only: bool

    def __init__(self, entries: list[EntryData] = ABSENT, validate_only: bool = False) -> None:
        self.entries = [] if entries is ABSENT else entries
        self.validate_only = validate_only


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntryDataResult(Structure):
    """Part of AlterClientQuotas."""

    error_code: int
    error_message: str | None
    entity: list[EntityData]

    def __init__(
        self, error_code: int = 0, error_message: str | None = "", entity: list[EntityData] = ABSENT
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is ABSENT else entity


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterClientQuotasResponse(Structure):
    """AlterClientQuotas, versions 0-1."""

    throttle_time_ms: int
    entries: list[EntryDataResult]

    def __init__(self, throttle_time_ms: int = 0, entries: list[EntryDataResult] = ABSENT) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is ABSENT else entries


def read_entity_data(reader: Reader, version: int) -> EntityData:
    message = EntityData(reader.string(), reader.optional_string())
    reader.skip_tags()
    return message


def write_entity_data(writer: Writer, message: EntityData, version: int) -> None:
    writer.string(message.entity_type)
    writer.optional_string(message.entity_name)
    writer.no_tags()


def read_op_data(reader: Reader, version: int) -> OpData:
    message = OpData(reader.string(), reader.float64(), reader.boolean())
    reader.skip_tags()
    return message


def write_op_data(writer: Writer, message: OpData, version: int) -> None:
    writer.string(message.key)
    writer.float64(message.value)
    writer.boolean(message.remove)
    writer.no_tags()


def read_entry_data(reader: Reader, version: int) -> EntryData:
    message = EntryData(
        reader.array(read_entity_data, version, 3),
        reader.array(read_op_data, version, 11),
    )
    reader.skip_tags()
    return message


def write_entry_data(writer: Writer, message: EntryData, version: int) -> None:
    writer.array(message.entity, write_entity_data, version)
    writer.array(message.ops, write_op_data, version)
    writer.no_tags()


def read_alter_client_quotas_request(reader: Reader, version: int) -> AlterClientQuotasRequest:
    message = AlterClientQuotasRequest(reader.array(read_entry_data, version, 3), reader.boolean())
    reader.skip_tags()
    return message


def write_alter_client_quotas_request(
    writer: Writer, message: AlterClientQuotasRequest, version: int
) -> None:
    writer.array(message.entries, write_entry_data, version)
    writer.boolean(message.validate_only)
    writer.no_tags()


def read_entry_data_result(reader: Reader, version: int) -> EntryDataResult:
    message = EntryDataResult(
        reader.int16(),
        reader.optional_string(),
        reader.array(read_entity_data, version, 3),
    )
    reader.skip_tags()
    return message


def write_entry_data_result(writer: Writer, message: EntryDataResult, version: int) -> None:
    writer.int16(message.error_code)
    writer.optional_string(message.error_message)
    writer.array(message.entity, write_entity_data, version)
    writer.no_tags()


def read_alter_client_quotas_response(reader: Reader, version: int) -> AlterClientQuotasResponse:
    message = AlterClientQuotasResponse(
        reader.int32(),
        reader.array(read_entry_data_result, version, 5),
    )
    reader.skip_tags()
    return message


def write_alter_client_quotas_response(
    writer: Writer, message: AlterClientQuotasResponse, version: int
) -> None:
    writer.int32(message.throttle_time_ms)
    writer.array(message.entries, write_entry_data_result, version)
    writer.no_tags()


ALTER_CLIENT_QUOTAS = Api(
    49,
    "AlterClientQuotas",
    message_of_fields(
        "AlterClientQuotasRequest", (0, 1), 1, read_alter_client_quotas_request,
        write_alter_client_quotas_request, bounded=True,
    ),
    message_of_fields(
        "AlterClientQuotasResponse", (0, 1), 1, read_alter_client_quotas_response,
        write_alter_client_quotas_response,
    ),
)
