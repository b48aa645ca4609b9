"""DescribeConfigs 1-4, AlterConfigs 0-2, IncrementalAlterConfigs 0-1, for topics and brokers.

Version notes. DescribeConfigs: v1 reports sources and synonyms, v3 types and documentation; an
empty list of keys means all, like null. AlterConfigs replaces everything that was set, the
incremental one changes key by key. A broker's name is its node id, or "" for what holds on all.
Stricter than Kafka: a broker setting that nobody knows is refused instead of stored unused.
Knowingly absent: loggers, client metrics and groups as resources (there is nothing to set yet).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TypeAlias

from broker.catalogue import CLUSTER_ENTITY, Catalogue, Configs, ConfigsChange
from broker.config import BROKER_CONFIGS
from broker.config_types import (
    ConfigEntry,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    format_value,
)
from broker.dispatch import RequestContext, serves
from broker.handlers.metadata import missing_topic_error
from broker.topic_configs import TOPIC_CONFIGS, describe_topic, effective_value
from broker.topic_names import name_problem
from protocol.errors import ErrorCode, KafkaError
from protocol.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from protocol.messages.alter_configs import (
    AlterConfigsResource as LegacyResource,
)
from protocol.messages.alter_configs import (
    AlterConfigsResourceResponse as LegacyResult,
)
from protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Resource: TypeAlias = AlterConfigsResource | LegacyResource

TOPIC = 2
BROKER = 4


class ConfigOperation(IntEnum):
    """What IncrementalAlterConfigs does with one key (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


# -------------------------------------------------------------------------------- DescribeConfigs


@serves(DESCRIBE_CONFIGS, versions=(1, 4))
def describe_configs(
    context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """List the settings of topics and brokers with where each value comes from."""
    results = []
    for resource in request.resources:
        result = DescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            wanted = set(resource.configuration_keys or ())
            result.configs = [
                _described(entry, request)
                for entry in _entries(context, resource)
                if not wanted or entry.name in wanted
            ]
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _entries(context: RequestContext, resource: DescribeConfigsResource) -> Iterable[ConfigEntry]:
    """Return all settings of a resource; raises KafkaError."""
    catalogue = context.broker.catalogue
    name = resource.resource_name
    if resource.resource_type == TOPIC:
        topic = catalogue.topic(name)
        if topic is None:
            raise KafkaError(missing_topic_error(name), name_problem(name))
        return describe_topic(topic.configs, catalogue.broker_config)
    if resource.resource_type == BROKER:
        if name == CLUSTER_ENTITY:
            return _cluster_wide_entries(catalogue.broker_overrides.get(CLUSTER_ENTITY, {}))
        _check_broker_name(name, context.broker.node_id)
        return catalogue.broker_config.describe()
    raise _unknown_resource_type(resource.resource_type)


def _cluster_wide_entries(overrides: Configs) -> Iterable[ConfigEntry]:
    """Return what clients set for all brokers; defaults and files are one broker's own."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    for name, text in overrides.items():
        key = BROKER_CONFIGS[name]
        synonyms = (ConfigSynonym(name, text, source),)
        yield ConfigEntry(name, text, key.type, source, False, synonyms, key.doc)


def _described(
    entry: ConfigEntry, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        synonyms=[DescribeConfigsSynonym(*synonym) for synonym in synonyms],
        config_type=entry.type,
        documentation=entry.documentation if request.include_documentation else None,
    )


def _check_broker_name(name: str, node_id: int) -> None:
    """Raise KafkaError unless ``name`` is this broker's node id."""
    if not name.lstrip("-").isdecimal():
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )


def _unknown_resource_type(resource_type: int) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


# ----------------------------------------------------------------------------------- altering both


@serves(INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change settings key by key (KIP-339); each resource changes as a whole or not at all."""
    given = Counter(_identity(resource) for resource in request.resources)
    responses = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            _check_resource(context, resource, given)
            change = _incremental_change(context.broker.catalogue, resource)
            await _alter(context, resource, change, validate_only=request.validate_only)
        except KafkaError as error:
            response.error_code = error.code
            response.error_message = error.message
        responses.append(response)
    return IncrementalAlterConfigsResponse(responses=responses)


@serves(ALTER_CONFIGS, versions=(0, 2))
async def alter_configs(
    context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace all settings of each resource."""
    given = Counter(_identity(resource) for resource in request.resources)
    responses = []
    for resource in request.resources:
        response = LegacyResult(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            _check_resource(context, resource, given)
            _check_no_null(config.name for config in resource.configs if config.value is None)
            change = _replacement({each.name: each.value or "" for each in resource.configs})
            await _alter(context, resource, change, validate_only=request.validate_only)
        except KafkaError as error:
            response.error_code = error.code
            response.error_message = error.message
        responses.append(response)
    return AlterConfigsResponse(responses=responses)


def _replacement(configs: Configs) -> ConfigsChange:
    return lambda _current: configs


def _identity(resource: Resource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _check_resource(
    context: RequestContext, resource: Resource, given: Mapping[tuple[int, str], int]
) -> None:
    """Raise KafkaError for a resource that cannot be altered, whatever the change."""
    name = resource.resource_name
    if given[_identity(resource)] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    if resource.resource_type == TOPIC:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        problem = name_problem(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    elif resource.resource_type == BROKER:
        if name != CLUSTER_ENTITY:
            _check_broker_name(name, context.broker.node_id)
    else:
        raise _unknown_resource_type(resource.resource_type)


def _check_no_null(names: Iterable[str]) -> None:
    missing = sorted(names)
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(missing)}"
        )


async def _alter(
    context: RequestContext, resource: Resource, change: ConfigsChange, *, validate_only: bool
) -> None:
    """Make, or only check, one change; raises KafkaError."""
    catalogue = context.broker.catalogue
    name = resource.resource_name
    is_topic = resource.resource_type == TOPIC
    if validate_only and is_topic:
        catalogue.checked_topic_configs(name, change)
    elif validate_only:
        catalogue.checked_broker_configs(name, change)
    elif is_topic:
        await catalogue.alter_topic_configs(name, change)
    else:
        await catalogue.alter_broker_configs(name, change)


# ------------------------------------------------------------------------------- changes key by key


def _incremental_change(catalogue: Catalogue, resource: AlterConfigsResource) -> ConfigsChange:
    """Return the function that applies a resource's operations to its settings."""
    _check_no_null(
        config.name
        for config in resource.configs
        if config.value is None and config.config_operation != ConfigOperation.DELETE
    )
    is_topic = resource.resource_type == TOPIC
    keys = TOPIC_CONFIGS if is_topic else BROKER_CONFIGS

    def in_force(name: str, current: Configs) -> str:
        """Return the text of a value that APPEND and SUBTRACT start from."""
        if name in current:
            return current[name]
        config = catalogue.broker_config
        value = effective_value(name, {}, config) if is_topic else config.value(name)
        return format_value(value) or ""

    def change(current: Configs) -> Configs:
        changed = dict(current)
        for config in resource.configs:
            operation = _operation(config)
            if operation is ConfigOperation.DELETE:
                changed.pop(config.name, None)
            elif operation is ConfigOperation.SET:
                changed[config.name] = config.value or ""
            else:
                _check_is_list(config.name, operation, keys)
                old = in_force(config.name, current)
                changed[config.name] = _edited(old, operation, config.value or "")
        return changed

    return change


def _operation(config: AlterableConfig) -> ConfigOperation:
    try:
        return ConfigOperation(config.config_operation)
    except ValueError:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unknown operation {config.config_operation} for {config.name}",
        ) from None


def _check_is_list(name: str, operation: ConfigOperation, keys: Mapping[str, ConfigKey]) -> None:
    key = keys.get(name)
    if key is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {name}")
    if key.type is not ConfigType.LIST:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {operation.name} to key {name} because its type is not LIST.",
        )


def _edited(old: str, operation: ConfigOperation, given: str) -> str:
    """Add items to a list, each once, or take them out."""
    items = _items(old)
    named = _items(given)
    if operation is ConfigOperation.APPEND:
        items += [item for item in dict.fromkeys(named) if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
