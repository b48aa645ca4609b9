"""Effective values of one topic: its own settings, else the broker's, else Kafka's default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.broker.config.topic_configs import THROTTLED, TOPIC_CONFIGS, parse_topic_config
from barnabas.broker.config.types import (
    ConfigEntry,
    ConfigError,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConflictingValues,
    Value,
    first_of,
    format_value,
)
from barnabas.storage.log.config import LogConfig

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig


def effective_value(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> Value:
    """Return the value in force for one key of a topic whose overrides have been checked."""
    key = TOPIC_CONFIGS[name]
    if name in overrides:
        return key.parse(overrides[name])
    inherited = first_of(key.synonyms, broker.value)
    return key.default if inherited is None else inherited


def check_topic_configs(configs: Mapping[str, str | None], broker: BrokerConfig) -> None:
    """Check a topic's complete overrides, one by one and together; raises ConfigError.

    The client gets the error's text with INVALID_CONFIG.
    """
    missing = sorted(name for name, text in configs.items() if text is None)
    if missing:
        reason = f"Null value not supported for topic configs: {','.join(missing)}"
        raise ConflictingValues(missing[0], "null", reason)
    given = {name: text for name, text in configs.items() if text is not None}
    values = {name: parse_topic_config(name, text) for name, text in given.items()}
    for name in (
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    ):
        replicas = values.get(name, ())
        if isinstance(replicas, tuple) and "*" in replicas and len(replicas) > 1:
            raise ConfigError(name, given[name], f"Value must be {THROTTLED.described}")
    if values.get("remote.storage.enable"):
        raise ConflictingValues("remote.storage.enable", "true", "There is no tiered storage.")
    shortest = effective_value("min.compaction.lag.ms", given, broker)
    longest = effective_value("max.compaction.lag.ms", given, broker)
    assert isinstance(shortest, int)
    assert isinstance(longest, int)
    if shortest > longest:
        raise ConflictingValues(
            "min.compaction.lag.ms",
            str(shortest),
            "conflict topic config setting "
            f"min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})",
        )


def describe_topic(overrides: Mapping[str, str], broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every key of a topic with its value, source and synonyms, as DescribeConfigs does."""
    return [
        _describe(key, overrides, broker)
        for key in TOPIC_CONFIGS.values()
        if not key.internal or key.name in overrides
    ]


def _describe(key: ConfigKey, overrides: Mapping[str, str], broker: BrokerConfig) -> ConfigEntry:
    synonyms = list(broker.synonyms(key.synonyms))
    if key.name in overrides:
        own = ConfigSynonym(key.name, overrides[key.name], ConfigSource.TOPIC)
        synonyms.insert(0, own)
    value = format_value(effective_value(key.name, overrides, broker))
    return ConfigEntry(
        name=key.name,
        value=overrides.get(key.name, value),
        type=key.type,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=False,
        synonyms=tuple(synonyms),
        documentation=key.doc,
    )


LOG_CONFIG_FIELDS = {
    "barnabas.record.validation.enable": "validates_records",
    "barnabas.replication.factor": "replication_factor",
    "cleanup.policy": "cleanup_policy",
    "compression.gzip.level": "compression_gzip_level",
    "compression.lz4.level": "compression_lz4_level",
    "compression.type": "compression_type",
    "compression.zstd.level": "compression_zstd_level",
    "delete.retention.ms": "delete_retention_ms",
    "index.interval.bytes": "index_interval_bytes",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.after.max.ms": "timestamp_after_max_ms",
    "message.timestamp.before.max.ms": "timestamp_before_max_ms",
    "message.timestamp.type": "timestamp_type",
    "min.cleanable.dirty.ratio": "min_cleanable_dirty_ratio",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "retention.bytes": "retention_bytes",
    "retention.ms": "retention_ms",
    "segment.bytes": "segment_bytes",
    "segment.index.bytes": "index_size_max_bytes",
    "segment.jitter.ms": "segment_jitter_ms",
    "segment.ms": "segment_ms",
}


def log_config(overrides: Mapping[str, str], broker: BrokerConfig) -> LogConfig:
    """Return the storage settings of a topic. The overrides have been checked."""
    settings: dict[str, object] = {
        field: effective_value(name, overrides, broker) for name, field in LOG_CONFIG_FIELDS.items()
    }
    policies = settings["cleanup_policy"]
    assert isinstance(policies, tuple)
    settings["cleanup_policy"] = frozenset(policies)
    if "internal.segment.bytes" in overrides:
        settings["segment_bytes"] = parse_topic_config(
            "internal.segment.bytes", overrides["internal.segment.bytes"]
        )
    return LogConfig(**settings)  # type: ignore[arg-type]
