"""Resources with settings: topics, brokers and their loggers, client metrics, groups.

A ``ConfigKind`` defines how the settings of a kind are named, checked and changed, so that both
Alter requests treat all kinds alike. Settings of loggers and client metrics are not stored.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS
from barnabas.broker.config.group_configs import GROUP_CONFIGS, effective_group_value
from barnabas.broker.config.topic_configs import TOPIC_CONFIGS
from barnabas.broker.config.topic_values import effective_value
from barnabas.broker.config.types import ConfigKey, Value
from barnabas.broker.metadata.configs import CLUSTER_ENTITY, ConfigsChange, DynamicConfigs
from barnabas.broker.metadata.topic import Configs
from barnabas.broker.metadata.topic_names import name_problem
from barnabas.protocol.errors import ErrorCode, KafkaError

_NODE_ID = re.compile(r"-?[0-9]{1,10}")


class ResourceType(IntEnum):
    """Kafka's numbers of the resources with settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ConfigKind:
    """Functions for the settings of one kind of resource; all raise KafkaError."""

    keys: Mapping[str, ConfigKey]
    check_name: Callable[[str, int], None]
    """Checks the resource's name; gets the ID of this node, too."""
    value: Callable[[DynamicConfigs, str], Value]
    """Returns the value of a key that the resource has not set."""
    checked: Callable[[DynamicConfigs, str, ConfigsChange], Configs]
    alter: Callable[[DynamicConfigs, str, ConfigsChange, float | None], Awaitable[None]]
    """The last argument is the end of the caller's wait, or None; see ``Changes.run``."""


def check_node_name(name: str, node_id: int) -> None:
    """Raise KafkaError unless ``name`` is this broker's node ID."""
    if not _NODE_ID.fullmatch(name):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}"
        )
    if int(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )


def unknown_resource_type(resource_type: int) -> KafkaError:
    """Return the error for a kind of resource that does not exist."""
    return KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown resource type {resource_type}")


def _check_topic_name(name: str, _node_id: int) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    problem = name_problem(name)
    if problem is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)


def _check_broker_name(name: str, node_id: int) -> None:
    if name != CLUSTER_ENTITY:
        check_node_name(name, node_id)


def _check_group_name(name: str, _node_id: int) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")


KINDS: Final[Mapping[int, ConfigKind]] = {
    ResourceType.TOPIC: ConfigKind(
        TOPIC_CONFIGS,
        _check_topic_name,
        lambda configs, key: effective_value(key, {}, configs.broker_config),
        DynamicConfigs.checked_topic_configs,
        DynamicConfigs.alter_topic_configs,
    ),
    ResourceType.BROKER: ConfigKind(
        BROKER_CONFIGS,
        _check_broker_name,
        lambda configs, key: configs.broker_config.value(key),
        DynamicConfigs.checked_broker_configs,
        DynamicConfigs.alter_broker_configs,
    ),
    ResourceType.GROUP: ConfigKind(
        GROUP_CONFIGS,
        _check_group_name,
        lambda configs, key: effective_group_value(key, {}, configs.broker_config),
        DynamicConfigs.checked_group_configs,
        DynamicConfigs.alter_group_configs,
    ),
}
"""Kinds whose settings are stored."""
