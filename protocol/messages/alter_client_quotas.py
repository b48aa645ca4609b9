"""AlterClientQuotas: generated from alter_client_quotas.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    FEW_ELEMENTS,
    Chunks,
    Structure,
    add_tags,
    check_count,
    check_elements,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_t = Struct(">?").pack
pack_tx = Struct(">?x").pack
pack_dt = Struct(">d?").pack
pack_dtx = Struct(">d?x").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
unpack_t = Struct(">?").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_dt = Struct(">d?").unpack_from
unpack_dtB = Struct(">d?B").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntityData(Structure):
    """Part of AlterClientQuotas."""

    entity_type: str
    entity_name: str | None

    def __init__(
        self,
        entity_type: str = "",
        entity_name: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name


@dataclass(slots=True, init=False, repr=False, eq=False)
class OpData(Structure):
    """Part of AlterClientQuotas."""

    key: str
    value: float
    remove: bool

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntryData(Structure):
    """Part of AlterClientQuotas."""

    entity: list[EntityData]
    ops: list[OpData]

    def __init__(
        self,
        entity: list[EntityData] = ABSENT,
        ops: list[OpData] = ABSENT,
    ) -> None:
        self.entity = [] if entity is ABSENT else entity
        self.ops = [] if ops is ABSENT else ops


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterClientQuotasRequest(Structure):
    """AlterClientQuotas, versions 0-1."""

    entries: list[EntryData]
    validate_only: bool

    def __init__(
        self,
        entries: list[EntryData] = ABSENT,
        validate_only: bool = False,
    ) -> None:
        self.entries = [] if entries is ABSENT else entries
        self.validate_only = validate_only


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntryDataResult(Structure):
    """Part of AlterClientQuotas."""

    error_code: int
    error_message: str | None
    entity: list[EntityData]

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        entity: list[EntityData] = ABSENT,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = [] if entity is ABSENT else entity


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterClientQuotasResponse(Structure):
    """AlterClientQuotas, versions 0-1."""

    throttle_time_ms: int
    entries: list[EntryDataResult]

    def __init__(
        self,
        throttle_time_ms: int = 0,
        entries: list[EntryDataResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = [] if entries is ABSENT else entries


def decode_request_v0(view: memoryview, position: int) -> tuple[AlterClientQuotasRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    entries: list[EntryData] = []
    for _ in range(count):
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        entity: list[EntityData] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("EntityData.entity_type: negative length")
            end = position + size
            entity_type = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            entity_name: str | None = None
            if size >= 0:
                end = position + size
                entity_name = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("EntityData.entity_name: negative length")
            entity.append(EntityData(entity_type, entity_name))
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 11)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        ops: list[OpData] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("OpData.key: negative length")
            end = position + size
            key = view[position:end].tobytes().decode()
            position = end
            value, remove = unpack_dt(view, position)
            position += 9
            ops.append(OpData(key, value, remove))
        entries.append(EntryData(entity, ops))
    (validate_only,) = unpack_t(view, position)
    position += 1
    return AlterClientQuotasRequest(entries, validate_only), position


def encode_request_v0(message: AlterClientQuotasRequest, out: bytearray) -> Chunks:
    entries = message.entries
    out += pack_i(len(entries))
    for entry_data in entries:
        entity = entry_data.entity
        out += pack_i(len(entity))
        for entity_data in entity:
            entity_type = entity_data.entity_type
            data = entity_type.encode()
            out += pack_h(len(data))
            out += data
            entity_name = entity_data.entity_name
            data = b"" if entity_name is None else entity_name.encode()
            out += pack_h(-1 if entity_name is None else len(data))
            out += data
        ops = entry_data.ops
        out += pack_i(len(ops))
        for op_data in ops:
            key = op_data.key
            data = key.encode()
            out += pack_h(len(data))
            out += data
            out += pack_dt(op_data.value, op_data.remove)
    out += pack_t(message.validate_only)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[AlterClientQuotasRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 3)
    entries: list[EntryData] = []
    for _ in range(count - 1):
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        entity: list[EntityData] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            entity_type = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            entity_name: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                entity_name = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            entity.append(EntityData(entity_type, entity_name))
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 11)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        ops: list[OpData] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            key = view[position:end].tobytes().decode()
            position = end
            value, remove, tags = unpack_dtB(view, position)
            position += 10
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            ops.append(OpData(key, value, remove))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        entries.append(EntryData(entity, ops))
    validate_only, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return AlterClientQuotasRequest(entries, validate_only), position


def encode_request_v1(message: AlterClientQuotasRequest, out: bytearray) -> Chunks:
    entries = message.entries
    size = len(entries) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for entry_data in entries:
        entity = entry_data.entity
        size = len(entity) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for entity_data in entity:
            entity_type = entity_data.entity_type
            data = entity_type.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            entity_name = entity_data.entity_name
            if entity_name is None:
                out.append(0)
            else:
                data = entity_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        ops = entry_data.ops
        size = len(ops) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for op_data in ops:
            key = op_data.key
            data = key.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            out += pack_dtx(op_data.value, op_data.remove)
        out.append(0)
    out += pack_tx(message.validate_only)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AlterClientQuotasResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 8)
    entries: list[EntryDataResult] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("EntryDataResult.error_message: negative length")
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        entity: list[EntityData] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("EntityData.entity_type: negative length")
            end = position + size
            entity_type = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            entity_name: str | None = None
            if size >= 0:
                end = position + size
                entity_name = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("EntityData.entity_name: negative length")
            entity.append(EntityData(entity_type, entity_name))
        entries.append(EntryDataResult(error_code, error_message, entity))
    return AlterClientQuotasResponse(throttle_time_ms, entries), position


def encode_response_v0(message: AlterClientQuotasResponse, out: bytearray) -> Chunks:
    entries = message.entries
    out += pack_ii(message.throttle_time_ms, len(entries))
    for entry_data_result in entries:
        error_message = entry_data_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(entry_data_result.error_code, -1 if error_message is None else len(data))
        out += data
        entity = entry_data_result.entity
        out += pack_i(len(entity))
        for entity_data in entity:
            entity_type = entity_data.entity_type
            data = entity_type.encode()
            out += pack_h(len(data))
            out += data
            entity_name = entity_data.entity_name
            data = b"" if entity_name is None else entity_name.encode()
            out += pack_h(-1 if entity_name is None else len(data))
            out += data
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[AlterClientQuotasResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 5)
    entries: list[EntryDataResult] = []
    for _ in range(count - 1):
        error_code, size = unpack_hB(view, position)
        position += 3
        error_message: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            error_message = view[position:end].tobytes().decode()
            position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        entity: list[EntityData] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            entity_type = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            entity_name: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                entity_name = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            entity.append(EntityData(entity_type, entity_name))
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        entries.append(EntryDataResult(error_code, error_message, entity))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterClientQuotasResponse(throttle_time_ms, entries), position


def encode_response_v1(message: AlterClientQuotasResponse, out: bytearray) -> Chunks:
    entries = message.entries
    out += pack_i(message.throttle_time_ms)
    size = len(entries) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for entry_data_result in entries:
        error_message = entry_data_result.error_message
        out += pack_h(entry_data_result.error_code)
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
        entity = entry_data_result.entity
        size = len(entity) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for entity_data in entity:
            entity_type = entity_data.entity_type
            data = entity_type.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            entity_name = entity_data.entity_name
            if entity_name is None:
                out.append(0)
            else:
                data = entity_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        out.append(0)
    out.append(0)
    return [out]


ALTER_CLIENT_QUOTAS = Api(
    49,
    "AlterClientQuotas",
    Message(
        "AlterClientQuotasRequest",
        (0, 1),
        1,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "AlterClientQuotasResponse",
        (0, 1),
        1,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
