"""Kafka's broker keys that mean nothing here, so that a file written for Kafka loads in peace.

They are about replication, controllers, thread pools, tiered storage, or about the Java virtual
machine; some are for brokers of a cluster, as each other's clients
(broker/cluster/peers/settings.py). One that would *protect* something (a policy class) is refused
where it is set to more than its default: see broker/config/protection.py. Other keys are misspelt.

DescribeConfigs reports all of them, with Kafka's types and defaults or with what was set, because
consoles and tools look for them. They cannot be changed while the broker runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.types import (
    ConfigEntry,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    Value,
)

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig

_TABLE: Final = "ignored_keys.txt"
"""Name, type and default; a comment says why the keys below it have no effect."""

_PREFIXES = ("remote.log.",)
_OF_CLUSTERS = "# In a cluster: "

# A user who sets one of these expects something that will not happen.
_WARNED_ABOUT = frozenset(
    (
        "client.quota.callback.class",
        "replica.selector.class",
    )
)


def _table() -> str:
    return (resources.files(__package__) / _TABLE).read_text(encoding="utf-8")


def _keys_of(table: str) -> Iterator[ConfigKey]:
    """Read the table."""
    doc = ""
    for line in table.replace("\\\n", "").splitlines():
        if line.startswith(_OF_CLUSTERS):
            doc = f"No effect on a broker that is alone. {line[2:]}"
        elif line.startswith("# "):
            doc = f"No effect. {line[2:]}"
        elif line:
            name, kind_name, *defaults = line.split()
            kind = ConfigType[kind_name]
            text = defaults[0] if defaults else ""
            key = ConfigKey(name, kind, None, doc)
            yield ConfigKey(name, kind, None if text == "null" else key.parse(text), doc)


IGNORED_CONFIGS: Final[Mapping[str, ConfigKey]] = {key.name: key for key in _keys_of(_table())}
"""Every broker key of Kafka 4.3.0 that means nothing here, by name."""


def is_ignored(key: str) -> bool:
    """Whether a key of Kafka's is accepted without effect."""
    return (key in IGNORED_CONFIGS or key.startswith(_PREFIXES)) and key not in _WARNED_ABOUT


def describe_ignored(config: BrokerConfig) -> list[ConfigEntry]:
    """Return the keys without effect, as DescribeConfigs lists them."""
    return [_describe(key, config) for key in IGNORED_CONFIGS.values()]


def _describe(key: ConfigKey, config: BrokerConfig) -> ConfigEntry:
    synonyms = synonyms_of(key.name, config)
    return ConfigEntry(
        name=key.name,
        value=synonyms[0].value if synonyms else None,
        type=key.type,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        read_only=True,
        synonyms=synonyms,
        documentation=key.doc,
    ).without_secrets()


def synonyms_of(name: str, config: BrokerConfig) -> tuple[ConfigSynonym, ...]:
    """Return the sources of the value of any broker key of Kafka, supported or ignored."""
    key = IGNORED_CONFIGS.get(name)
    if key is None:
        return tuple(config.synonyms((name,)))
    given = [ConfigSynonym(name, each.text, each.source) for each in config.settings.get(name, ())]
    if key.default_text is not None:
        given.append(ConfigSynonym(name, key.default_text, ConfigSource.DEFAULT))
    return tuple(given)


def value_of(name: str, config: BrokerConfig) -> Value:
    """Return the value of any broker key of Kafka; raises ConfigError for an invalid one.

    What was set for a key without effect has not been checked.
    """
    key = IGNORED_CONFIGS.get(name)
    if key is None:
        return config.value(name)
    settings = config.settings.get(name)
    return key.parse(settings[0].text) if settings else key.default
