"""Dynamic settings of topics, brokers and groups, which clients can change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.cluster import CORDONED, check_cordoned
from barnabas.broker.config.features import (
    CONFIGURED_VERSION,
    FEATURES_ENTITY,
    TRANSACTION_VERSION,
    FeatureLevels,
    check_supported,
    levels_of,
    stored_form,
)
from barnabas.broker.config.group_configs import check_group_configs, group_value
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.listener_settings import check_replaceable, is_of_one_listener
from barnabas.broker.config.topic_values import check_topic_configs, log_config
from barnabas.broker.config.types import ConfigError, ConfigSource, Setting, UpdateMode, Value
from barnabas.broker.metadata.topic import Configs, Topic
from barnabas.broker.metadata.topic_names import COORDINATED
from barnabas.protocol.errors import ErrorCode, KafkaError
from barnabas.storage.log.config import COMPACT
from barnabas.storage.metastore.difference import ConfiguredTopic, Difference

if TYPE_CHECKING:
    from barnabas.broker.metadata.changes import Changes
    from barnabas.storage.log.config import LogConfig
    from barnabas.storage.metastore.interface import MetadataImage, MetaStore

ConfigsChange = Callable[[Configs], Configs]
ConfigCheck = Callable[[BrokerConfig, bool], None]

GROUPS_WITH_SETTINGS_MAX: Final = 10_000
"""Maximum number of groups with settings, since groups need not exist to have settings."""

CLUSTER_ENTITY: Final = ""
"""Entity of the settings for all brokers in the MetaStore."""
_POLICY: Final = "cleanup.policy"


class DynamicConfigs:
    """Settings in force; a change is stored in the MetaStore first, then shown here.

    Within ``Changes`` the catalogue calls ``show`` after it has deleted topics and before it
    creates others.
    """

    def __init__(
        self,
        metastore: MetaStore,
        changes: Changes,
        config: BrokerConfig,
        topics: Mapping[str, Topic],
        topics_by_id: Mapping[bytes, Topic],
        on_changed: Callable[[BrokerConfig], None],
        check: ConfigCheck,
        on_altered: Callable[[str, str], None] = lambda _resource, _keys: None,
    ) -> None:
        """``config`` is the configuration as it was loaded; ``broker_config`` is the one in force.

        ``topics`` and ``topics_by_id`` are those of the catalogue. ``check`` raises ConfigError for
        unusable settings; it also receives whether a client only sets the current values again.
        ``on_altered`` receives the resource, and the names of its altered settings.
        """
        self._on_altered = on_altered
        self.broker_config = config
        self.broker_overrides: dict[str, Configs] = {}
        self.group_overrides: dict[str, Configs] = {}
        self.encodes = False
        """Whether any topic has had its own codec (``compression.type``) since the start."""
        self._metastore = metastore
        self.changes = changes
        self._loaded_config = config
        self._topics = topics
        self._topics_by_id = topics_by_id
        self._on_changed = on_changed
        self._check = check

    def load(self, image: MetadataImage) -> None:
        """Load the stored settings; raises ConfigError if they are no longer valid.

        Also raises StoreUnusable for a feature level that this release does not support.
        """
        self.broker_overrides = dict(image.broker_configs)
        self._use_broker_config(self._merged_config(self.broker_overrides))
        self.group_overrides = dict(image.group_configs)

    def checked_topic_configs(self, name: str, change: ConfigsChange) -> Configs:
        """Return the settings a topic would have after ``change``; raises KafkaError.

        ``change`` receives the topic's own settings and returns the complete new ones.
        """
        topic = self._topics.get(name)
        if topic is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            )
        configs = change(topic.configs)
        check_configs(name, configs, self.broker_config)
        return configs

    async def alter_topic_configs(
        self, name: str, change: ConfigsChange, until_s: float | None = None
    ) -> None:
        """Change a topic's settings, effective when this returns; raises KafkaError.

        ``until_s``, here and below: time at which the caller stops waiting, see ``Changes.run``.
        """
        await self.changes.run(lambda: self._alter_topic_configs(name, change), until_s)

    async def _alter_topic_configs(self, name: str, change: ConfigsChange) -> None:
        configs = self.checked_topic_configs(name, change)
        topic = self._topics[name]
        if configs == topic.configs:
            return
        await self.changes.commit(
            partial(self._metastore.set_topic_configs, topic.topic_id, configs)
        )
        configured = ConfiguredTopic(topic.topic_id, configs)
        await self.changes.show(Difference(topics_configured=(configured,)))

    def checked_broker_configs(self, entity: str, change: ConfigsChange) -> Configs:
        """Return the changed dynamic settings of a node ("" = all nodes); raises KafkaError."""
        configs = change(self.broker_overrides.get(entity, {}))
        self._check_broker_overrides(entity, configs)
        return configs

    async def alter_broker_configs(
        self, entity: str, change: ConfigsChange, until_s: float | None = None
    ) -> None:
        """Change dynamic settings of a node ("" = all nodes); raises KafkaError."""
        await self.changes.run(lambda: self._alter_broker_configs(entity, change), until_s)

    async def _alter_broker_configs(self, entity: str, change: ConfigsChange) -> None:
        configs = self.checked_broker_configs(entity, change)
        await self.changes.commit(partial(self._metastore.set_broker_configs, entity, configs))
        await self.changes.show(Difference(broker_configs={entity: configs}))

    @property
    def features(self) -> FeatureLevels:
        """Return the feature levels in force."""
        return self._features(self.broker_overrides)

    async def alter_features(
        self, change: Callable[[Mapping[str, int]], Mapping[str, int]], until_s: float | None = None
    ) -> None:
        """Change the feature levels, given those in force; raises the errors of ``change``."""
        await self.changes.run(lambda: self._alter_features(change), until_s)

    async def _alter_features(
        self, change: Callable[[Mapping[str, int]], Mapping[str, int]]
    ) -> None:
        before = self.features
        levels = change(before.levels)
        if levels == before.levels:
            return
        stored = stored_form(FeatureLevels(before.epoch + 1, levels))
        set_levels = partial(self._metastore.set_broker_configs, FEATURES_ENTITY, stored)
        await self.changes.commit(set_levels)
        await self.changes.show(Difference(broker_configs={FEATURES_ENTITY: stored}))

    def group_value(self, group_id: str, name: str) -> Value:
        """Return the value in force of one key of a group, whether or not it has settings."""
        return group_value(name, self.group_overrides.get(group_id, {}), self.broker_config)

    def checked_group_configs(self, group_id: str, change: ConfigsChange) -> Configs:
        """Return the changed settings of a group; raises KafkaError."""
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

    async def alter_group_configs(
        self, group_id: str, change: ConfigsChange, until_s: float | None = None
    ) -> None:
        """Change the settings of a group; raises KafkaError."""
        await self.changes.run(lambda: self._alter_group_configs(group_id, change), until_s)

    async def _alter_group_configs(self, group_id: str, change: ConfigsChange) -> None:
        configs = self.checked_group_configs(group_id, change)
        await self.changes.commit(partial(self._metastore.set_group_configs, group_id, configs))
        await self.changes.show(Difference(group_configs={group_id: configs}))

    # ------------------------------------------------------------------------- showing a difference

    def show(self, difference: Difference) -> None:
        """Apply settings; raises ConfigError for some that this broker cannot honour.

        Also raises StoreUnusable for a feature level that this release does not support.
        """
        topics = [
            (self._topics_by_id[each.topic_id], each.configs)
            for each in difference.topics_configured
        ]
        altered = [
            (f"Topic:{topic.name}", _changed(topic.configs, configs)) for topic, configs in topics
        ]
        for topic, configs in topics:
            topic.configs = configs
        if difference.broker_configs:
            altered += self._show_broker_configs(difference.broker_configs)
            self._configure(self._topics.values())
        else:
            self._configure(topic for topic, _ in topics)
        for group_id, configs in difference.group_configs.items():
            before = self.group_overrides.get(group_id, {})
            altered.append((f"Group:{group_id}", _changed(before, configs)))
            if configs:
                self.group_overrides[group_id] = configs
            else:
                self.group_overrides.pop(group_id, None)
        for resource, changed in altered:
            self._on_altered(resource, changed)

    def _show_broker_configs(self, configs: Mapping[str, Configs]) -> list[tuple[str, str]]:
        altered = [
            (_resource(entity), _changed(self.broker_overrides.get(entity, {}), each))
            for entity, each in configs.items()
        ]
        self.broker_overrides |= configs
        self._use_broker_config(self._merged_config(self.broker_overrides))
        return altered

    # ------------------------------------------------------------------------------------- details

    def _check_broker_overrides(self, entity: str, configs: Configs) -> None:
        """Raise KafkaError unless a running broker can honour these settings, and its topics
        too.
        """
        for name, text in configs.items():
            if is_of_one_listener(name):
                self._check_of_listener(entity, name, text)
                continue
            key = BROKER_CONFIGS.get(name) or IGNORED_CONFIGS.get(name)
            if key is None:
                raise KafkaError(ErrorCode.INVALID_CONFIG, f"Broker setting {name} is unknown")
            if key.update is UpdateMode.READ_ONLY:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{name}]"
                )
            if key.update is UpdateMode.PER_BROKER:
                _check_of_one_broker(entity, name)
        try:
            merged = self._merged_config({**self.broker_overrides, entity: configs})
            if configs.get(CORDONED) != self.broker_overrides.get(entity, {}).get(CORDONED):
                check_cordoned(merged.cordoned_log_dirs, merged.data_directory)
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
        _check_of_one_broker(entity, name)

    def _merged_config(self, overrides: Mapping[str, Configs]) -> BrokerConfig:
        """Return the loaded configuration with the dynamic settings applied; raises ConfigError."""
        node = str(self._metastore.identity.node_id)
        check_supported(overrides.get(FEATURES_ENTITY, {}))
        merged = self._loaded_config.with_dynamic(
            overrides.get(CLUSTER_ENTITY, {}), overrides.get(node, {})
        )
        if not overrides.get(FEATURES_ENTITY):
            return merged
        level = str(self._features(overrides).levels.get(TRANSACTION_VERSION, 0))
        kept = Setting(level, ConfigSource.DYNAMIC_DEFAULT_BROKER, "the levels of features")
        return merged.with_settings({CONFIGURED_VERSION: (kept,)})

    def _features(self, overrides: Mapping[str, Configs]) -> FeatureLevels:
        stored = overrides.get(FEATURES_ENTITY, {})
        return levels_of(stored, self._loaded_config.transaction_version)

    def _use_broker_config(self, config: BrokerConfig) -> None:
        self.broker_config = config
        self._on_changed(config)

    def settings_of(self, topic: str, overrides: Configs) -> LogConfig:
        """Return the settings of a topic's logs."""
        if topic in COORDINATED:  # Another policy may come from a directory of Apache Kafka.
            overrides = {**overrides, _POLICY: COMPACT}
        settings = log_config(overrides, self.broker_config)
        self.encodes = self.encodes or settings.encoding is not None
        return settings

    def _configure(self, topics: Iterable[Topic]) -> None:
        """Update the logs of topics to their settings and the broker's."""
        for topic in topics:
            settings = self.settings_of(topic.name, topic.configs)
            if settings != topic.log_config:
                topic.log_config = settings
                topic.described = []
                for _, log in topic.partitions_here():
                    log.configure(settings)


def _resource(entity: str) -> str:
    return "Cluster" if entity == FEATURES_ENTITY else f"Broker:{entity or 'all'}"


def _check_of_one_broker(entity: str, name: str) -> None:
    """Raise KafkaError if a setting for all brokers is one that each broker has for itself."""
    if entity == CLUSTER_ENTITY:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            "Cannot update these configs at default cluster level, broker id must be "
            f"specified: [{name}]",
        )


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the names of settings that differ, without their values, which may be secrets."""
    names = before.keys() | after.keys()
    return ", ".join(sorted(name for name in names if before.get(name) != after.get(name)))


def check_configs(topic: str, configs: Mapping[str, str | None], config: BrokerConfig) -> None:
    """Raise KafkaError unless a topic may have these settings."""
    try:
        check_topic_configs(configs, config)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
    if topic in COORDINATED and configs.get(_POLICY) != COMPACT:
        # Stricter than Kafka, whose coordinators then lose what retention deletes.
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"{_POLICY} of the internal topic {topic} must be {COMPACT}: "
            "its coordinators need the latest record of each key.",
        )
