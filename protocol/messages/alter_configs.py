"""AlterConfigs: generated from alter_configs.schema by protocol/generate. Do not edit."""

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
pack_b = Struct(">b").pack
pack_bh = Struct(">bh").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
unpack_t = Struct(">?").unpack_from
unpack_tB = Struct(">?B").unpack_from
unpack_bB = Struct(">bB").unpack_from
unpack_bh = Struct(">bh").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterableConfig(Structure):
    """Part of AlterConfigs."""

    name: str
    value: str | None

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
    ) -> None:
        self.name = name
        self.value = value


@dataclass(slots=True, init=False, repr=False, eq=False)
class AlterConfigsResource(Structure):
    """Part of AlterConfigs."""

    resource_type: int
    resource_name: str
    configs: list[AlterableConfig]

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
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
        self,
        resources: list[AlterConfigsResource] = ABSENT,
        validate_only: bool = False,
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
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
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
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = [] if responses is ABSENT else responses


def decode_request_v0(view: memoryview, position: int) -> tuple[AlterConfigsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 7)
    resources: list[AlterConfigsResource] = []
    for _ in range(count):
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("AlterConfigsResource.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 4)
        elements += count
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        configs: list[AlterableConfig] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("AlterableConfig.name: negative length")
            end = position + size
            name = view[position:end].tobytes().decode()
            position = end
            (size,) = unpack_h(view, position)
            position += 2
            value: str | None = None
            if size >= 0:
                end = position + size
                value = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("AlterableConfig.value: negative length")
            configs.append(AlterableConfig(name, value))
        resources.append(AlterConfigsResource(resource_type, resource_name, configs))
    (validate_only,) = unpack_t(view, position)
    position += 1
    return AlterConfigsRequest(resources, validate_only), position


def encode_request_v0(message: AlterConfigsRequest, out: bytearray) -> Chunks:
    resources = message.resources
    out += pack_i(len(resources))
    for alter_configs_resource in resources:
        resource_name = alter_configs_resource.resource_name
        data = resource_name.encode()
        out += pack_bh(alter_configs_resource.resource_type, len(data))
        out += data
        configs = alter_configs_resource.configs
        out += pack_i(len(configs))
        for alterable_config in configs:
            name = alterable_config.name
            data = name.encode()
            out += pack_h(len(data))
            out += data
            value = alterable_config.value
            data = b"" if value is None else value.encode()
            out += pack_h(-1 if value is None else len(data))
            out += data
    out += pack_t(message.validate_only)
    return [out]


def decode_request_v2(view: memoryview, position: int) -> tuple[AlterConfigsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    resources: list[AlterConfigsResource] = []
    for _ in range(count - 1):
        resource_type, size = unpack_bB(view, position)
        position += 2
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        resource_name = view[position:end].tobytes().decode()
        position = end
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 3)
        elements += count - 1
        if elements > FEW_ELEMENTS:
            check_elements(elements)
        configs: list[AlterableConfig] = []
        for _ in range(count - 1):
            size = view[position]
            position += 1
            if not 0 < size < 0x80:
                size, position = long_size(view, position, size)
            end = position + size - 1
            name = view[position:end].tobytes().decode()
            position = end
            size = view[position]
            position += 1
            value: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                value = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                elements = add_tags(view, position, tags, elements)
                position = skip_tags(view, position, tags)
            configs.append(AlterableConfig(name, value))
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        resources.append(AlterConfigsResource(resource_type, resource_name, configs))
    validate_only, tags = unpack_tB(view, position)
    position += 2
    if tags:
        position = skip_tags(view, position, tags)
    return AlterConfigsRequest(resources, validate_only), position


def encode_request_v2(message: AlterConfigsRequest, out: bytearray) -> Chunks:
    resources = message.resources
    size = len(resources) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for alter_configs_resource in resources:
        resource_name = alter_configs_resource.resource_name
        out += pack_b(alter_configs_resource.resource_type)
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        configs = alter_configs_resource.configs
        size = len(configs) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for alterable_config in configs:
            name = alterable_config.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            value = alterable_config.value
            if value is None:
                out.append(0)
            else:
                data = value.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
            out.append(0)
        out.append(0)
    out += pack_tx(message.validate_only)
    return [out]


def decode_response_v0(view: memoryview, position: int) -> tuple[AlterConfigsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 7)
    responses: list[AlterConfigsResourceResponse] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("AlterConfigsResourceResponse.error_message: negative length")
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("AlterConfigsResourceResponse.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        responses.append(
            AlterConfigsResourceResponse(error_code, error_message, resource_type, resource_name)
        )
    return AlterConfigsResponse(throttle_time_ms, responses), position


def encode_response_v0(message: AlterConfigsResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_ii(message.throttle_time_ms, len(responses))
    for alter_configs_resource_response in responses:
        error_message = alter_configs_resource_response.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(
            alter_configs_resource_response.error_code,
            -1 if error_message is None else len(data),
        )
        out += data
        resource_name = alter_configs_resource_response.resource_name
        data = resource_name.encode()
        out += pack_bh(alter_configs_resource_response.resource_type, len(data))
        out += data
    return [out]


def decode_response_v2(view: memoryview, position: int) -> tuple[AlterConfigsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 6)
    responses: list[AlterConfigsResourceResponse] = []
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
        resource_type, size = unpack_bB(view, position)
        position += 2
        if not 0 < size < 0x80:
            size, position = long_size(view, position, size)
        end = position + size - 1
        resource_name = view[position:end].tobytes().decode()
        position = end
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        responses.append(
            AlterConfigsResourceResponse(error_code, error_message, resource_type, resource_name)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return AlterConfigsResponse(throttle_time_ms, responses), position


def encode_response_v2(message: AlterConfigsResponse, out: bytearray) -> Chunks:
    responses = message.responses
    out += pack_i(message.throttle_time_ms)
    size = len(responses) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for alter_configs_resource_response in responses:
        error_message = alter_configs_resource_response.error_message
        out += pack_h(alter_configs_resource_response.error_code)
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
        resource_name = alter_configs_resource_response.resource_name
        out += pack_b(alter_configs_resource_response.resource_type)
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


ALTER_CONFIGS = Api(
    33,
    "AlterConfigs",
    Message(
        "AlterConfigsRequest",
        (0, 2),
        2,
        {
            0: (decode_request_v0, encode_request_v0),
            2: (decode_request_v2, encode_request_v2),
        },
    ),
    Message(
        "AlterConfigsResponse",
        (0, 2),
        2,
        {
            0: (decode_response_v0, encode_response_v0),
            2: (decode_response_v2, encode_response_v2),
        },
    ),
)
