"""TLS of listeners: from a configuration to contexts, and users from certificates.

A listener's context is a value that is replaced as a whole: who connects takes the current one, and
whoever is connected keeps theirs. A new one is complete and tried before it takes the place of the
old one; one that cannot be made changes nothing.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.types import ConfigError, ConfigType, ConflictingValues
from barnabas.broker.security.certificate_names import CertificateNames, MalformedRules
from barnabas.broker.security.principals import ANONYMOUS, Principal, user
from barnabas.broker.tls.certificates import Certificate, describe_time
from barnabas.broker.tls.contexts import ENABLED_PROTOCOLS, PROTOCOLS
from barnabas.broker.tls.errors import TlsError
from barnabas.broker.tls.server import ServerSettings, server_tls
from barnabas.broker.tls.stores import KeyStoreSettings, TrustStoreSettings

if TYPE_CHECKING:
    import ssl

    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.config.listeners import Endpoint

logger = logging.getLogger("barnabas.broker.security.tls")

CLIENT_AUTH: Final = "ssl.client.auth"
_RULES: Final = "ssl.principal.mapping.rules"


class ListenerTls:
    """TLS of one listener."""

    def __init__(
        self, name: str, settings: ServerSettings, names: CertificateNames | None = None
    ) -> None:
        """``names`` makes users of certificates; None: certificates do not say who a client is.

        Raises TlsError.
        """
        self.name = name
        self._names = names
        self._settings = settings
        self._tls = server_tls(settings)

    @property
    def context(self) -> ssl.SSLContext:
        """The context for the next connection."""
        return self._tls.context

    @property
    def not_after_s(self) -> int:
        """When the first certificate of the listener's chain ends, in seconds since the epoch."""
        return self._tls.not_after_s

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Return who a client is by its certificate in DER; raises NoName, MalformedDer."""
        if certificate is None or self._names is None:
            return ANONYMOUS
        return user(self._names.user_of(Certificate(certificate).subject))


# ---------------------------------------------------------------------------- from a configuration


def tls_of(config: BrokerConfig, endpoint: Endpoint) -> ListenerTls | None:
    """Return the TLS of a listener, None where it has none; raises ConfigError."""
    if endpoint.security_protocol not in {"SSL", "SASL_SSL"}:
        return None
    listener = config.for_listener(endpoint.name)
    is_login = endpoint.security_protocol == "SASL_SSL"
    try:
        settings = _settings_of(listener, endpoint.name, is_login=is_login)
        names = None if is_login else CertificateNames(_text(listener, _RULES) or "")
        tls = ListenerTls(endpoint.name, settings, names)
    except MalformedRules as error:
        raise _refused(config, listener, TlsError(_RULES, str(error))) from None
    except TlsError as error:
        raise _refused(config, listener, error) from None
    if tls.not_after_s <= time.time():
        logger.error(
            "certificate has expired listener=%s at=%s", tls.name, describe_time(tls.not_after_s)
        )
    return tls


def _settings_of(listener: ListenerConfig, name: str, *, is_login: bool) -> ServerSettings:
    return ServerSettings(
        key_store=KeyStoreSettings(
            type=(_text(listener, "ssl.keystore.type") or "").upper(),
            location=_text(listener, "ssl.keystore.location"),
            password=_text(listener, "ssl.keystore.password"),
            key_password=_text(listener, "ssl.key.password"),
            key=_text(listener, "ssl.keystore.key"),
            certificate_chain=_text(listener, "ssl.keystore.certificate.chain"),
        ),
        trust_store=TrustStoreSettings(
            type=(_text(listener, "ssl.truststore.type") or "").upper(),
            location=_text(listener, "ssl.truststore.location"),
            password=_text(listener, "ssl.truststore.password"),
            certificates=_text(listener, "ssl.truststore.certificates"),
        ),
        client_auth=_client_auth(listener, name, is_login=is_login),
        protocols=_protocols(listener),
        cipher_suites=_items(listener, "ssl.cipher.suites"),
    )


def _client_auth(listener: ListenerConfig, name: str, *, is_login: bool) -> str:
    """Return what is asked of clients; on SASL listeners only their own setting counts."""
    asked = _text(listener, CLIENT_AUTH) or "none"
    if is_login and listener.name_of(CLIENT_AUTH) is None:
        if asked != "none":
            logger.warning(
                "%s=%s has no effect on SASL listener %s, as in Apache Kafka; "
                "set listener.name.%s.%s",
                *(CLIENT_AUTH, asked, name, name.lower(), CLIENT_AUTH),
            )
        return "none"
    return asked


def _protocols(listener: ListenerConfig) -> tuple[str, ...]:
    """Return the enabled versions up to the newest that ``ssl.protocol`` allows."""
    newest = PROTOCOLS.index(_text(listener, "ssl.protocol") or PROTOCOLS[-1])
    enabled = _items(listener, ENABLED_PROTOCOLS)
    served = tuple(each for each in PROTOCOLS[: newest + 1] if each in enabled)
    if not served:
        reason = f"none of {', '.join(enabled) or 'no versions'} is as old as ssl.protocol says"
        raise TlsError(ENABLED_PROTOCOLS, reason)
    return served


def _text(listener: ListenerConfig, key: str) -> str | None:
    value = listener.value(key)
    assert value is None or isinstance(value, str)
    return value


def _items(listener: ListenerConfig, key: str) -> tuple[str, ...]:
    value = listener.value(key)
    assert isinstance(value, tuple)
    return value


def _refused(config: BrokerConfig, listener: ListenerConfig, error: TlsError) -> ConfigError:
    """Return the error with the setting's full name, its value if it is no secret, its origin."""
    name = listener.setting_name(error.key)
    given = config.settings.get(name)
    if not given:
        reason = f"listener {listener.name}: {error.key} is not set: {error.reason}"
        return ConflictingValues(name, "", reason)
    is_secret = listener.type_of(error.key) is ConfigType.PASSWORD
    shown = "[hidden]" if is_secret else given[0].text
    return ConfigError(name, shown, f"{error.reason} ({given[0].origin})")
