"""Credentials of this client: from ``sasl.*`` settings to the client's side of an exchange.

JAAS lines have the syntax of Java clients. Secrets are in no message and no ``repr``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.client.security_keys import (
    JAAS,
    MECHANISM,
    MECHANISMS,
    METHOD,
    PASSWORD,
    SHADED,
    TOKEN_URL,
    USER,
)
from barnabas.broker.client.token_endpoint import BEARER, TOKEN_BYTES_MAX, TokenEndpoint

if TYPE_CHECKING:
    from barnabas.protocol.sasl.exchange import ClientExchange
    from barnabas.protocol.sasl.jaas import JaasModule

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
_OIDC: Final = "oidc"


@dataclass(frozen=True, slots=True, repr=False)
class Credential:
    """User and secret for the authentication of a client."""

    mechanism: str
    user: str = ""
    password: str = ""
    token_path: str = ""
    """File with the token, read at each authentication, so that it can be replaced."""
    endpoint: TokenEndpoint | None = None
    """The server that hands out tokens instead."""
    extensions: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return f"Credential({self.description})"

    @property
    def description(self) -> str:
        """Mechanism and user, for messages."""
        user = self.user if self.endpoint is None else self.endpoint.client_id
        return f"{self.mechanism} as {user}" if user else self.mechanism

    def exchange(self, timeout_seconds: float) -> ClientExchange:
        """Return the client's side of a login.

        Raises WrongSetting if there is no token, TokenUnavailable if there may be one later.
        """
        if self.mechanism == _PLAIN:
            from barnabas.protocol.sasl.plain import PlainClient

            return PlainClient(self.user, self.password)
        if self.mechanism == _TOKEN:
            from barnabas.protocol.sasl.oauthbearer import OAuthBearerClient

            return OAuthBearerClient(self._token(timeout_seconds), dict(self.extensions))
        from barnabas.protocol.sasl import scram
        from barnabas.storage.runtime.chance import random_text

        mechanism = scram.MECHANISMS[self.mechanism]
        return scram.ScramClient(mechanism, self.user, self.password, random_text(24))

    def refused(self) -> None:
        """Discard a token that a broker refused: another one can be valid."""
        if self.endpoint is not None:
            from barnabas.broker.client.kept_token import kept_token

            kept_token(self.endpoint).forget()

    def _token(self, timeout_seconds: float) -> str:
        if self.endpoint is None:
            return _read_token(self.token_path)
        # Imports http.client, which clients with a token in a file do not need.
        from barnabas.broker.client.kept_token import kept_token

        return kept_token(self.endpoint).token(timeout_seconds)


def credential_of(settings: Mapping[str, str]) -> Credential:
    """Return the credential of ``sasl.*`` settings; raises WrongSetting."""
    mechanism = _mechanism(settings)
    text, user = settings.get(JAAS), settings.get(USER)
    if text and user:
        raise WrongSetting(USER, f"{JAAS} says the same")
    if user and mechanism != _TOKEN:
        if not settings.get(PASSWORD):
            raise WrongSetting(PASSWORD, f"must be set, because {USER} is")
        return Credential(mechanism, user, settings[PASSWORD])
    if mechanism == _TOKEN and (settings.get(METHOD) or text):
        return _with_token(settings, _options(text, mechanism) if text else {})
    if not text:
        module = _MODULES[mechanism]
        raise WrongSetting(JAAS, f"must be set: {mechanism} takes {module} required ...;")
    options = _options(text, mechanism)
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
    if module.name.removeprefix(SHADED) != _MODULES[mechanism]:
        raise WrongSetting(JAAS, f"{mechanism} has the login module {_MODULES[mechanism]}")
    return module.options


def _with_token(settings: Mapping[str, str], options: Mapping[str, str]) -> Credential:
    """Return a credential with tokens of a file or a server, like DefaultJwtRetriever.

    ``options`` are those of the JAAS line, which librdkafka's settings go without.
    """
    # Imported only for clients that authenticate with tokens.
    from barnabas.broker.client.token_settings import check_options, endpoint_of, extensions_of

    check_options(options)
    if settings.get(METHOD, _OIDC) not in {_OIDC, ""}:
        raise WrongSetting(METHOD, f"{settings[METHOD]} is not available; there is {_OIDC}")
    url = settings.get(TOKEN_URL, "")
    if not url:
        reason = "it is not set; it is the URL of a server of tokens, or file:/path of one token"
        raise WrongSetting(TOKEN_URL, reason)
    extensions = extensions_of(settings, options)
    if url.lower().startswith("file:"):
        return Credential(_TOKEN, token_path=_path(url), extensions=extensions)
    return Credential(_TOKEN, endpoint=endpoint_of(settings, options), extensions=extensions)


def _path(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise WrongSetting(TOKEN_URL, str(error)) from None
    if parts.netloc not in {"", "localhost"} or not parts.path:
        raise WrongSetting(TOKEN_URL, "file:/path names a file of this machine")
    return unquote(parts.path)


def _read_token(path: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read(TOKEN_BYTES_MAX + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        problem = getattr(error, "strerror", None) or str(error)
        raise WrongSetting(TOKEN_URL, f"{path}: {problem}") from None
    token = data.decode("ascii", "replace").strip()
    if len(data) > TOKEN_BYTES_MAX or not BEARER.fullmatch(token):
        raise WrongSetting(TOKEN_URL, f"{path}: there is no token in it")
    return token
