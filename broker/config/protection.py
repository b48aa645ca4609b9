"""Keys that protect something: each one has an effect or stops the start.

A misspelled key, a key of a missing listener or of one that cannot use it, or a key of an
unavailable feature (a Java class, Kerberos) would leave open what the operator believes to be
closed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.listener_keys import (
    MECHANISMS,
    PREFIX,
    ListenerKey,
    is_of_listeners,
    parse_listener_key,
)
from barnabas.broker.config.listener_settings import listener_names
from barnabas.broker.config.security_protocols import has_login, has_tls
from barnabas.broker.config.types import ConfigError, ConflictingValues, Setting, UnknownSetting

PROTECTING: Final = (
    "allow.everyone.",
    "authorizer.",
    "barnabas.",
    "config.providers",
    "connection.failed.authentication.",
    "connections.max.reauth.",
    "listener.name.",
    "max.connection",
    "sasl.",
    "ssl.",
    "super.users",
)
"""Prefixes of such keys, including those of Barnabas, which no other program has."""

NEAR: Final = 0.8
"""Similarity (by difflib) from which an unknown key counts as a misspelled known key.

``authoriser`` is one. A lower value would include keys of other versions of Kafka.
"""

UNAVAILABLE: Final[Mapping[str, str]] = {
    "alter.config.policy.class.name": "no Java class can be loaded",
    "create.topic.policy.class.name": "no Java class can be loaded",
    "principal.builder.class": "no Java class can be loaded; ssl.principal.mapping.rules has rules",
    "sasl.oauthbearer.jwt.validator.class": "no Java class can be loaded",
    "sasl.server.callback.handler.class": "no Java class can be loaded",
    "security.providers": "no Java class can be loaded",
    "ssl.engine.factory.class": "no Java class can be loaded",
}
"""Protecting keys of features that do not exist, each with the reason."""

_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"
AS_WELL: Final[Mapping[str, tuple[str, ...]]] = {
    "sasl.oauthbearer.jwt.validator.class": (f"{_OAUTH}.BrokerJwtValidator",),
    "sasl.server.callback.handler.class": (
        f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
        f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler",
    ),
}
"""Classes of Apache Kafka whose function this broker has built in."""


def check_protection(given: Mapping[str, Setting], config: BrokerConfig) -> None:
    """Raise ConfigError for a security key without effect."""
    names = listener_names(config)
    protocols = {each.name: each.security_protocol for each in config.endpoints}
    known = {*BROKER_CONFIGS, *IGNORED_CONFIGS}
    for name, setting in given.items():
        if name.startswith(PREFIX):
            parsed = parse_listener_key(name, names)
            # Listeners of controllers are not opened: what is theirs is for Kafka.
            _check_of_listener(name, setting, parsed, protocols.get(parsed.listener))
            continue
        _check_available(name, name, setting)
        if name not in known and _is_slip(name, names, known):
            raise UnknownSetting(name, known)
    _check_access_control(given, config)
    _check_client_auth(given, config)


def _is_slip(name: str, listeners: Collection[str], known: Collection[str]) -> bool:
    """Return whether an unknown key resembles a security key."""
    if name.startswith(PROTECTING):
        return True
    from difflib import get_close_matches  # Only now: it would slow each start down.

    if get_close_matches(".".join(name.split(".", 2)[:2]) + ".", [PREFIX], cutoff=NEAR):
        return True
    # A key of a listener or mechanism without the required prefix.
    for owner in (*listeners, *MECHANISMS):
        if is_of_listeners(name.removeprefix(f"{owner.lower()}.")):
            return True
    if any(name.endswith(f".{key}") for key in known):
        return False  # What another program calls its own: zookeeper.ssl.keystore.location.
    (closest,) = get_close_matches(name, known, n=1, cutoff=NEAR) or ("",)
    return closest.startswith(PROTECTING) or closest in UNAVAILABLE


def _check_of_listener(
    name: str, setting: Setting, parsed: ListenerKey, protocol: str | None
) -> None:
    _check_available(name, parsed.key, setting)
    if parsed.key in IGNORED_CONFIGS:
        return
    if parsed.key not in BROKER_CONFIGS or not is_of_listeners(parsed.key):
        known = filter(is_of_listeners, BROKER_CONFIGS)
        stem = name.removesuffix(parsed.key)
        raise UnknownSetting(name, [f"{stem}{key}" for key in known])
    lacks = None if protocol is None else _missing_feature(parsed.key, protocol)
    if lacks is not None:
        reason = (
            f"{name} has no effect: listener {parsed.listener} has no {lacks}, its protocol is "
            f"{protocol} ({setting.origin})"
        )
        raise ConflictingValues(name, setting.text, reason)
    try:
        BROKER_CONFIGS[parsed.key].parse(setting.text)
    except ConfigError as error:
        raise ConfigError(name, error.value, f"{error.expected} ({setting.origin})") from None


def _missing_feature(key: str, protocol: str) -> str | None:
    """Return the feature that a listener of this protocol lacks for a key, or None."""
    if key.startswith("ssl.") and not has_tls(protocol):
        return "TLS"
    is_of_logins = key.startswith("sasl.") or key == "connections.max.reauth.ms"
    return "login" if is_of_logins and not has_login(protocol) else None


def _check_access_control(given: Mapping[str, Setting], config: BrokerConfig) -> None:
    if config.authorizer_class_name:
        return
    for key in ("super.users", "allow.everyone.if.no.acl.found"):
        setting = given.get(key)
        if setting is not None and setting.text:
            reason = f"{key} has no effect without authorizer.class.name ({setting.origin})"
            raise ConflictingValues(key, setting.text, reason)


def _check_client_auth(given: Mapping[str, Setting], config: BrokerConfig) -> None:
    """Raise ConfigError if client certificates are configured but never requested."""
    key = "ssl.client.auth"
    asked = config.ssl_client_auth
    if asked == "none":
        return
    where = f"({given[key].origin})"
    with_tls = [each for each in config.endpoints if each.has_tls]
    if not with_tls:
        reason = f"{key}={asked} has no effect: no listener has TLS {where}"
        raise ConflictingValues(key, asked, reason)
    for endpoint in with_tls:
        own = f"{PREFIX}{endpoint.name.lower()}.{key}"
        if endpoint.has_login and own not in given:
            reason = (
                f"{key}={asked} has no effect on SASL listener {endpoint.name}, as in Apache "
                f"Kafka; set {own} {where}"
            )
            raise ConflictingValues(key, asked, reason)


def _check_available(name: str, key: str, setting: Setting) -> None:
    default = IGNORED_CONFIGS[key].default_text if key in IGNORED_CONFIGS else None
    if key in UNAVAILABLE and setting.text not in {"", default, *AS_WELL.get(key, ())}:
        raise ConfigError(name, setting.text, f"{UNAVAILABLE[key]} ({setting.origin})")


def check_mechanisms(config: BrokerConfig) -> None:
    """Raise ConfigError unless every SASL listener has a mechanism that is available."""
    for endpoint in config.endpoints:
        if not endpoint.has_login:
            continue
        listener = config.for_listener(endpoint.name)
        value = listener.value("sasl.enabled.mechanisms")
        assert isinstance(value, tuple)
        name = listener.setting_name("sasl.enabled.mechanisms")
        for mechanism in value or ("none",):
            if mechanism not in AVAILABLE_MECHANISMS:
                raise ConfigError(
                    name,
                    ",".join(value),
                    f"listener {endpoint.name} needs one or more of "
                    f"{', '.join(AVAILABLE_MECHANISMS)}; {mechanism} is not available",
                )


AVAILABLE_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
