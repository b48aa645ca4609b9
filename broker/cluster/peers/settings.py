"""Settings of brokers' connections to each other, by Kafka's keys: the listener and the login.

A broker's client side is configured as in Apache Kafka. The settings of the brokers' listener also
apply to the connections that this broker opens. Its ``ssl.*`` stores hold the client certificate.
The login module of ``sasl.mechanism.inter.broker.protocol`` has the user that the brokers log in
as. A super user's permissions or an ACL let that user act for the cluster, by the table of
permission checks. A standalone broker neither reads nor refuses any of these settings.
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
"""Keys of a listener that also apply to its clients."""


def listener_of_brokers(config: BrokerConfig) -> Endpoint:
    """Return the listener for connections between brokers; raises ConfigError."""
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
    """Return the TLS and login settings of connections to other brokers; raises ConfigError.

    Files of stores are read when a connection is opened, not here.
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
    """Return the brokers' mechanism and login module."""
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
