"""AlterConfigs 0-2, IncrementalAlterConfigs 0-1: for topics, brokers, their loggers, groups.

Version notes: nothing changed but the encoding. AlterConfigs replaces everything that was set, the
incremental one changes key by key. Loggers know only the incremental one.
Stricter than Kafka: an unknown broker setting is refused instead of stored unused; so are
client metrics, because they would not be collected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TypeAlias

from barnabas.broker.api import checks
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.config.types import ConfigKey, ConfigType, format_value
from barnabas.broker.handlers.configs import check_allowed
from barnabas.broker.metadata.configs import ConfigsChange, DynamicConfigs
from barnabas.broker.metadata.resources import (
    KINDS,
    ConfigKind,
    ResourceType,
    check_node_name,
    unknown_resource_type,
)
from barnabas.broker.metadata.topic import Configs
from barnabas.broker.runtime.loggers import ROOT, problem_of, set_levels
from barnabas.broker.runtime.turns import next_turn
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_configs import (
    ALTER_CONFIGS,
    AlterConfigsRequest,
    AlterConfigsResponse,
)
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsResource as LegacyResource,
)
from barnabas.protocol.messages.alter_configs import (
    AlterConfigsResourceResponse as LegacyResult,
)
from barnabas.protocol.messages.incremental_alter_configs import (
    INCREMENTAL_ALTER_CONFIGS,
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.storage.metastore.interface import Identity

Resource: TypeAlias = AlterConfigsResource | LegacyResource


RESOURCES_PER_TURN = 100
"""Resources that are processed before the loop may get a turn."""
PATIENCE_MS = 20_000
"""Maximum time for which a request waits for an unavailable MetaStore."""


class ConfigOperation(IntEnum):
    """Change of one key by IncrementalAlterConfigs (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@serves(INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), in_slices=True)
