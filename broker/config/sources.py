"""Sources of values of keys, and their precedence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile

from barnabas.broker.config.listener_keys import PREFIX as LISTENER_PREFIX
from barnabas.broker.config.types import (
    ConfigKey,
    ConfigSource,
    ConfigSynonym,
    ConflictingValues,
    Setting,
    UpdateMode,
)

Keys = Mapping[str, ConfigKey]
Settings = Mapping[str, tuple[Setting, ...]]


def synonyms_of(names: Iterable[str], settings: Settings, keys: Keys) -> Iterator[ConfigSynonym]:
    """Yield the possible sources of the value of the first of ``names``, as DescribeConfigs does.

    Sorted by source, then in the order of ``names``. Entries before the first one of the first name
    are omitted: Kafka does not report that log.retention.ms comes from an hours key.
    """
    names = tuple(names)
    places = [
        ConfigSynonym(name, each.text, each.source)
        for name in names
        for each in settings.get(name, ())
    ]
    places.sort(key=lambda place: place.source)
    for name in names:
        default = keys[name].default_text
        if default is not None:
            places.append(ConfigSynonym(name, default, ConfigSource.DEFAULT))
    yield from dropwhile(lambda place: place.name != names[0], places)


def dynamic_settings(cluster: Mapping[str, str], broker: Mapping[str, str], keys: Keys) -> Settings:
    """Return the settings that clients made at run time, by key, the winner first (KIP-226).

    Raises ConfigError for a key that is unknown or cannot change while the broker runs. Keys of
    single listeners are checked when they are set (listener_settings.py).
    """
    layers: dict[str, list[Setting]] = {}
    for source, mapping in (
        (ConfigSource.DYNAMIC_BROKER, broker),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, cluster),
    ):
        for name, text in mapping.items():
            key = keys.get(name)
            is_fixed = key is None or key.update is UpdateMode.READ_ONLY
            if is_fixed and not name.startswith(LISTENER_PREFIX):
                reason = f"Cannot update these configs dynamically: {name}"
                raise ConflictingValues(name, text, reason)
            layers.setdefault(name, []).append(Setting(text, source, "a client"))
    return {name: tuple(given) for name, given in layers.items()}
