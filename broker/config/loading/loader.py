"""Loading a configuration: defaults < server.properties < environment < ``--override``.

Defaults are those of the code, under those of a file that an image or a package may bring.

Every value remembers who set it. Keys of Kafka's without a meaning here are ignored, unknown ones
are reported; a bad value is an error that names the key, the value, what is accepted and where
the value was set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.cluster import (
    FLUSH_OBJECT_MIN,
    FLUSH_OBJECT_MIN_BYTES,
    METADATA,
    STORAGE,
    TRANSACTION_WAIT,
    TRANSACTION_WAIT_MS,
    check_cordoned,
    check_object_store,
)
from barnabas.broker.config.groups import check_consumer_groups
from barnabas.broker.config.ignored import IGNORED_CONFIGS, is_ignored
from barnabas.broker.config.listener_keys import PREFIX as LISTENER_PREFIX
from barnabas.broker.config.listeners import parse_listeners
from barnabas.broker.config.loading.environment import from_environment, ignored_variables
from barnabas.broker.config.loading.properties import Property
from barnabas.broker.config.loading.providers import resolved
from barnabas.broker.config.protection import check_mechanisms, check_protection
from barnabas.broker.config.topic_values import check_topic_configs
from barnabas.broker.config.types import (
    ConfigError,
    ConfigSource,
    ConflictingValues,
    Setting,
    UnknownSetting,
)

OVERRIDE = "--override"
"""Origin of the settings that were given on the command line."""

_OF_LISTENERS = ("listeners", "advertised.listeners", "listener.security.protocol.map")


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """A configuration, and the given keys that it does not contain."""

    config: BrokerConfig
    ignored: tuple[str, ...]
    """Kafka's keys, and variables of its start scripts, that have no effect here."""
    unknown: tuple[str, ...]
    """Unknown keys."""


def load_config(
    properties: Iterable[Property] = (),
    environment: Mapping[str, str] | None = None,
    overrides: Sequence[str] = (),
    *,
    file_name: str = "server.properties",
    defaults: Iterable[Property] = (),
    defaults_name: str = "defaults",
) -> LoadedConfig:
    """Return the checked configuration; raises ConfigError with a one-line message.

    ``overrides`` are "key=value" texts. A file and the environment may carry the keys of other
    programs; an override that is unknown is a slip, and an error. The files have been read and
    parsed by the caller. ``defaults`` hold where nothing else sets or implies a key.
    """
    given: dict[str, Setting] = {}
    for each in properties:
        given[each.key] = _setting(each.value, f"{file_name} line {each.line}")
    for variable in from_environment(environment or {}):
        given[variable.key] = _setting(variable.value, f"environment {variable.name}")
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConflictingValues(key, value, f"--override {override}: must be key=value")
        given[key.strip()] = _setting(value, OVERRIDE)
    _resolve_node_id(given)
    _derive_listeners(given)
    _lay_under(given, defaults, defaults_name)
    given = resolved(given, environment or {})
    if METADATA in given:
        given.setdefault(TRANSACTION_WAIT, _setting(str(TRANSACTION_WAIT_MS), "of a cluster"))
    if STORAGE in given:
        object_min = str(FLUSH_OBJECT_MIN_BYTES)
        given.setdefault(FLUSH_OBJECT_MIN, _setting(object_min, "with an object store"))
    _check_roles(given)
    known = {
        key: (setting,)
        for key, setting in given.items()
        if key in BROKER_CONFIGS
        or key.startswith(LISTENER_PREFIX)
        or (key in IGNORED_CONFIGS and is_ignored(key))
    }
    others = sorted(
        key for key in given.keys() - BROKER_CONFIGS.keys() if not key.startswith(LISTENER_PREFIX)
    )
    for key in others:
        if given[key].origin == OVERRIDE and not is_ignored(key):
            raise UnknownSetting(key, BROKER_CONFIGS)
    config = _with_origin(known)
    check_protection(given, config)
    check_together(config)
    return LoadedConfig(
        config=config,
        ignored=(
            *(key for key in others if is_ignored(key)),
            *ignored_variables(environment or {}),
        ),
        unknown=tuple(key for key in others if not is_ignored(key)),
    )


