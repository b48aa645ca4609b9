"""DescribeConfigs 1-4 and ListConfigResources 0-1 (altering is in alter_configs.py).

Version notes. DescribeConfigs: v1 reports sources and synonyms, v3 types and documentation; an
empty list of keys means all, like null. ListConfigResources: v0 asks for client metrics only.
A broker's name is its node id, or "" for what holds on all. It has every key of Kafka, those
without effect here too, and the keys of Barnabas. Client metrics and groups need not exist to be
described.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from barnabas.broker.api import checks
from barnabas.broker.api.dispatch import RequestContext, serves
from barnabas.broker.api.waits import Turn
from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.group_configs import describe_group
from barnabas.broker.config.ignored import describe_ignored
from barnabas.broker.config.listener_settings import describe_listener_settings
from barnabas.broker.config.topic_values import describe_topic
from barnabas.broker.config.types import ConfigEntry, ConfigSource, ConfigSynonym, ConfigType
from barnabas.broker.handlers.metadata import missing_topic_error
from barnabas.broker.metadata.catalogue import Catalogue
from barnabas.broker.metadata.configs import CLUSTER_ENTITY
from barnabas.broker.metadata.resources import ResourceType, check_node_name, unknown_resource_type
from barnabas.broker.metadata.topic import Configs
from barnabas.broker.metadata.topic_names import name_problem
from barnabas.broker.runtime.loggers import describe_loggers
from barnabas.broker.security.acls.access import Access
from barnabas.broker.security.acls.operations import CLUSTER_NAME, Operation
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_configs import (
    DESCRIBE_CONFIGS,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from barnabas.protocol.messages.list_config_resources import (
    LIST_CONFIG_RESOURCES,
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from barnabas.storage.metastore.interface import Identity

SETTINGS_PER_ANSWER_MAX = 500_000
"""All settings of about 15,000 topics."""

SETTINGS_PER_TURN = 500
"""Settings described before the loop gets a turn."""

SETTINGS_FOR_RESOURCE = 2
"""Number of settings added to a resource's own for the limit, as it may have none, or an error."""

CLIENT_METRICS_CONFIGS = (
    ConfigEntry(
        "interval.ms",
        "300000",
        ConfigType.INT,
        ConfigSource.DEFAULT,
        read_only=False,
        synonyms=(),
        documentation="How often clients would push their metrics; none are collected.",
    ),
    *(
        ConfigEntry(
            name,
            "",
            ConfigType.LIST,
            ConfigSource.DEFAULT,
            read_only=False,
            synonyms=(),
            documentation=f"Which {what} would be collected; none are.",
        )
        for name, what in (("match", "clients' metrics"), ("metrics", "metrics"))
    ),
)


# -------------------------------------------------------------------------------- DescribeConfigs


@serves(DESCRIBE_CONFIGS, versions=(1, 4), in_slices=True)
async def describe_configs(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: DescribeConfigsRequest,
) -> DescribeConfigsResponse:
    """List settings with the sources of their values."""
    results = []
    listed = listed_in_turn = 0
    alike: dict[Hashable, list[DescribeConfigsResourceResult]] = {}
    for resource in request.resources:
        result = DescribeConfigsResult(
            error_message="",
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
        )
        try:
            check_allowed(
                context.access,
                checks.DESCRIBE_CONFIGS,
                resource.resource_type,
                resource.resource_name,
            )
            _check_room(listed)
            kind = _alike(catalogue, resource)
            if kind in alike:
                result.configs = alike[kind]
            else:
                result.configs = alike[kind] = _configs(catalogue, identity, resource, request)
                listed_in_turn += SETTINGS_PER_TURN // 2
            listed += len(result.configs)
        except KafkaError as error:
            result.error_code = error.code
            result.error_message = error.message
        results.append(result)
        listed_in_turn += SETTINGS_FOR_RESOURCE
        if listed_in_turn > SETTINGS_PER_TURN:
            listed_in_turn = 0
            await Turn()
    return DescribeConfigsResponse(results=results)


def check_allowed(access: Access, operation: Operation, resource_type: int, name: str) -> None:
    """Raise KafkaError unless a client may apply the operation to the settings of a resource.

    Settings of brokers, loggers and client metrics need the permission on the cluster.
    """
    match resource_type:
        case ResourceType.TOPIC:
            kind, code = checks.TOPIC, checks.TOPIC_DENIED
        case ResourceType.GROUP:
            kind, code = checks.GROUP, checks.GROUP_DENIED
        case _:
            kind, code, name = checks.CLUSTER, checks.CLUSTER_DENIED, CLUSTER_NAME
    if not access.may(operation, kind, name):
        raise checks.denied(code, operation, kind, name)


def _alike(catalogue: Catalogue, resource: DescribeConfigsResource) -> Hashable:
    """Return a key that is equal for resources with equal descriptions.

    Most topics have no settings of their own: thousands of them are described once.
    """
    wanted = frozenset(resource.configuration_keys or ())
    topic = catalogue.topic(resource.resource_name)
    if resource.resource_type == ResourceType.TOPIC and topic is not None:
        return wanted, tuple(sorted(topic.configs.items()))
    return wanted, resource.resource_type, resource.resource_name


