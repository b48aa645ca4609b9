"""DescribeConfigs: generated from describe_configs.schema by protocol/generate. Do not edit."""

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
pack_tt = Struct(">??").pack
pack_ttx = Struct(">??x").pack
pack_tbt = Struct(">?b?").pack
pack_tbti = Struct(">?b?i").pack
pack_b = Struct(">b").pack
pack_bh = Struct(">bh").pack
pack_bx = Struct(">bx").pack
pack_h = Struct(">h").pack
pack_hh = Struct(">hh").pack
pack_i = Struct(">i").pack
pack_ii = Struct(">ii").pack
unpack_t = Struct(">?").unpack_from
unpack_tt = Struct(">??").unpack_from
unpack_ttB = Struct(">??B").unpack_from
unpack_tbtB = Struct(">?b?B").unpack_from
unpack_tbti = Struct(">?b?i").unpack_from
unpack_b = Struct(">b").unpack_from
unpack_bB = Struct(">bB").unpack_from
unpack_bh = Struct(">bh").unpack_from
unpack_h = Struct(">h").unpack_from
unpack_hB = Struct(">hB").unpack_from
unpack_hh = Struct(">hh").unpack_from
unpack_i = Struct(">i").unpack_from
unpack_iB = Struct(">iB").unpack_from
unpack_ii = Struct(">ii").unpack_from


@dataclass(slots=True, init=False, repr=False, eq=False)
class DescribeConfigsResource(Structure):
    """Part of DescribeConfigs."""

    resource_type: int
    resource_name: str
    configuration_keys: list[str] | None

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
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
        self,
        resources: list[DescribeConfigsResource] = ABSENT,
        include_synonyms: bool = False,
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

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        source: int = 0,
    ) -> None:
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
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] = ABSENT,
        config_type: int = 0,
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
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] = ABSENT,
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
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] = ABSENT,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = [] if results is ABSENT else results


