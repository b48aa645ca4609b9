"""Who this client logs in as: from ``sasl.*`` settings to the client's side of an exchange.

JAAS lines are read as people write them for Java clients. Secrets are in no message and no
``repr``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.client.security_keys import (
    JAAS,
    MECHANISM,
    MECHANISMS,
    PASSWORD,
    TOKEN_URL,
    USER,
)

if TYPE_CHECKING:
    from barnabas.protocol.sasl.exchange import ClientExchange
    from barnabas.protocol.sasl.jaas import JaasModule

TOKEN_BYTES_MAX: Final = 64 * 1024

_PLAIN: Final = "PLAIN"
_SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_TOKEN: Final = "OAUTHBEARER"  # noqa: S105  the name of a mechanism
AVAILABLE: Final = (_TOKEN, _PLAIN, *_SCRAM)

_PACKAGE: Final = "org.apache.kafka.common.security"
_SCRAM_MODULE: Final = f"{_PACKAGE}.scram.ScramLoginModule"
_MODULES: Final = {
    _PLAIN: f"{_PACKAGE}.plain.PlainLoginModule",
    **dict.fromkeys(_SCRAM, _SCRAM_MODULE),
    _TOKEN: f"{_PACKAGE}.oauthbearer.OAuthBearerLoginModule",
}
_SHADED: Final = "kafkashaded."
"""What stands before the names of classes in Databricks' Spark."""
_EXTENSION: Final = "extension_"
_BEARER: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """What a client logs in with."""

    mechanism: str
    user: str = ""
    password: str = ""
    token_path: str = ""
    """The file with the token, read at each login: whoever renews it writes it anew."""
    extensions: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Credential({self.who})"

    @property
    def who(self) -> str:
        """Who logs in and how, for messages."""
        return f"{self.mechanism} as {self.user}" if self.user else self.mechanism

    def exchange(self) -> ClientExchange:
        """Return the client's side of a login; raises WrongSetting if there is no token."""
        if self.mechanism == _PLAIN:
            from barnabas.protocol.sasl.plain import PlainClient

            return PlainClient(self.user, self.password)
        if self.mechanism == _TOKEN:
            from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient

            return OAuthBearerClient(_token(self.token_path), dict(self.extensions))
        import secrets

        from barnabas.protocol.sasl import scram

        mechanism = scram.MECHANISMS[self.mechanism]
        return scram.ScramClient(mechanism, self.user, self.password, secrets.token_urlsafe(24))


def credential_of(settings: Mapping[str, str]) -> Credential:
    """Return what ``sasl.*`` settings log in with; raises WrongSetting."""
    mechanism = _mechanism(settings)
    text, user = settings.get(JAAS), settings.get(USER)
    if text and user:
        raise WrongSetting(USER, f"{JAAS} says the same")
    if user and mechanism != _TOKEN:
        if not settings.get(PASSWORD):
            raise WrongSetting(PASSWORD, f"it is not set, and {USER} is")
        return Credential(mechanism, user, settings[PASSWORD])
    if not text:
        module = _MODULES[mechanism]
        raise WrongSetting(JAAS, f"it is not set; {mechanism} takes {module} required ...;")
    options = _options(text, mechanism)
    if mechanism == _TOKEN:
        return _with_token(settings, options)
    if options.get("tokenauth", "").lower() == "true":
        raise WrongSetting(JAAS, "delegation tokens (tokenauth) are not available")
    for name in ("username", "password"):
        if not options.get(name):
            raise WrongSetting(JAAS, f"the login module has no {name}")
    return Credential(mechanism, options["username"], options["password"])


def _mechanism(settings: Mapping[str, str]) -> str:
    key = MECHANISM if settings.get(MECHANISM) or not settings.get(MECHANISMS) else MECHANISMS
    mechanism = settings.get(key, "")
    there_are = f"there are {', '.join(AVAILABLE)}"
    if not mechanism:
        reason = "it is not set, and Kafka's default, GSSAPI (Kerberos), is not available"
        raise WrongSetting(key, f"{reason}; {there_are}")
    if mechanism not in AVAILABLE:
        raise WrongSetting(key, f"{mechanism} is not available; {there_are}")
    return mechanism


def _options(text: str, mechanism: str) -> Mapping[str, str]:
    from barnabas.protocol.sasl.jaas import MalformedJaas, parse_jaas_value

    try:
        module: JaasModule = parse_jaas_value(text)
    except MalformedJaas as error:
        raise WrongSetting(JAAS, str(error)) from None
    if module.name.removeprefix(_SHADED) != _MODULES[mechanism]:
        raise WrongSetting(JAAS, f"{mechanism} has the login module {_MODULES[mechanism]}")
    return module.options


def _with_token(settings: Mapping[str, str], options: Mapping[str, str]) -> Credential:
    """Tokens are read from a file, as Kafka's FileJwtRetriever does."""
    for name in options:
        if not name.startswith(_EXTENSION):
            raise WrongSetting(
                JAAS, f"the option {name} is not available: tokens come from files ({TOKEN_URL})"
            )
    url = settings.get(TOKEN_URL, "")
    if not url:
        raise WrongSetting(TOKEN_URL, "it is not set; file:/path names the file with the token")
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url)
    if parts.scheme.lower() != "file" or parts.netloc not in {"", "localhost"} or not parts.path:
        reason = "tokens are not fetched from a server; file:/path names a file with one"
        raise WrongSetting(TOKEN_URL, reason)
    extensions = tuple((name.removeprefix(_EXTENSION), each) for name, each in options.items())
    return Credential(_TOKEN, token_path=unquote(parts.path), extensions=extensions)


def _token(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(TOKEN_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = getattr(error, "strerror", None) or str(error)
        raise WrongSetting(TOKEN_URL, f"{path}: {problem}") from None
    token = data.decode("ascii", "replace").strip()
    if len(data) > TOKEN_BYTES_MAX or not _BEARER.fullmatch(token):
        raise WrongSetting(TOKEN_URL, f"{path}: there is no token in it")
    return token