def _configs(
    catalogue: Catalogue,
    identity: Identity,
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
) -> list[DescribeConfigsResourceResult]:
    """Describe the settings of a resource; raises KafkaError."""
    wanted = resource.configuration_keys
    return [
        _described(entry, request)
        for entry in _entries(catalogue, identity, resource)
        if not wanted or entry.name in wanted
    ]


def _check_room(listed: int) -> None:
    """Raise KafkaError for a response above the limit, which a short request can cause."""
    if listed >= SETTINGS_PER_ANSWER_MAX:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"The response would have more than {SETTINGS_PER_ANSWER_MAX} settings: request fewer.",
        )


def _entries(
    catalogue: Catalogue, identity: Identity, resource: DescribeConfigsResource
) -> Iterable[ConfigEntry]:
    """Return all settings of a resource; raises KafkaError."""
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            topic = catalogue.topic(name)
            if topic is None:
                raise KafkaError(missing_topic_error(name), name_problem(name))
            return describe_topic(topic.configs, catalogue.configs.broker_config)
        case ResourceType.BROKER:
            if name == CLUSTER_ENTITY:
                return _cluster_wide_entries(
                    catalogue.configs.broker_overrides.get(CLUSTER_ENTITY, {})
                )
            check_node_name(name, identity.node_id)
            return _broker_entries(catalogue.configs.broker_config)
        case ResourceType.BROKER_LOGGER:
            _check_not_empty(name, "Broker id must not be empty")
            check_node_name(name, identity.node_id)
            return describe_loggers()
        case ResourceType.CLIENT_METRICS:
            _check_not_empty(name, "Client metrics subscription name must not be empty")
            return CLIENT_METRICS_CONFIGS
        case ResourceType.GROUP:
            _check_not_empty(name, "Group name must not be empty")
            overrides = catalogue.configs.group_overrides.get(name, {})
            return describe_group(overrides, catalogue.configs.broker_config)
    raise unknown_resource_type(resource.resource_type)


def _check_not_empty(name: str, message: str) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message)


def _broker_entries(config: BrokerConfig) -> list[ConfigEntry]:
    """Return every key of Kafka and Barnabas; older names of a key have its value."""
    entries = {entry.name: entry for entry in config.describe()}
    older = [
        _renamed(entries[key.name], name)
        for key in BROKER_CONFIGS.values()
        for name in key.synonyms
    ]
    of_listeners = describe_listener_settings(config)
    every = (*entries.values(), *older, *of_listeners, *describe_ignored(config))
    return sorted(every, key=lambda entry: entry.name)


def _renamed(entry: ConfigEntry, name: str) -> ConfigEntry:
    synonyms = tuple(synonym._replace(name=name) for synonym in entry.synonyms)
    return entry._replace(name=name, synonyms=synonyms)


def _cluster_wide_entries(overrides: Configs) -> Iterable[ConfigEntry]:
    """Return settings that clients set for all brokers; defaults and files are one broker's own."""
    source = ConfigSource.DYNAMIC_DEFAULT_BROKER
    for name, text in overrides.items():
        key = BROKER_CONFIGS[name]
        synonyms = (ConfigSynonym(name, text, source),)
        yield ConfigEntry(
            name, text, key.type, source, read_only=False, synonyms=synonyms, documentation=key.doc
        ).without_secrets()


def _described(
    entry: ConfigEntry, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    synonyms = entry.synonyms if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[DescribeConfigsSynonym(each.name, each.value, each.source) for each in synonyms],
        config_type=entry.type,
        documentation=entry.documentation or None if request.include_documentation else None,
    )


# ---------------------------------------------------------------------------- ListConfigResources


def refuse_list_config_resources(
    request: ListConfigResourcesRequest, code: ErrorCode, message: str | None
) -> ListConfigResourcesResponse:
    """Return an error and no resources."""
    del request, message
    return ListConfigResourcesResponse(error_code=code)


@serves(LIST_CONFIG_RESOURCES, versions=(0, 1), refuse=refuse_list_config_resources)
def list_config_resources(
    catalogue: Catalogue,
    identity: Identity,
    context: RequestContext,
    request: ListConfigResourcesRequest,
) -> ListConfigResourcesResponse:
    """List the resources with settings, of all or some types; groups only with their own."""
    if context.api_version == 0:
        wanted = {int(ResourceType.CLIENT_METRICS)}
    else:
        wanted = set(request.resource_types or ResourceType)
    unknown = wanted - set(ResourceType)
    if unknown:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown resource types {sorted(unknown)}")
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, kind)
            for kind in ResourceType
            if kind in wanted
            for name in _names(catalogue, identity, kind)
        ]
    )


def _names(catalogue: Catalogue, identity: Identity, kind: ResourceType) -> Iterable[str]:
    match kind:
        case ResourceType.TOPIC:
            return catalogue.topics
        case ResourceType.GROUP:
            return catalogue.configs.group_overrides
        case ResourceType.CLIENT_METRICS:
            return ()
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return (str(identity.node_id),)