def decode_request_v1(view: memoryview, position: int) -> tuple[DescribeConfigsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 7)
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("DescribeConfigsResource.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        configuration_keys: list[str] | None = None
        if count != -1:
            if not 0 <= count < 0x80:
                check_count(view, position, count, 2)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            configuration_keys = []
            for _ in range(count):
                (size,) = unpack_h(view, position)
                position += 2
                if size < 0:
                    raise Malformed("configuration_keys[]: negative length")
                end = position + size
                configuration_keys_item = view[position:end].tobytes().decode()
                position = end
                configuration_keys.append(configuration_keys_item)
        resources.append(DescribeConfigsResource(resource_type, resource_name, configuration_keys))
    (include_synonyms,) = unpack_t(view, position)
    position += 1
    return DescribeConfigsRequest(resources, include_synonyms, False), position


def encode_request_v1(message: DescribeConfigsRequest, out: bytearray) -> Chunks:
    resources = message.resources
    out += pack_i(len(resources))
    for describe_configs_resource in resources:
        resource_name = describe_configs_resource.resource_name
        data = resource_name.encode()
        out += pack_bh(describe_configs_resource.resource_type, len(data))
        out += data
        configuration_keys = describe_configs_resource.configuration_keys
        out += pack_i(-1 if configuration_keys is None else len(configuration_keys))
        for configuration_keys_item in configuration_keys or ():
            data = configuration_keys_item.encode()
            out += pack_h(len(data))
            out += data
    out += pack_t(message.include_synonyms)
    return [out]


def decode_request_v3(view: memoryview, position: int) -> tuple[DescribeConfigsRequest, int]:
    elements = 0
    (count,) = unpack_i(view, position)
    position += 4
    if not 0 <= count < 0x80:
        check_count(view, position, count, 7)
    resources: list[DescribeConfigsResource] = []
    for _ in range(count):
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("DescribeConfigsResource.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        configuration_keys: list[str] | None = None
        if count != -1:
            if not 0 <= count < 0x80:
                check_count(view, position, count, 2)
            elements += count
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            configuration_keys = []
            for _ in range(count):
                (size,) = unpack_h(view, position)
                position += 2
                if size < 0:
                    raise Malformed("configuration_keys[]: negative length")
                end = position + size
                configuration_keys_item = view[position:end].tobytes().decode()
                position = end
                configuration_keys.append(configuration_keys_item)
        resources.append(DescribeConfigsResource(resource_type, resource_name, configuration_keys))
    include_synonyms, include_documentation = unpack_tt(view, position)
    position += 2
    return DescribeConfigsRequest(resources, include_synonyms, include_documentation), position


def encode_request_v3(message: DescribeConfigsRequest, out: bytearray) -> Chunks:
    resources = message.resources
    out += pack_i(len(resources))
    for describe_configs_resource in resources:
        resource_name = describe_configs_resource.resource_name
        data = resource_name.encode()
        out += pack_bh(describe_configs_resource.resource_type, len(data))
        out += data
        configuration_keys = describe_configs_resource.configuration_keys
        out += pack_i(-1 if configuration_keys is None else len(configuration_keys))
        for configuration_keys_item in configuration_keys or ():
            data = configuration_keys_item.encode()
            out += pack_h(len(data))
            out += data
    out += pack_tt(message.include_synonyms, message.include_documentation)
    return [out]


def decode_request_v4(view: memoryview, position: int) -> tuple[DescribeConfigsRequest, int]:
    elements = 0
    count = view[position]
    position += 1
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 4)
    resources: list[DescribeConfigsResource] = []
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
        configuration_keys: list[str] | None = None
        if count:
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 1)
            elements += count - 1
            if elements > FEW_ELEMENTS:
                check_elements(elements)
            configuration_keys = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                configuration_keys_item = view[position:end].tobytes().decode()
                position = end
                configuration_keys.append(configuration_keys_item)
        tags = view[position]
        position += 1
        if tags:
            elements = add_tags(view, position, tags, elements)
            position = skip_tags(view, position, tags)
        resources.append(DescribeConfigsResource(resource_type, resource_name, configuration_keys))
    include_synonyms, include_documentation, tags = unpack_ttB(view, position)
    position += 3
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeConfigsRequest(resources, include_synonyms, include_documentation), position


def encode_request_v4(message: DescribeConfigsRequest, out: bytearray) -> Chunks:
    resources = message.resources
    size = len(resources) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_configs_resource in resources:
        resource_name = describe_configs_resource.resource_name
        out += pack_b(describe_configs_resource.resource_type)
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        configuration_keys = describe_configs_resource.configuration_keys
        if configuration_keys is None:
            out.append(0)
        else:
            size = len(configuration_keys) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for configuration_keys_item in configuration_keys:
                data = configuration_keys_item.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
        out.append(0)
    out += pack_ttx(message.include_synonyms, message.include_documentation)
    return [out]


