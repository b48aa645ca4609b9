"""Keys of single listeners for clients: listed, and changed while the broker runs.

Only keys that are read for each new connection can change (KIP-226): key stores and trust stores,
versions of TLS and its cipher suites.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.listener_keys import PREFIX, ListenerKey, parse_listener_key
from barnabas.broker.config.listeners import parse_listeners
from barnabas.broker.config.security_protocols import has_tls
from barnabas.broker.config.types import (
    ConfigEntry,
    ConfigError,
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConflictingValues,
    UpdateMode,
)

_OF_TLS: Final = "ssl."


def listener_names(config: BrokerConfig) -> list[str]:
    """Return the names of all listeners, also of controllers' ones, which are not opened."""
    controllers = [name.upper() for name in config.controller_listener_names]
    return [*parse_listeners("listeners", config.listeners), *controllers]


def is_of_one_listener(name: str) -> bool:
    """Whether clients can change such a key for one listener only."""
    key = BROKER_CONFIGS.get(name)
    is_replaceable = key is not None and key.update is UpdateMode.PER_BROKER
    return name.startswith(PREFIX) or (name.startswith(_OF_TLS) and is_replaceable)


def check_replaceable(name: str, text: str, config: BrokerConfig) -> None:
    """Raise ConfigError, with Kafka's message, unless this may be set at run time."""
    if not name.startswith(PREFIX):
        reason = (
            "These security configs can be dynamically updated only per-listener using the "
            f"listener prefix: [{name}]"
        )
        raise ConflictingValues(name, text, reason)
    parsed = parse_listener_key(name, listener_names(config))
    if not _is_replaceable(parsed):
        reason = f"Cannot update these configs dynamically: [{name}]"
        if parsed.key == "ssl.client.auth":
            reason += "; who is asked for a certificate is settled when the broker starts"
        raise ConflictingValues(name, text, reason)
    protocols = {each.name: each.security_protocol for each in config.endpoints}
    if not has_tls(protocols.get(parsed.listener, "")):
        raise ConflictingValues(name, text, f"{name}: the listener has no TLS")
    try:
        BROKER_CONFIGS[parsed.key].parse(text)
    except ConfigError as error:
        raise ConfigError(name, error.value, error.expected) from None


def describe_settings(config: BrokerConfig) -> list[ConfigEntry]:
    """Return every key with its value, and the settings of single listeners."""
    return [*config.describe(), *describe_listener_settings(config)]


def describe_listener_settings(config: BrokerConfig) -> list[ConfigEntry]:
    """Return the settings of single listeners for DescribeConfigs."""
    entries = []
    names = listener_names(config)
    for name in config.settings:
        if name.startswith(PREFIX):
            try:
                parsed = parse_listener_key(name, names)
            except ConfigError:  # What clients have set for a listener that there is no longer.
                continue
            key = BROKER_CONFIGS.get(parsed.key) or IGNORED_CONFIGS[parsed.key]
            entries.append(_described(name, parsed, key, config))
    return entries


def _described(name: str, parsed: ListenerKey, key: ConfigKey, config: BrokerConfig) -> ConfigEntry:
    places = [
        ConfigSynonym(each, setting.text, setting.source)
        for each in (name, key.name)
        for setting in config.settings.get(each, ())
    ]
    if key.default_text is not None:
        places.append(ConfigSynonym(key.name, key.default_text, ConfigSource.DEFAULT))
    return ConfigEntry(
        name=name,
        value=places[0].value,
        type=key.type,
        source=places[0].source,
        read_only=not _is_replaceable(parsed),
        synonyms=tuple(places),
        documentation=key.doc,
    ).without_secrets()


def _is_replaceable(parsed: ListenerKey) -> bool:
    key = BROKER_CONFIGS.get(parsed.key)
    is_per_broker = key is not None and key.update is UpdateMode.PER_BROKER
    return parsed.mechanism is None and parsed.key.startswith(_OF_TLS) and is_per_broker