def check_together(config: BrokerConfig) -> None:
    """Check rules about several values; raises ConfigError."""
    _ = config.endpoints
    _ = config.http_address
    check_cordoned(config.cordoned_log_dirs, config.data_directory)
    check_object_store(config)
    check_mechanisms(config)
    check_topic_configs({}, config)
    check_consumer_groups(config)
    if config.message_max_bytes >= config.journal_file_bytes:
        reason = (
            f"message.max.bytes ({config.message_max_bytes}) must be smaller than "
            f"barnabas.journal.file.bytes ({config.journal_file_bytes})"
        )
        raise ConflictingValues("message.max.bytes", str(config.message_max_bytes), reason)
    if config.journal_max_bytes < 2 * config.journal_file_bytes:
        reason = (
            f"barnabas.journal.max.bytes ({config.journal_max_bytes}) must be at least twice "
            f"barnabas.journal.file.bytes ({config.journal_file_bytes})"
        )
        raise ConflictingValues("barnabas.journal.max.bytes", str(config.journal_max_bytes), reason)


def _setting(text: str, origin: str) -> Setting:
    return Setting(text.strip(), ConfigSource.STATIC_BROKER, origin)


def _with_origin(known: Mapping[str, tuple[Setting, ...]]) -> BrokerConfig:
    try:
        return BrokerConfig().with_settings(known)
    except ConfigError as error:
        origin = known[error.key][0].origin
        accepted = BROKER_CONFIGS[error.key].accepted
        expected = f"{error.expected}; accepted: {accepted} ({origin})"
        raise ConfigError(error.key, error.value, expected) from None


def _lay_under(given: dict[str, Setting], defaults: Iterable[Property], name: str) -> None:
    """Apply ``defaults`` to keys that are not set yet.

    Listeners, advertised listeners and their protocols belong together: advertised listeners
    without their listeners would be an error. Given protocols are added to those of the defaults.
    """
    standing = {
        each.key: _setting(each.value, f"{name} line {each.line}")
        for each in defaults
        if "listeners" not in given or each.key not in _OF_LISTENERS
    }
    protocols = given.get("listener.security.protocol.map")
    if protocols is not None and "listener.security.protocol.map" in standing:
        both = f"{standing['listener.security.protocol.map'].text},{protocols.text}"
        given["listener.security.protocol.map"] = protocols._replace(text=both)
    for key, setting in standing.items():
        given.setdefault(key, setting)


def _resolve_node_id(given: dict[str, Setting]) -> None:
    """Apply the older name ``broker.id`` to ``node.id``; -1 used to mean "any"."""
    older = given.pop("broker.id", None)
    if older is None or older.text == "-1":
        return
    newer = given.setdefault("node.id", older)
    if newer.text != older.text:
        reason = f"broker.id ({older.text}) and node.id ({newer.text}) must be the same"
        raise ConflictingValues("broker.id", older.text, reason)


def _derive_listeners(given: dict[str, Setting]) -> None:
    """Listen where clients are sent, as Kafka's image does, unless configured otherwise.

    Only for the environment: in a file, ``listeners`` has its default.
    """
    advertised = given.get("advertised.listeners")
    if advertised is None or "listeners" in given or "environment" not in advertised.origin:
        return
    addresses = parse_listeners("advertised.listeners", advertised.text.split(","))
    text = ",".join(f"{name}://0.0.0.0:{port}" for name, (_, port) in addresses.items())
    given["listeners"] = advertised._replace(text=text)


def _check_roles(given: Mapping[str, Setting]) -> None:
    roles = given.get("process.roles")
    if roles is not None and "broker" not in [role.strip() for role in roles.text.split(",")]:
        expected = f"There is no separate controller, broker must be one of them ({roles.origin})"
        raise ConfigError("process.roles", roles.text, expected)
