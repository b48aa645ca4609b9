"""DescribeClientQuotas: generated from describe_client_quotas.schema by protocol/generate. Do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from barnabas.protocol.api import Api, Message
from barnabas.protocol.errors import Malformed
from barnabas.protocol.wire import (
    ABSENT,
    Chunks,
    Structure,
    add_tags,
    check_count,
    long_count,
    long_size,
    put_varint,
    skip_tags,
    varint_tail,
)

pack_t = Struct(">?").pack
pack_tx = Struct(">?x").pack
pack_b = Struct(">b").pack
pack_bh = Struct(">bh").pack
pack_d = Struct(">d").pack
pack_dx = Struct(">dx").pack
pack_h = Struct(">h").pack
pack_i = Struct(">i").pack
pack_ih = Struct(">ih").pack
pack_ihh = Struct(">ihh").pack
unpack_t = Struct(">?").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_bB = Struct(">bB").unpack_from
unpack_bh = Struct(">bh").unpack_from
unpack_d = Struct(">d").unpack_from
unpack_dB = Struct(">dB").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_ihB = Struct(">ihB").unpack_from
unpack_ihh = Struct(">ihh").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class ComponentData(Structure):
    """Part of DescribeClientQuotas."""

    entity_type: str
    match_type: int
    match: str | None

    def __init__(
        self,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = "",
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeClientQuotasRequest(Structure):
    """DescribeClientQuotas, versions 0-1."""

    components: list[ComponentData]
    strict: bool

    def __init__(
        self,
        components: list[ComponentData] = ABSENT,
        strict: bool = False,
    ) -> None:
        self.components = [] if components is ABSENT else components
        self.strict = strict


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntityData(Structure):
    """Part of DescribeClientQuotas."""

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
class ValueData(Structure):
    """Part of DescribeClientQuotas."""

    key: str
    value: float

    def __init__(
        self,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class EntryData(Structure):
    """Part of DescribeClientQuotas."""

    entity: list[EntityData]
    values: list[ValueData]

    def __init__(
        self,
        entity: list[EntityData] = ABSENT,
        values: list[ValueData] = ABSENT,
    ) -> None:
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
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        entries: list[EntryData] | None = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = [] if entries is ABSENT else entries


def decode_request_v0(view: memoryview, position: int) -> tuple[DescribeClientQuotasRequest, int]:
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 5)
    components: list[ComponentData] = []
    for _ in range(count):
        (size,) = unpack_h(view, position)
        position += 2
        if size < 0:
            raise Malformed("ComponentData.entity_type: negative length")
        end = position + size
        entity_type = view[position:end].tobytes().decode()
        position = end
        match_type, size = unpack_bh(view, position)
        position += 3
        match: str | None = None
        if size >= 0:
            end = position + size
            match = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("ComponentData.match: negative length")
        components.append(ComponentData(entity_type, match_type, match))
    (strict,) = unpack_t(view, position)
    position += 1
    return DescribeClientQuotasRequest(components, strict), position


def encode_request_v0(message: DescribeClientQuotasRequest, out: bytearray) -> Chunks:
    components = message.components
    out += pack_i(len(components))
    for component_data in components:
        entity_type = component_data.entity_type
        data = entity_type.encode()
        out += pack_h(len(data))
        out += data
        match = component_data.match
        data = b"" if match is None else match.encode()
        out += pack_bh(component_data.match_type, -1 if match is None else len(data))
        out += data
    out += pack_t(message.strict)
    return [out]


def decode_request_v1(view: memoryview, position: int) -> tuple[DescribeClientQuotasRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    components: list[ComponentData] = []
    for _ in range(count - 1):
        size = view[position]
        position += 1
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        entity_type = view[position:end].tobytes().decode()
        position = end
        match_type, size = unpack_bB(view, position)
        position += 2
        match: str | None = None
        if size:
            if size >= 0x80:
                size, position = varint_tail(view, position, size)
            end = position + size - 1
            match = view[position:end].tobytes().decode()
            position = end
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        components.append(ComponentData(entity_type, match_type, match))
    strict, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeClientQuotasRequest(components, strict), position


def encode_request_v1(message: DescribeClientQuotasRequest, out: bytearray) -> Chunks:
    components = message.components
    size = len(components) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for component_data in components:
        entity_type = component_data.entity_type
        data = entity_type.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        match = component_data.match
        out += pack_b(component_data.match_type)
        if match is None:
            out.append(0)
        else:
            data = match.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
        out.append(0)
    out += pack_tx(message.strict)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[DescribeClientQuotasResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihh(view, position)
    position += 8
    error_message: str | None = None
    if size >= 0:
        end = position + size
        error_message = view[position:end].tobytes().decode()
        position = end
    elif size != -1:
        raise Malformed("DescribeClientQuotasResponse.error_message: negative length")
    (count,) = unpack_i(view, position)
    position += 4
    entries: list[EntryData] | None = None
    if count != -1:
        if not 0 <= count < 0x80:
            check_count(view, position, count, 8)
        entries = []
        for _ in range(count):
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
            (count,) = unpack_i(view, position)
            position += 4
            if not 0 <= count < 0x80:
                check_count(view, position, count, 10)
            values: list[ValueData] = []
            for _ in range(count):
                (size,) = unpack_h(view, position)
                position += 2
                if size < 0:
                    raise Malformed("ValueData.key: negative length")
                end = position + size
                key = view[position:end].tobytes().decode()
                position = end
                (value,) = unpack_d(view, position)
                position += 8
                values.append(ValueData(key, value))
            entries.append(EntryData(entity, values))
    message = DescribeClientQuotasResponse(throttle_time_ms, error_code, error_message, entries)
    return message, position


def encode_response_v0(message: DescribeClientQuotasResponse, out: bytearray) -> Chunks:
    error_message = message.error_message
    data = b"" if error_message is None else error_message.encode()
    out += pack_ihh(
        message.throttle_time_ms,
        message.error_code,
        -1 if error_message is None else len(data),
    )
    out += data
    entries = message.entries
    out += pack_i(-1 if entries is None else len(entries))
    for entry_data in entries or ():
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
        values = entry_data.values
        out += pack_i(len(values))
        for value_data in values:
            key = value_data.key
            data = key.encode()
            out += pack_h(len(data))
            out += data
            out += pack_d(value_data.value)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeClientQuotasResponse, int]:
    throttle_time_ms, error_code, size = unpack_ihB(view, position)
    position += 7
    error_message: str | None = None
    if size:
        if size >= 0x80:
            size, position = varint_tail(view, position, size)
        end = position + size - 1
        error_message = view[position:end].tobytes().decode()
        position = end
    count = view[position]
    position += 1
    entries: list[EntryData] | None = None
    if count:
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        entries = []
        for _ in range(count - 1):
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
            count = view[position]
            position += 1
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 10)
            values: list[ValueData] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                key = view[position:end].tobytes().decode()
                position = end
                value, tags = unpack_dB(view, position)
                position += 9
                if tags:
                    position = skip_tags(view, position, tags)
                values.append(ValueData(key, value))
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            entries.append(EntryData(entity, values))
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    message = DescribeClientQuotasResponse(throttle_time_ms, error_code, error_message, entries)
    return message, position


def encode_response_v1(message: DescribeClientQuotasResponse, out: bytearray) -> Chunks:
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
    entries = message.entries
    if entries is None:
        out.append(0)
    else:
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
            values = entry_data.values
            size = len(values) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for value_data in values:
                key = value_data.key
                data = key.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                out += pack_dx(value_data.value)
            out.append(0)
    out.append(0)
    return [out]


DESCRIBE_CLIENT_QUOTAS = Api(
    48,
    "DescribeClientQuotas",
    Message(
        "DescribeClientQuotasRequest",
        (0, 1),
        1,
        {
            0: (decode_request_v0, encode_request_v0),
            1: (decode_request_v1, encode_request_v1),
        },
    ),
    Message(
        "DescribeClientQuotasResponse",
        (0, 1),
        1,
        {
            0: (decode_response_v0, encode_response_v0),
            1: (decode_response_v1, encode_response_v1),
        },
    ),
)
