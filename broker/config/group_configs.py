"""The configuration keys of groups: those of Kafka 4.3.0, with types, defaults and limits.

A group's effective value is its own override, else the broker's key of the same meaning
(``consumer.session.timeout.ms`` <- ``group.consumer.session.timeout.ms``), else the default. An
override must lie between the broker's ``min`` and ``max`` of that key when it is set; if these
change later, ``group_value`` applies them. A group has settings whether or not it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.ignored import synonyms_of, value_of
from barnabas.broker.config.types import (
    ConfigEntry,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    ConflictingValues,
    Matches,
    OneOf,
    Value,
    at_least,
    format_value,
)

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

OFFSET_RESETS = (
    r"earliest|latest"
    r"|by_duration:P(?!$)([0-9]+D)?(T(?=[0-9])([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?"
)


def _number(name: str, default: int, low: int, doc: str) -> ConfigKey:
    """Return the key of a number with an equal key of the broker."""
    return ConfigKey(name, ConfigType.INT, default, doc, at_least(low), (f"group.{name}",))


_KEYS = (
    _number("consumer.assignment.interval.ms", 1000, 0, "Shortest time between two assignments."),
    _number("consumer.heartbeat.interval.ms", 5000, 1, "How often members report."),
    _number("consumer.session.timeout.ms", 45_000, 1, "How long a member may be silent."),
    _number("share.assignment.interval.ms", 1000, 0, "Shortest time between two assignments."),
    ConfigKey(
        "share.auto.offset.reset",
        ConfigType.STRING,
        "latest",
        "Where a share group begins to read a partition.",
        Matches(OFFSET_RESETS, "earliest, latest or by_duration:<PnDTnHnMn.nS>"),
    ),
    _number("share.delivery.count.limit", 5, 2, "How often a share group is given one record."),
    _number("share.heartbeat.interval.ms", 5000, 1, "How often members report."),
    ConfigKey(
        "share.isolation.level",
        ConfigType.STRING,
        "read_uncommitted",
        "Whether a share group is given records of aborted transactions.",
        OneOf(("read_committed", "read_uncommitted")),
    ),
    _number("share.partition.max.record.locks", 2000, 100, "Records of a partition in delivery."),
    _number("share.record.lock.duration.ms", 30_000, 1000, "How long a record is in delivery."),
    ConfigKey(
        "share.renew.acknowledge.enable",
        ConfigType.BOOLEAN,
        default=True,
        documented="Whether a member may ask for more time for a record.",
    ),
    _number("share.session.timeout.ms", 45_000, 1, "How long a member may be silent."),
    _number("streams.assignment.interval.ms", 1000, 0, "Shortest time between two assignments."),
    _number("streams.heartbeat.interval.ms", 5000, 1, "How often members report."),
    _number("streams.initial.rebalance.delay.ms", 3000, 0, "How long a new group waits."),
    _number("streams.num.standby.replicas", 0, 0, "Standby replicas of each task."),
    _number("streams.session.timeout.ms", 45_000, 1, "How long a member may be silent."),
)

GROUP_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _KEYS}
"""Every group key of Kafka 4.3.0, by name. Those of share and streams groups are only kept."""

_HAVE_MINIMUM = frozenset(
    f"{kind}.{rest}"
    for kind in ("consumer", "share", "streams")
    for rest in ("assignment.interval.ms", "heartbeat.interval.ms", "session.timeout.ms")
) | {
    "share.delivery.count.limit",
    "share.partition.max.record.locks",
    "share.record.lock.duration.ms",
}
_HAVE_MAXIMUM = _HAVE_MINIMUM | {"streams.num.standby.replicas"}
_MAXIMUM_NAMES = {"streams.num.standby.replicas": "group.streams.max.standby.replicas"}


def check_group_configs(configs: Mapping[str, str], broker: BrokerConfig) -> None:
    """Check a group's complete overrides, one by one and together; raises ConfigError."""
    for name, text in configs.items():
        key = GROUP_CONFIGS.get(name)
        if key is None:
            raise ConflictingValues(name, text, f"Unknown group config name: {name}")
        _check_limits(name, key.parse(text), broker)
    for kind in ("consumer", "share", "streams"):
        heartbeat = f"{kind}.heartbeat.interval.ms"
        session = f"{kind}.session.timeout.ms"
        if heartbeat not in configs and session not in configs:
            continue
        interval_ms = effective_group_value(heartbeat, configs, broker)
        timeout_ms = effective_group_value(session, configs, broker)
        assert isinstance(interval_ms, int)
        assert isinstance(timeout_ms, int)
        if interval_ms >= timeout_ms:
            reason = f"{heartbeat} must be less than {session}"
            raise ConflictingValues(heartbeat, str(interval_ms), reason)


def _check_limits(name: str, value: Value, broker: BrokerConfig) -> None:
    low, high = _limits(name, broker)
    if low is not None and isinstance(value, int) and value < low:
        reason = f"{name} must be greater than or equal to {_minimum_name(name)}"
        raise ConflictingValues(name, str(value), reason)
    if high is not None and isinstance(value, int) and value > high:
        reason = f"{name} must be less than or equal to {_maximum_name(name)}"
        raise ConflictingValues(name, str(value), reason)


def _limits(name: str, broker: BrokerConfig) -> tuple[int | None, int | None]:
    low = value_of(_minimum_name(name), broker) if name in _HAVE_MINIMUM else None
    high = value_of(_maximum_name(name), broker) if name in _HAVE_MAXIMUM else None
    assert low is None or isinstance(low, int)
    assert high is None or isinstance(high, int)
    return low, high


def _minimum_name(name: str) -> str:
    kind, _, rest = name.partition(".")
    return f"group.{kind}.min.{rest}"


def _maximum_name(name: str) -> str:
    kind, _, rest = name.partition(".")
    return _MAXIMUM_NAMES.get(name, f"group.{kind}.max.{rest}")


def effective_group_value(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> Value:
    """Return the value of one key for a group whose overrides have been checked."""
    key = GROUP_CONFIGS[name]
    if name in overrides:
        return key.parse(overrides[name])
    inherited = value_of(key.synonyms[0], broker) if key.synonyms else None
    return key.default if inherited is None else inherited


def group_value(name: str, overrides: Mapping[str, str], broker: BrokerConfig) -> Value:
    """Return the effective value, within the broker's limits, for the coordinator."""
    value = effective_group_value(name, overrides, broker)
    if name in overrides and isinstance(value, int):
        low, high = _limits(name, broker)
        value = value if low is None else max(value, low)
        value = value if high is None else min(value, high)
    return value


def describe_group(overrides: Mapping[str, str], broker: BrokerConfig) -> list[ConfigEntry]:
    """Return every key of a group with its value, source and synonyms, as DescribeConfigs does."""
    return [_describe(key, overrides, broker) for key in GROUP_CONFIGS.values()]


def _describe(key: ConfigKey, overrides: Mapping[str, str], broker: BrokerConfig) -> ConfigEntry:
    if key.synonyms:
        synonyms = list(synonyms_of(key.synonyms[0], broker))
    else:
        default = format_value(key.default)
        assert default is not None
        synonyms = [ConfigSynonym(key.name, default, ConfigSource.DEFAULT)]
    if key.name in overrides:
        synonyms.insert(0, ConfigSynonym(key.name, overrides[key.name], ConfigSource.GROUP))
    return ConfigEntry(
        name=key.name,
        value=synonyms[0].value,
        type=key.type,
        source=synonyms[0].source,
        read_only=False,
        synonyms=tuple(synonyms),
        documentation=key.doc,
    )
