"""How brokers connect to each other, by Kafka's keys: which listener, and as whom.

A broker's client side is configured as Apache Kafka's: the settings of the listener that brokers
use hold for who connects there as well, ``ssl.*`` of its stores (its certificate is the client's)
and the login module of ``sasl.mechanism.inter.broker.protocol``, whose user is the one that
brokers are. That user acts for the cluster by being a super user or by an ACL, as the table of
checks has it. Nothing here is looked at, or refused, in a broker that is alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.client.security import ClientSecurity, security_of
from barnabas.broker.client.security_keys import (
    JAAS,
    LOGIN_KEYS,
    MECHANISM,
    PROTOCOL,
    TOKEN_TIMES,
)
from barnabas.broker.cluster.peers.interface import Limits
from barnabas.broker.config.protection import AVAILABLE_MECHANISMS
from barnabas.broker.config.security_protocols import PROTOCOLS
from barnabas.broker.config.types import ConfigError, ConflictingValues
from barnabas.broker.security.sasl.jaas_modules import JaasModules
from barnabas.broker.security.tls.client import CLIENT_KEYS
from barnabas.protocol.sasl.jaas import jaas_text

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listeners import Endpoint

LISTENER_NAME: Final = "inter.broker.listener.name"
SECURITY_PROTOCOL: Final = "security.inter.broker.protocol"
SASL_MECHANISM: Final = "sasl.mechanism.inter.broker.protocol"

_OF_CLIENTS: Final = frozenset(
    {
        *CLIENT_KEYS,
        *(LOGIN_KEYS - {JAAS, MECHANISM}),
        *TOKEN_TIMES,
        "sasl.login.callback.handler.class",
    }
)
"""Keys of a listener that are its clients', too."""


def listener_of_brokers(config: BrokerConfig) -> Endpoint:
    """Return the listener at which brokers meet each other; raises ConfigError."""
    name = config.inter_broker_listener_name
    endpoints = {each.name: each for each in config.endpoints}
    if name and SECURITY_PROTOCOL in config.settings:
        reason = f"Only one of {LISTENER_NAME} and {SECURITY_PROTOCOL} should be set."
        raise ConflictingValues(LISTENER_NAME, name, reason)
    if name:
        key = LISTENER_NAME
    else:
        key, name = SECURITY_PROTOCOL, config.security_inter_broker_protocol
        if name.upper() not in PROTOCOLS:
            raise ConfigError(key, name, f"Value must be one of {', '.join(PROTOCOLS)}")
    found = endpoints.get(name.upper())
    if found is None:
        reason = f"{key} must name a listener: {name} is none of {', '.join(endpoints)}"
        raise ConflictingValues(key, name, reason)
    return found


def security_of_brokers(config: BrokerConfig) -> ClientSecurity:
    """Return how this broker is let in by others; raises ConfigError.

    Files of stores are read where a connection is made, not here.
    """
    endpoint = listener_of_brokers(config)
    settings = {PROTOCOL: endpoint.security_protocol}
    for key in _OF_CLIENTS:
        name = _setting_name(key, config, endpoint)
        if name in config.settings:
            settings[key] = config.settings[name][0].text
    if endpoint.has_login:
        settings |= _login(config, endpoint)
    try:
        return security_of(settings, {})
    except WrongSetting as error:
        name = _setting_name(error.key, config, endpoint)
        reason = f"listener {endpoint.name}, as brokers connect to it: {error.key}: {error.reason}"
        raise ConflictingValues(name, "", reason) from None


def limits_of(config: BrokerConfig) -> Limits:
    """Return the limits of connections to other brokers."""
    return Limits(connect_timeout_ms=config.socket_connection_setup_timeout_ms)


def _login(config: BrokerConfig, endpoint: Endpoint) -> Mapping[str, str]:
    """Return mechanism and login module of brokers."""
    mechanism = config.sasl_mechanism_inter_broker_protocol
    listener = config.for_listener(endpoint.name)
    enabled = listener.value("sasl.enabled.mechanisms")
    assert isinstance(enabled, tuple)
    if mechanism not in enabled or mechanism not in AVAILABLE_MECHANISMS:
        reason = (
            f"{SASL_MECHANISM} must be one that listener {endpoint.name} offers"
            f" ({', '.join(enabled)}), not {mechanism}"
        )
        raise ConflictingValues(SASL_MECHANISM, mechanism, reason)
    module = JaasModules(config.sasl_jaas_file).of(listener, endpoint.name, mechanism)
    found = {MECHANISM: mechanism}
    if module is not None:
        found[JAAS] = jaas_text(module)
    return found


def _setting_name(key: str, config: BrokerConfig, endpoint: Endpoint) -> str:
    """Return the full name of the setting that decides for a listener."""
    listener = config.for_listener(endpoint.name)
    mechanism = config.sasl_mechanism_inter_broker_protocol if endpoint.has_login else None
    return listener.setting_name(key, mechanism)
