"""Keys that hold for one listener: ``listener.name.<listener>[.<mechanism>].<key>``.

Names of listeners and mechanisms may hold dots and dashes, so a key is never split at its dots: it
is compared with the listeners that there are. Of several that are set for one listener the longest
name wins, as in Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, Protocol

from barnabas.broker.config.types import (
    ConfigKey,
    ConfigType,
    ConflictingValues,
    Setting,
    Value,
)

PREFIX: Final = "listener.name."

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
"""Every mechanism that Kafka knows; GSSAPI is refused by name."""

OF_MECHANISMS: Final = frozenset(
    (
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.server.callback.handler.class",
        "connections.max.reauth.ms",
    )
)
"""Keys that may also be set for one mechanism of a listener."""

_OF_LISTENERS: Final = frozenset(
    (
        "connections.max.reauth.ms",
        "max.connections",
        "max.connection.creation.rate",
        "principal.builder.class",
    )
)
_FAMILIES: Final = ("ssl.", "sasl.")


class ListenerKey(NamedTuple):
    """A key with a prefix, taken apart."""

    listener: str
    """Name in upper case, as listeners have it."""
    mechanism: str | None
    key: str


def is_of_listeners(key: str) -> bool:
    """Whether a key may be set for one listener."""
    return key in _OF_LISTENERS or key.startswith(_FAMILIES)


def parse_listener_key(name: str, listeners: Iterable[str]) -> ListenerKey:
    """Split a key with a listener's prefix; raises ConfigError for an unknown listener."""
    rest = name.removeprefix(PREFIX)
    for listener in sorted(listeners, key=len, reverse=True):
        own = f"{listener.lower()}."
        if not rest.startswith(own):
            continue
        key = rest.removeprefix(own)
        for mechanism in MECHANISMS:
            if key.startswith(f"{mechanism.lower()}."):
                base = key.removeprefix(f"{mechanism.lower()}.")
                if base in OF_MECHANISMS:
                    return ListenerKey(listener, mechanism, base)
        return ListenerKey(listener, None, key)
    reason = f"{name}: there is no such listener, only {', '.join(listeners)}"
    raise ConflictingValues(name, "", reason)


class Values(Protocol):
    """Part of a broker's configuration that this module reads."""

    @property
    def settings(self) -> Mapping[str, tuple[Setting, ...]]:
        """Configured settings by full name."""

    def value(self, name: str) -> Value:
        """Return the value of a plain key."""


class ListenerConfig:
    """The settings of one listener: its own where there are some, else the broker's."""

    def __init__(self, config: Values, keys: Mapping[str, ConfigKey], listener: str) -> None:
        """``keys`` are those that may be set, by their plain names."""
        self.name = listener
        self._config = config
        self._keys = keys
        self._prefix = f"{PREFIX}{listener.lower()}."

    def value(self, key: str, mechanism: str | None = None) -> Value:
        """Return the effective value for this listener; raises ConfigError for an invalid one."""
        name = self.name_of(key, mechanism)
        if name is None:
            return self._config.value(key)
        return self._keys[key].parse(self._config.settings[name][0].text)

    def name_of(self, key: str, mechanism: str | None = None) -> str | None:
        """Return the full name under which a key is set for this listener alone, if it is."""
        names = [f"{self._prefix}{key}"]
        if mechanism is not None:
            names.insert(0, f"{self._prefix}{mechanism.lower()}.{key}")
        return next((name for name in names if name in self._config.settings), None)

    def type_of(self, key: str) -> ConfigType:
        """Return the type of a key's values."""
        return self._keys[key].type

    def setting_name(self, key: str, mechanism: str | None = None) -> str:
        """Return the name of the deciding setting, for messages."""
        return self.name_of(key, mechanism) or key