def decode_response_v1(view: memoryview, position: int) -> tuple[DescribeConfigsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 11)
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("DescribeConfigsResult.error_message: negative length")
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("DescribeConfigsResult.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 11)
        configs: list[DescribeConfigsResourceResult] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribeConfigsResourceResult.name: negative length")
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
                raise Malformed("DescribeConfigsResourceResult.value: negative length")
            read_only, config_source, is_sensitive, count = unpack_tbti(view, position)
            position += 7
            if not 0 <= count < 0x80:
                check_count(view, position, count, 5)
            synonyms: list[DescribeConfigsSynonym] = []
            for _ in range(count):
                (size,) = unpack_h(view, position)
                position += 2
                if size < 0:
                    raise Malformed("DescribeConfigsSynonym.name: negative length")
                end = position + size
                synonyms_name = view[position:end].tobytes().decode()
                position = end
                (size,) = unpack_h(view, position)
                position += 2
                synonyms_value: str | None = None
                if size >= 0:
                    end = position + size
                    synonyms_value = view[position:end].tobytes().decode()
                    position = end
                elif size != -1:
                    raise Malformed("DescribeConfigsSynonym.value: negative length")
                (source,) = unpack_b(view, position)
                position += 1
                synonyms.append(DescribeConfigsSynonym(synonyms_name, synonyms_value, source))
            configs.append(
                DescribeConfigsResourceResult(
                    name,
                    value,
                    read_only,
                    config_source,
                    is_sensitive,
                    synonyms,
                    0,
                    "",
                )
            )
        results.append(
            DescribeConfigsResult(error_code, error_message, resource_type, resource_name, configs)
        )
    return DescribeConfigsResponse(throttle_time_ms, results), position


def encode_response_v1(message: DescribeConfigsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for describe_configs_result in results:
        error_message = describe_configs_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(
            describe_configs_result.error_code,
            -1 if error_message is None else len(data),
        )
        out += data
        resource_name = describe_configs_result.resource_name
        data = resource_name.encode()
        out += pack_bh(describe_configs_result.resource_type, len(data))
        out += data
        configs = describe_configs_result.configs
        out += pack_i(len(configs))
        for describe_configs_resource_result in configs:
            name = describe_configs_resource_result.name
            data = name.encode()
            out += pack_h(len(data))
            out += data
            value = describe_configs_resource_result.value
            data = b"" if value is None else value.encode()
            out += pack_h(-1 if value is None else len(data))
            out += data
            synonyms = describe_configs_resource_result.synonyms
            out += pack_tbti(
                describe_configs_resource_result.read_only,
                describe_configs_resource_result.config_source,
                describe_configs_resource_result.is_sensitive,
                len(synonyms),
            )
            for describe_configs_synonym in synonyms:
                describe_configs_synonym_name = describe_configs_synonym.name
                data = describe_configs_synonym_name.encode()
                out += pack_h(len(data))
                out += data
                describe_configs_synonym_value = describe_configs_synonym.value
                data = b"" if describe_configs_synonym_value is None else describe_configs_synonym_value.encode()
                out += pack_h(-1 if describe_configs_synonym_value is None else len(data))
                out += data
                out += pack_b(describe_configs_synonym.source)
    return [out]


def decode_response_v3(view: memoryview, position: int) -> tuple[DescribeConfigsResponse, int]:
    throttle_time_ms, count = unpack_ii(view, position)
    position += 8
    if not 0 <= count < 0x80:
        check_count(view, position, count, 11)
    results: list[DescribeConfigsResult] = []
    for _ in range(count):
        error_code, size = unpack_hh(view, position)
        position += 4
        error_message: str | None = None
        if size >= 0:
            end = position + size
            error_message = view[position:end].tobytes().decode()
            position = end
        elif size != -1:
            raise Malformed("DescribeConfigsResult.error_message: negative length")
        resource_type, size = unpack_bh(view, position)
        position += 3
        if size < 0:
            raise Malformed("DescribeConfigsResult.resource_name: negative length")
        end = position + size
        resource_name = view[position:end].tobytes().decode()
        position = end
        (count,) = unpack_i(view, position)
        position += 4
        if not 0 <= count < 0x80:
            check_count(view, position, count, 14)
        configs: list[DescribeConfigsResourceResult] = []
        for _ in range(count):
            (size,) = unpack_h(view, position)
            position += 2
            if size < 0:
                raise Malformed("DescribeConfigsResourceResult.name: negative length")
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
                raise Malformed("DescribeConfigsResourceResult.value: negative length")
            read_only, config_source, is_sensitive, count = unpack_tbti(view, position)
            position += 7
            if not 0 <= count < 0x80:
                check_count(view, position, count, 5)
            synonyms: list[DescribeConfigsSynonym] = []
            for _ in range(count):
                (size,) = unpack_h(view, position)
                position += 2
                if size < 0:
                    raise Malformed("DescribeConfigsSynonym.name: negative length")
                end = position + size
                synonyms_name = view[position:end].tobytes().decode()
                position = end
                (size,) = unpack_h(view, position)
                position += 2
                synonyms_value: str | None = None
                if size >= 0:
                    end = position + size
                    synonyms_value = view[position:end].tobytes().decode()
                    position = end
                elif size != -1:
                    raise Malformed("DescribeConfigsSynonym.value: negative length")
                (source,) = unpack_b(view, position)
                position += 1
                synonyms.append(DescribeConfigsSynonym(synonyms_name, synonyms_value, source))
            config_type, size = unpack_bh(view, position)
            position += 3
            documentation: str | None = None
            if size >= 0:
                end = position + size
                documentation = view[position:end].tobytes().decode()
                position = end
            elif size != -1:
                raise Malformed("DescribeConfigsResourceResult.documentation: negative length")
            configs.append(
                DescribeConfigsResourceResult(
                    name,
                    value,
                    read_only,
                    config_source,
                    is_sensitive,
                    synonyms,
                    config_type,
                    documentation,
                )
            )
        results.append(
            DescribeConfigsResult(error_code, error_message, resource_type, resource_name, configs)
        )
    return DescribeConfigsResponse(throttle_time_ms, results), position


def encode_response_v3(message: DescribeConfigsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_ii(message.throttle_time_ms, len(results))
    for describe_configs_result in results:
        error_message = describe_configs_result.error_message
        data = b"" if error_message is None else error_message.encode()
        out += pack_hh(
            describe_configs_result.error_code,
            -1 if error_message is None else len(data),
        )
        out += data
        resource_name = describe_configs_result.resource_name
        data = resource_name.encode()
        out += pack_bh(describe_configs_result.resource_type, len(data))
        out += data
        configs = describe_configs_result.configs
        out += pack_i(len(configs))
        for describe_configs_resource_result in configs:
            name = describe_configs_resource_result.name
            data = name.encode()
            out += pack_h(len(data))
            out += data
            value = describe_configs_resource_result.value
            data = b"" if value is None else value.encode()
            out += pack_h(-1 if value is None else len(data))
            out += data
            synonyms = describe_configs_resource_result.synonyms
            out += pack_tbti(
                describe_configs_resource_result.read_only,
                describe_configs_resource_result.config_source,
                describe_configs_resource_result.is_sensitive,
                len(synonyms),
            )
            for describe_configs_synonym in synonyms:
                describe_configs_synonym_name = describe_configs_synonym.name
                data = describe_configs_synonym_name.encode()
                out += pack_h(len(data))
                out += data
                describe_configs_synonym_value = describe_configs_synonym.value
                data = b"" if describe_configs_synonym_value is None else describe_configs_synonym_value.encode()
                out += pack_h(-1 if describe_configs_synonym_value is None else len(data))
                out += data
                out += pack_b(describe_configs_synonym.source)
            documentation = describe_configs_resource_result.documentation
            data = b"" if documentation is None else documentation.encode()
            out += pack_bh(
                describe_configs_resource_result.config_type,
                -1 if documentation is None else len(data),
            )
            out += data
    return [out]


def decode_response_v4(view: memoryview, position: int) -> tuple[DescribeConfigsResponse, int]:
    throttle_time_ms, count = unpack_iB(view, position)
    position += 5
    if not 0 < count < 0x80:
        count, position = long_count(view, position, count, 7)
    results: list[DescribeConfigsResult] = []
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
        count = view[position]
        position += 1
        if not 0 < count < 0x80:
            count, position = long_count(view, position, count, 9)
        configs: list[DescribeConfigsResourceResult] = []
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
            read_only, config_source, is_sensitive, count = unpack_tbtB(view, position)
            position += 4
            if not 0 < count < 0x80:
                count, position = long_count(view, position, count, 4)
            synonyms: list[DescribeConfigsSynonym] = []
            for _ in range(count - 1):
                size = view[position]
                position += 1
                if not 0 < size < 0x80:
                    size, position = long_size(view, position, size)
                end = position + size - 1
                synonyms_name = view[position:end].tobytes().decode()
                position = end
                size = view[position]
                position += 1
                synonyms_value: str | None = None
                if size:
                    if size >= 0x80:
                        size, position = varint_tail(view, position, size)
                    end = position + size - 1
                    synonyms_value = view[position:end].tobytes().decode()
                    position = end
                source, tags = unpack_bB(view, position)
                position += 2
                if tags:
                    position = skip_tags(view, position, tags)
                synonyms.append(DescribeConfigsSynonym(synonyms_name, synonyms_value, source))
            config_type, size = unpack_bB(view, position)
            position += 2
            documentation: str | None = None
            if size:
                if size >= 0x80:
                    size, position = varint_tail(view, position, size)
                end = position + size - 1
                documentation = view[position:end].tobytes().decode()
                position = end
            tags = view[position]
            position += 1
            if tags:
                position = skip_tags(view, position, tags)
            configs.append(
                DescribeConfigsResourceResult(
                    name,
                    value,
                    read_only,
                    config_source,
                    is_sensitive,
                    synonyms,
                    config_type,
                    documentation,
                )
            )
        tags = view[position]
        position += 1
        if tags:
            position = skip_tags(view, position, tags)
        results.append(
            DescribeConfigsResult(error_code, error_message, resource_type, resource_name, configs)
        )
    tags = view[position]
    position += 1
    if tags:
        position = skip_tags(view, position, tags)
    return DescribeConfigsResponse(throttle_time_ms, results), position


def encode_response_v4(message: DescribeConfigsResponse, out: bytearray) -> Chunks:
    results = message.results
    out += pack_i(message.throttle_time_ms)
    size = len(results) + 1
    if size < 0x80:
        out.append(size)
    else:
        put_varint(out, size)
    for describe_configs_result in results:
        error_message = describe_configs_result.error_message
        out += pack_h(describe_configs_result.error_code)
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
        resource_name = describe_configs_result.resource_name
        out += pack_b(describe_configs_result.resource_type)
        data = resource_name.encode()
        size = len(data) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        out += data
        configs = describe_configs_result.configs
        size = len(configs) + 1
        if size < 0x80:
            out.append(size)
        else:
            put_varint(out, size)
        for describe_configs_resource_result in configs:
            name = describe_configs_resource_result.name
            data = name.encode()
            size = len(data) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            out += data
            value = describe_configs_resource_result.value
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
            synonyms = describe_configs_resource_result.synonyms
            out += pack_tbt(
                describe_configs_resource_result.read_only,
                describe_configs_resource_result.config_source,
                describe_configs_resource_result.is_sensitive,
            )
            size = len(synonyms) + 1
            if size < 0x80:
                out.append(size)
            else:
                put_varint(out, size)
            for describe_configs_synonym in synonyms:
                describe_configs_synonym_name = describe_configs_synonym.name
                data = describe_configs_synonym_name.encode()
                size = len(data) + 1
                if size < 0x80:
                    out.append(size)
                else:
                    put_varint(out, size)
                out += data
                describe_configs_synonym_value = describe_configs_synonym.value
                if describe_configs_synonym_value is None:
                    out.append(0)
                else:
                    data = describe_configs_synonym_value.encode()
                    size = len(data) + 1
                    if size < 0x80:
                        out.append(size)
                    else:
                        put_varint(out, size)
                    out += data
                out += pack_bx(describe_configs_synonym.source)
            documentation = describe_configs_resource_result.documentation
            out += pack_b(describe_configs_resource_result.config_type)
            if documentation is None:
                out.append(0)
            else:
                data = documentation.encode()
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


DESCRIBE_CONFIGS = Api(
    32,
    "DescribeConfigs",
    Message(
        "DescribeConfigsRequest",
        (1, 4),
        4,
        {
            1: (decode_request_v1, encode_request_v1),
            3: (decode_request_v3, encode_request_v3),
            4: (decode_request_v4, encode_request_v4),
        },
    ),
    Message(
        "DescribeConfigsResponse",
        (1, 4),
        4,
        {
            1: (decode_response_v1, encode_response_v1),
            3: (decode_response_v3, encode_response_v3),
            4: (decode_response_v4, encode_response_v4),
        },
    ),
)
