"""TLS of listeners: from a configuration to contexts, and users from certificates.

A listener's context is replaced as a whole: a new connection uses the current one, and open
connections keep theirs. A new context is built and tested before it replaces the old one; one that
cannot be built changes nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.types import HIDDEN, ConfigError, ConfigType, ConflictingValues
from barnabas.broker.security.listeners.certificate_names import CertificateNames, MalformedRules
from barnabas.broker.security.principals import ANONYMOUS, Principal, user
from barnabas.broker.security.tls.certificates import Certificate, describe_time
from barnabas.broker.security.tls.client_auth import client_auth_of
from barnabas.broker.security.tls.contexts import ENABLED_PROTOCOLS, PROTOCOLS
from barnabas.broker.security.tls.errors import TlsError
from barnabas.broker.security.tls.server import ServerSettings, ServerTls, files_of, server_tls
from barnabas.broker.security.tls.stores import KeyStoreSettings, TrustStoreSettings
from barnabas.storage.runtime.clock import now_seconds

if TYPE_CHECKING:
    import ssl

    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.config.listeners import Endpoint

logger = logging.getLogger("barnabas.broker.security.listeners.tls")

_RULES: Final = "ssl.principal.mapping.rules"


class ListenerTls:
    """TLS of one listener."""

    def __init__(
        self,
        endpoint: Endpoint,
        settings: ServerSettings,
        names: CertificateNames | None = None,
        *,
        may_change_name: bool = False,
        may_lose_names: bool = False,
    ) -> None:
        """``names`` derives users from certificates, or is None if certificates do not
        authenticate.

        The rest specifies how a certificate may differ from the one that it replaces. Raises
        TlsError.
        """
        self.endpoint = endpoint
        self.settings = settings
        self.problem: str | None = None
        """Reason why the latest reload has failed, or None."""
        self._names = names
        self._may_change_name = may_change_name
        self._may_lose_names = may_lose_names
        self._tls = server_tls(settings)

    @property
    def name(self) -> str:
        """Return the listener's name."""
        return self.endpoint.name

    @property
    def context(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        return self._tls.context

    @property
    def subject(self) -> str:
        """Return the subject of the certificate."""
        return self._tls.chain[0].subject

    @property
    def not_before_s(self) -> int:
        """Return the latest start of validity in the chain, in seconds since the epoch."""
        return self._tls.not_before_s

    @property
    def not_after_s(self) -> int:
        """Return the earliest end of validity in the chain, in seconds since the epoch."""
        return self._tls.not_after_s

    def principal_of(self, certificate: bytes | None) -> Principal:
        """Return the principal of a client's certificate in DER; raises NoName, MalformedDer."""
        if certificate is None or self._names is None:
            return ANONYMOUS
        return user(self._names.user_of(Certificate(certificate).subject))

    def has_changed(self) -> bool:
        """Whether a file of the stores differs from the one in use."""
        return files_of(self.settings) != self._tls.files

    def made(self, settings: ServerSettings, now_s: float) -> ServerTls:
        """Return the TLS that would replace the current one; raises TlsError.

        The messages about names are Apache Kafka's.
        """
        new = server_tls(settings)
        own, other = self._tls.chain[0], new.chain[0]
        key = new.key_name
        if new.not_after_s <= now_s:
            raise TlsError(key, f"the certificate has expired at {describe_time(new.not_after_s)}")
        if new.not_before_s > now_s:
            begin = describe_time(new.not_before_s)
            raise TlsError(key, f"the certificate is not valid before {begin}")
        if own.subject_der != other.subject_der and not self._may_change_name:
            reason = (
                "Keystore DistinguishedName does not match: "
                f"existing={own.subject}, new={other.subject} (ssl.allow.dn.changes)"
            )
            raise TlsError(key, reason)
        if not own.alternative_names <= other.alternative_names and not self._may_lose_names:
            reason = (
                "Keystore SubjectAltNames do not match: "
                f"existing={own.hosts}, new={other.hosts} (ssl.allow.san.changes)"
            )
            raise TlsError(key, reason)
        return new

    def replace(self, settings: ServerSettings, new: ServerTls) -> None:
        """Use the result of ``made`` from the next connection on."""
        self.settings = settings
        self._tls = new
        self.problem = None


# ---------------------------------------------------------------------------- from a configuration


def tls_of(config: BrokerConfig, endpoint: Endpoint) -> ListenerTls | None:
    """Return the TLS of a listener, or None without TLS; raises ConfigError."""
    if not endpoint.has_tls:
        return None
    listener = config.for_listener(endpoint.name)
    settings = settings_of(config, endpoint)
    try:
        tls = ListenerTls(
            endpoint,
            settings,
            None if endpoint.has_login else CertificateNames(_text(listener, _RULES) or ""),
            may_change_name=bool(listener.value("ssl.allow.dn.changes")),
            may_lose_names=bool(listener.value("ssl.allow.san.changes")),
        )
    except MalformedRules as error:
        raise refused_by(config, endpoint, TlsError(_RULES, str(error))) from None
    except TlsError as error:
        raise refused_by(config, endpoint, error) from None
    _warn_of_dates(tls)
    return tls


def settings_of(config: BrokerConfig, endpoint: Endpoint) -> ServerSettings:
    """Return the TLS settings of a listener; raises ConfigError."""
    listener = config.for_listener(endpoint.name)
    try:
        return _settings_of(listener, endpoint)
    except TlsError as error:
        raise refused_by(config, endpoint, error) from None


def refused_by(config: BrokerConfig, endpoint: Endpoint, error: TlsError) -> ConfigError:
    """Return the error with the setting's full name, its origin, and its value unless secret."""
    listener = config.for_listener(endpoint.name)
    name = listener.setting_name(error.key)
    given = config.settings.get(name)
    if not given:
        reason = f"listener {listener.name}: {error.key} is not set: {error.reason}"
        return ConflictingValues(name, "", reason)
    is_secret = listener.type_of(error.key) is ConfigType.PASSWORD
    shown = HIDDEN if is_secret else given[0].text
    return ConfigError(name, shown, f"{error.reason} ({given[0].origin})")


def _warn_of_dates(tls: ListenerTls) -> None:
    """Log an error about dates for which clients refuse the certificate; the start continues."""
    now_s = now_seconds()
    if tls.not_after_s <= now_s:
        end = describe_time(tls.not_after_s)
        logger.error("the certificate has expired listener=%s at=%s", tls.name, end)
    elif tls.not_before_s > now_s:
        begin = describe_time(tls.not_before_s)
        logger.error("the certificate is not valid yet listener=%s before=%s", tls.name, begin)


def _settings_of(listener: ListenerConfig, endpoint: Endpoint) -> ServerSettings:
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
        client_auth=client_auth_of(listener, is_login=endpoint.has_login),
        protocols=_protocols(listener),
        cipher_suites=_items(listener, "ssl.cipher.suites"),
    )


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
