"""Keys that protect something: each works or stops the start, none is passed over.

A key that is misspelt, that is for a listener which is not there, or that names what this broker
cannot do (a Java class, Kerberos) would leave open what its user believes to be closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.broker.config.broker_config import BROKER_CONFIGS, BrokerConfig
from barnabas.broker.config.ignored import IGNORED_CONFIGS
from barnabas.broker.config.listener_keys import (
    PREFIX,
    ListenerKey,
    is_of_listeners,
    parse_listener_key,
)
from barnabas.broker.config.types import ConfigError, Setting, UnknownSetting

PROTECTING: Final = (
    "allow.everyone.",
    "authorizer.",
    "listener.name.",
    "sasl.",
    "ssl.",
    "super.users",
)
"""How such keys begin."""

UNAVAILABLE: Final[Mapping[str, str]] = {
    "principal.builder.class": "no Java class can be loaded; ssl.principal.mapping.rules has rules",
    "sasl.oauthbearer.jwt.validator.class": "no Java class can be loaded",
    "sasl.server.callback.handler.class": "no Java class can be loaded",
    "security.providers": "no Java class can be loaded",
    "ssl.engine.factory.class": "no Java class can be loaded",
}
"""Keys that would protect something if what they name were there, and why it is not."""

_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer"
AS_WELL: Final[Mapping[str, tuple[str, ...]]] = {
    "sasl.oauthbearer.jwt.validator.class": (f"{_OAUTH}.BrokerJwtValidator",),
    "sasl.server.callback.handler.class": (
        f"{_OAUTH}.OAuthBearerValidatorCallbackHandler",
        f"{_OAUTH}.secured.OAuthBearerValidatorCallbackHandler",
    ),
}
"""Classes of Apache Kafka that mean what is done here anyway."""


def check_protection(given: Mapping[str, Setting], listeners: Iterable[str]) -> None:
    """Raise ConfigError for a key that protects something and would have no effect."""
    names = list(listeners)
    for name, setting in given.items():
        if name.startswith(PREFIX):
            _check_of_listener(name, setting, parse_listener_key(name, names))
            continue
        _check_available(name, name, setting)
        is_known = name in BROKER_CONFIGS or name in IGNORED_CONFIGS
        if name.startswith(PROTECTING) and not is_known:
            raise UnknownSetting(name, [*BROKER_CONFIGS, *IGNORED_CONFIGS])


def _check_of_listener(name: str, setting: Setting, parsed: ListenerKey) -> None:
    _check_available(name, parsed.key, setting)
    if parsed.key in IGNORED_CONFIGS:
        return
    if parsed.key not in BROKER_CONFIGS or not is_of_listeners(parsed.key):
        known = filter(is_of_listeners, BROKER_CONFIGS)
        stem = name.removesuffix(parsed.key)
        raise UnknownSetting(name, [f"{stem}{key}" for key in known])
    try:
        BROKER_CONFIGS[parsed.key].parse(setting.text)
    except ConfigError as error:
        raise ConfigError(name, error.value, f"{error.expected} ({setting.origin})") from None


def _check_available(name: str, key: str, setting: Setting) -> None:
    default = IGNORED_CONFIGS[key].default_text if key in IGNORED_CONFIGS else None
    if key in UNAVAILABLE and setting.text not in {"", default, *AS_WELL.get(key, ())}:
        raise ConfigError(name, setting.text, f"{UNAVAILABLE[key]} ({setting.origin})")


def check_mechanisms(config: BrokerConfig) -> None:
    """Raise ConfigError unless every SASL listener has a mechanism that is available."""
    for endpoint in config.endpoints:
        if not endpoint.security_protocol.startswith("SASL_"):
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
