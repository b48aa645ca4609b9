"""Settings that clients change while the broker runs: of topics, brokers and groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.group_configs import check_group_configs, group_value
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.listener_settings import check_replaceable, is_of_one_listener
from barnabas.broker.config.topic_values import check_topic_configs, log_config
from barnabas.broker.config.types import ConfigError, UpdateMode, Value
from barnabas.broker.topics.topic import Configs, Topic
from barnabas.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.topics.changes import Changes
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

ConfigsChange = Callable[[Configs], Configs]
ConfigCheck = Callable[[BrokerConfig, bool], None]

GROUPS_WITH_SETTINGS_MAX: Final = 10_000
"""Groups need not exist to have settings, so there is a limit."""

CLUSTER_ENTITY: Final = ""
"""The MetaStore's name for broker settings that hold for the whole cluster."""


class DynamicConfigs:
    """The settings in force; a change is in the MetaStore first, then here."""

    def __init__(
        self,
        metastore: MetaStore,
        changes: Changes,
        config: BrokerConfig,
        topics: Mapping[str, Topic],
        on_changed: Callable[[BrokerConfig], None],
        check: ConfigCheck,
        on_altered: Callable[[str, str], None] = lambda _resource, _keys: None,
    ) -> None:
        """``config`` is the configuration as it was loaded; ``broker_config`` is the one in force.

        ``topics`` are those of the catalogue, by name. ``check`` raises ConfigError for what could
        not be used; it is also told whether nothing but that is wanted once more which holds.
        ``on_altered`` is told of what the settings were changed, and which they are.
        """
        self._on_altered = on_altered
        self.broker_config = config
        self.broker_overrides: dict[str, Configs] = {}
        self.group_overrides: dict[str, Configs] = {}
        self._metastore = metastore
        self._changes = changes
        self._loaded_config = config
        self._topics = topics
        self._on_changed = on_changed
        self._check = check

    def load(self, image: MetadataImage) -> None:
        """Take over what is stored; raises ConfigError where that is acceptable no longer."""
        self.broker_overrides = dict(image.broker_configs)
        self._use_broker_config(self._merged_config(self.broker_overrides))
        self.group_overrides = dict(image.group_configs)

    def checked_topic_configs(self, name: str, change: ConfigsChange) -> Configs:
        """Return the settings a topic would have after ``change``; raises KafkaError.

        ``change`` gets the topic's own settings and returns all of them anew.
        """
        topic = self._topics.get(name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        configs = change(topic.configs)
        check_configs(configs, self.broker_config)
        return configs

    async def alter_topic_configs(self, name: str, change: ConfigsChange) -> None:
        """Change a topic's settings, effective when this returns; raises KafkaError."""
        await self._changes.run(lambda: self._alter_topic_configs(name, change))

    async def _alter_topic_configs(self, name: str, change: ConfigsChange) -> None:
        configs = self.checked_topic_configs(name, change)
        topic = self._topics[name]
        if configs == topic.configs:
            return
        self._metastore.set_topic_configs(topic.topic_id, configs)
        changed = _changed(topic.configs, configs)
        topic.configs = configs
        self._configure(topic)
        self._on_altered(f"Topic:{name}", changed)

    def checked_broker_configs(self, entity: str, change: ConfigsChange) -> Configs:
        """Return what dynamic settings of a node ("" = all nodes) would be; raises KafkaError."""
        configs = change(self.broker_overrides.get(entity, {}))
        self._check_broker_overrides(entity, configs)
        return configs

    async def alter_broker_configs(self, entity: str, change: ConfigsChange) -> None:
        """Change dynamic settings of a node ("" = all nodes); raises KafkaError."""
        await self._changes.run(lambda: self._alter_broker_configs(entity, change))

    async def _alter_broker_configs(self, entity: str, change: ConfigsChange) -> None:
        configs = self.checked_broker_configs(entity, change)
        self._metastore.set_broker_configs(entity, configs)
        changed = _changed(self.broker_overrides.get(entity, {}), configs)
        self.broker_overrides[entity] = configs
        self._use_broker_config(self._merged_config(self.broker_overrides))
        for topic in self._topics.values():
            self._configure(topic)
        self._on_altered(f"Broker:{entity or 'all'}", changed)

    def group_value(self, group_id: str, name: str) -> Value:
        """Return the value in force of one key of a group, whether or not it has settings."""
        return group_value(name, self.group_overrides.get(group_id, {}), self.broker_config)

    def checked_group_configs(self, group_id: str, change: ConfigsChange) -> Configs:
        """Return what the settings of a group would be; raises KafkaError."""
        configs = change(self.group_overrides.get(group_id, {}))
        try:
            check_group_configs(configs, self.broker_config)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        known = group_id in self.group_overrides
        if configs and not known and len(self.group_overrides) >= GROUPS_WITH_SETTINGS_MAX:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION,
                f"No more than {GROUPS_WITH_SETTINGS_MAX} groups can have settings of their own.",
            )
        return configs

    async def alter_group_configs(self, group_id: str, change: ConfigsChange) -> None:
        """Change the settings of a group; raises KafkaError."""
        await self._changes.run(lambda: self._alter_group_configs(group_id, change))

    async def _alter_group_configs(self, group_id: str, change: ConfigsChange) -> None:
        configs = self.checked_group_configs(group_id, change)
        self._metastore.set_group_configs(group_id, configs)
        changed = _changed(self.group_overrides.get(group_id, {}), configs)
        self._on_altered(f"Group:{group_id}", changed)
        if configs:
            self.group_overrides[group_id] = configs
        else:
            self.group_overrides.pop(group_id, None)

    def _check_broker_overrides(self, entity: str, configs: Configs) -> None:
        """Raise KafkaError unless a running broker can honour these settings and its topics too."""
        for name, text in configs.items():
            if is_of_one_listener(name):
                self._check_of_listener(entity, name, text)
                continue
            key = BROKER_CONFIGS.get(name) or IGNORED_CONFIGS.get(name)
            if key is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"This broker has no setting {name}")
            if key.update is UpdateMode.READ_ONLY:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{name}]"
                )
        try:
            merged = self._merged_config({**self.broker_overrides, entity: configs})
            for topic in self._topics.values():
                check_topic_configs(topic.configs, merged)
            self._check(merged, configs == self.broker_overrides.get(entity))
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error

    def _check_of_listener(self, entity: str, name: str, text: str) -> None:
        try:
            check_replaceable(name, text, self.broker_config)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from error
        if entity == CLUSTER_ENTITY:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Cannot update these configs at default cluster level, broker id must be "
                f"specified: [{name}]",
            )

    def _merged_config(self, overrides: Mapping[str, Configs]) -> BrokerConfig:
        """Return the loaded configuration under the dynamic one; raises ConfigError."""
        node = str(self._metastore.identity.node_id)
        return self._loaded_config.with_dynamic(
            overrides.get(CLUSTER_ENTITY, {}), overrides.get(node, {})
        )

    def _use_broker_config(self, config: BrokerConfig) -> None:
        self.broker_config = config
        self._on_changed(config)

    def _configure(self, topic: Topic) -> None:
        """Bring a topic's logs up to date with its settings and the broker's."""
        settings = log_config(topic.configs, self.broker_config)
        if settings != topic.log_config:
            topic.log_config = settings
            for _, log in topic.partitions_here():
                log.configure(settings)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the names of settings that differ; never what they are: they may be secrets."""
    names = before.keys() | after.keys()
    return ", ".join(sorted(name for name in names if before.get(name) != after.get(name)))


def check_configs(configs: Mapping[str, str | None], config: BrokerConfig) -> None:
    """Raise KafkaError unless a topic may have these settings."""
    try:
        check_topic_configs(configs, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