async def incremental_alter_configs(
    configs: DynamicConfigs,
    identity: Identity,
    context: RequestContext,
    request: IncrementalAlterConfigsRequest,
) -> IncrementalAlterConfigsResponse:
    """Change settings key by key (KIP-339); each resource changes as a whole or not at all."""
    given = Counter(_identity(resource) for resource in request.resources)
    until_s = configs.changes.time_in(PATIENCE_MS)
    responses = []
    for resource in request.resources:
        response = AlterConfigsResourceResponse(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            _check_given_once(resource, given)
            check_allowed(
                context.access, checks.ALTER_CONFIGS, resource.resource_type, resource.resource_name
            )
            if resource.resource_type == ResourceType.BROKER_LOGGER:
                _alter_loggers(identity, resource, validate_only=request.validate_only)
            else:
                kind = _kind_of(identity, resource)
                change = _incremental_change(configs, kind, resource)
                await _alter(
                    configs, kind, resource, change, until_s, validate_only=request.validate_only
                )
        except KafkaError as error:
            response.error_code = error.code
            response.error_message = error.message
        responses.append(response)
        if len(responses) % RESOURCES_PER_TURN == 0:
            await next_turn()
    return IncrementalAlterConfigsResponse(responses=responses)


@serves(ALTER_CONFIGS, versions=(0, 2), in_slices=True)
async def alter_configs(
    configs: DynamicConfigs,
    identity: Identity,
    context: RequestContext,
    request: AlterConfigsRequest,
) -> AlterConfigsResponse:
    """Replace all settings of each resource."""
    given = Counter(_identity(resource) for resource in request.resources)
    until_s = configs.changes.time_in(PATIENCE_MS)
    responses = []
    for resource in request.resources:
        response = LegacyResult(
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            _check_given_once(resource, given)
            check_allowed(
                context.access, checks.ALTER_CONFIGS, resource.resource_type, resource.resource_name
            )
            kind = _kind_of(identity, resource)
            _check_no_null(config.name for config in resource.configs if config.value is None)
            change = _replacement({each.name: each.value or "" for each in resource.configs})
            await _alter(
                configs, kind, resource, change, until_s, validate_only=request.validate_only
            )
        except KafkaError as error:
            response.error_code = error.code
            response.error_message = error.message
        responses.append(response)
        if len(responses) % RESOURCES_PER_TURN == 0:
            await next_turn()
    return AlterConfigsResponse(responses=responses)


def _replacement(configs: Configs) -> ConfigsChange:
    return lambda _current: configs


def _identity(resource: Resource) -> tuple[int, str]:
    return resource.resource_type, resource.resource_name


def _check_given_once(resource: Resource, given: Mapping[tuple[int, str], int]) -> None:
    """Raise KafkaError for a resource or a key that the request names twice."""
    if given[_identity(resource)] > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if len({config.name for config in resource.configs}) < len(resource.configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _kind_of(identity: Identity, resource: Resource) -> ConfigKind:
    """Return the kind of a resource; raises KafkaError if it cannot be altered."""
    if resource.resource_type == ResourceType.CLIENT_METRICS:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, "Metrics of clients are not collected by this broker."
        )
    kind = KINDS.get(resource.resource_type)
    if kind is None:
        raise unknown_resource_type(resource.resource_type)
    kind.check_name(resource.resource_name, identity.node_id)
    return kind


def _check_no_null(names: Iterable[str]) -> None:
    missing = sorted(names)
    if missing:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Null value not supported for : {','.join(missing)}"
        )


async def _alter(
    configs: DynamicConfigs,
    kind: ConfigKind,
    resource: Resource,
    change: ConfigsChange,
    until_s: float,
    *,
    validate_only: bool,
) -> None:
    """Make, or only check, one change; raises KafkaError."""
    if validate_only:
        kind.checked(configs, resource.resource_name, change)
    else:
        await kind.alter(configs, resource.resource_name, change, until_s)


# ------------------------------------------------------------------------------- changes key by key


def _incremental_change(
    configs: DynamicConfigs, kind: ConfigKind, resource: AlterConfigsResource
) -> ConfigsChange:
    """Return the function that applies a resource's operations to its settings."""
    _check_no_null_but_deleted(resource)

    def in_force(name: str, current: Configs) -> str:
        """Return the present value to which APPEND and SUBTRACT apply."""
        if name in current:
            return current[name]
        return format_value(kind.value(configs, name)) or ""

    def change(current: Configs) -> Configs:
        changed = dict(current)
        for config in resource.configs:
            operation = _operation(config)
            if operation is ConfigOperation.DELETE:
                changed.pop(config.name, None)
            elif operation is ConfigOperation.SET:
                changed[config.name] = config.value or ""
            else:
                _check_is_list(config.name, operation, kind.keys)
                old = in_force(config.name, current)
                changed[config.name] = _edited(old, operation, config.value or "")
        return changed

    return change


def _check_no_null_but_deleted(resource: AlterConfigsResource) -> None:
    _check_no_null(
        config.name
        for config in resource.configs
        if config.value is None and config.config_operation != ConfigOperation.DELETE
    )


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
    """Add items to a list, each once, or remove them."""
    items = _items(old)
    named = _items(given)
    if operation is ConfigOperation.APPEND:
        items += [item for item in dict.fromkeys(named) if item not in items]
    else:
        items = [item for item in items if item not in named]
    return ",".join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


# ---------------------------------------------------------------------------------------- loggers


def _alter_loggers(
    identity: Identity, resource: AlterConfigsResource, *, validate_only: bool
) -> None:
    """Set levels of loggers, all or none; raises KafkaError."""
    check_node_name(resource.resource_name, identity.node_id)
    _check_no_null_but_deleted(resource)
    levels = [(config.name, _level(config)) for config in resource.configs]
    for name, level in levels:
        problem = problem_of(name, level)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, problem)
    if not validate_only:
        set_levels(levels)


def _level(config: AlterableConfig) -> str | None:
    """Return the level that an operation sets, or None to remove it; raises KafkaError."""
    operation = _operation(config)
    if operation is ConfigOperation.SET:
        return config.value
    if operation is ConfigOperation.DELETE:
        if config.name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Removing the log level of the root logger is not allowed",
            )
        return None
    raise KafkaError(
        ErrorCode.INVALID_REQUEST,
        f"{operation.name} operation is not allowed for the BROKER_LOGGER resource",
    )
