"""Security settings of Kafka's clients: trusted certificates and the identity of this client.

Settings have the names of Kafka's Java client; librdkafka's names for TLS, user, password and
tokens are accepted, too. ``security_of`` checks them and reads no file except those that
``config.providers`` name; ``access`` reads stores and imports ``ssl``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.broker.client.access import Access
from barnabas.broker.client.credentials import Credential, credential_of
from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.client.security_keys import (
    LOGIN_KEYS,
    PROTOCOL,
    PROVIDERS,
    SECRETS,
    check_keys,
    is_about_security,
)
from barnabas.broker.config.security_protocols import PROTOCOLS, has_login, has_tls
from barnabas.broker.security.tls.client import CLIENT_KEYS, client_context
from barnabas.broker.security.tls.errors import TlsError


@dataclass(frozen=True, slots=True, repr=False)
class ClientSecurity:
    """Checked settings. Picklable, with the secrets in them."""

    protocol: str = "PLAINTEXT"
    tls: Mapping[str, str] = field(default_factory=dict)
    """Settings of TLS, as they were given."""
    credential: Credential | None = None

    def __repr__(self) -> str:
        return f"ClientSecurity({self.protocol})"

    def access(self) -> Access:
        """Read the stores, and return the access for connections; raises WrongSetting."""
        if not has_tls(self.protocol):
            return Access(None, self.credential)
        try:
            return Access(client_context(self.tls), self.credential)
        except TlsError as error:
            raise WrongSetting(error.key, error.reason) from None


def security_of(settings: Mapping[str, str], environment: Mapping[str, str]) -> ClientSecurity:
    """Return the security settings of a client; raises WrongSetting.

    Other settings are ignored, as in Kafka's tools. ``environment`` is for ``${env:...}``.
    """
    about = {key: value for key, value in settings.items() if is_about_security(key)}
    given = _resolved(about, environment) if _refers(about) else about
    for key, value in given.items():
        given[key] = _readable(key, value) if key in SECRETS else _readable(key, value).strip()
    check_keys(given)
    protocol = _protocol(given)
    return ClientSecurity(
        protocol,
        {key: value for key, value in given.items() if key in CLIENT_KEYS},
        credential_of(given) if has_login(protocol) else None,
    )


def _protocol(given: Mapping[str, str]) -> str:
    protocol = given.get(PROTOCOL, "").upper()
    if protocol in PROTOCOLS:
        return protocol
    if protocol:
        raise WrongSetting(PROTOCOL, f"{given[PROTOCOL]} is none of {', '.join(PROTOCOLS)}")
    # Kafka's default is PLAINTEXT, by which passwords and certificates would be for nothing.
    useless = [key for key in given if given[key] and key in CLIENT_KEYS | LOGIN_KEYS]
    if useless:
        is_login = any(given.get(key) for key in LOGIN_KEYS)
        hint = "SASL_SSL" if is_login else "SSL"
        reason = f"it is not set, and without it {useless[0]} has no effect; is it {hint}?"
        raise WrongSetting(PROTOCOL, reason)
    return PROTOCOLS[0]


def _readable(key: str, value: str) -> str:
    """Return a value that can be encoded; the encoder's error would show a secret."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise WrongSetting(key, "the value is not valid UTF-8") from None
    return value


def _refers(settings: Mapping[str, str]) -> bool:
    return any(key.startswith(PROVIDERS) or "${" in value for key, value in settings.items())


def _resolved(settings: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Replace references such as ``${file:...}``, as a broker does."""
    from barnabas.broker.config.loading.providers import resolved
    from barnabas.broker.config.types import ConfigError, ConfigSource, Setting

    given = {
        key: Setting(value, ConfigSource.STATIC_BROKER, "client settings")
        for key, value in settings.items()
    }
    try:
        found = resolved(given, environment)
    except ConfigError as error:
        raise WrongSetting(error.key, error.expected.removeprefix(f"{error.key}: ")) from None
    return {key: setting.text for key, setting in found.items()}
