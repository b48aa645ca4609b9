"""Logins by token (OAUTHBEARER): verifiers built from a listener's settings.

Imported only if a listener offers it, since it needs PyJWT and cryptography.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from barnabas.broker.config.types import ConfigError, ConflictingValues
from barnabas.broker.security.sasl.key_server import KeyServer, KeysUnavailable
from barnabas.broker.security.sasl.token_keys import parse_keys
from barnabas.broker.security.sasl.tokens import TokenRules, TokenVerifier
from barnabas.protocol.sasl.oauthbearer import OAuthBearerServer

if TYPE_CHECKING:
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.sasl.login import NewExchange

_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"


class TokenLogins:
    """Token logins of one broker; listeners with the same keys share them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._servers: dict[tuple[str, tuple[str, ...]], KeyServer] = {}

    def exchange_of(self, listener: ListenerConfig, name: str) -> NewExchange:
        """Return a function that starts an exchange at a listener; raises ConfigError."""
        rules = rules_of(listener, name)
        url = listener.value(_URL)
        if not url:
            key = listener.setting_name(_URL)
            reason = f"listener {name} offers OAUTHBEARER, so {key} must say where the keys are"
            raise ConflictingValues(key, "", reason)
        if "@" in urlsplit(str(url)).netloc:
            key = listener.setting_name(_URL)
            reason = f"{key} has a user in its URL: keys are public, leave user and password out"
            raise ConflictingValues(key, "", reason)
        server = self._server(listener, str(url), rules.algorithms)
        verifier = TokenVerifier(rules, lambda: server.keys, self._clock.now_ms, server.unknown_key)
        # A token's user is known only after verification, and tokens cannot be guessed.
        return lambda _only: OAuthBearerServer(verifier.verify)

    async def open(self) -> None:
        """Fetch the keys for the first time; raises ConfigError if a file has none."""
        for (url, _), server in self._servers.items():
            try:
                await server.open()
            except KeysUnavailable as error:
                raise ConfigError(_URL, url, str(error)) from None

    def close(self) -> None:
        """Stop fetching keys."""
        for server in self._servers.values():
            server.close()

    def _server(self, listener: ListenerConfig, url: str, algorithms: tuple[str, ...]) -> KeyServer:
        if (url, algorithms) not in self._servers:
            self._servers[url, algorithms] = KeyServer(
                url,
                partial(parse_keys, algorithms=algorithms),
                self._clock,
                refresh_ms=_number(listener, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
                backoff_ms=_number(listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
                backoff_max_ms=_number(
                    listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
                ),
            )
        return self._servers[url, algorithms]


def rules_of(listener: ListenerConfig, name: str) -> TokenRules:
    """Return a listener's requirements on tokens; raises ConfigError if they are incomplete."""
    issuer = listener.value("sasl.oauthbearer.expected.issuer")
    audiences = _texts(listener, "sasl.oauthbearer.expected.audience")
    if not issuer:
        _require(listener, name, "issuer", "sasl.oauthbearer.allow.unverified.issuer")
    if not audiences:
        _require(listener, name, "audience", "sasl.oauthbearer.allow.unverified.audience")
    return TokenRules(
        _texts(listener, "barnabas.sasl.oauthbearer.algorithms"),
        str(issuer) if issuer else None,
        audiences,
        _number(listener, "sasl.oauthbearer.clock.skew.seconds") * 1000,
        str(listener.value("sasl.oauthbearer.sub.claim.name")),
        str(listener.value("sasl.oauthbearer.scope.claim.name")),
    )


def _require(listener: ListenerConfig, name: str, claim: str, allow: str) -> None:
    """Raise ConfigError if a claim must be verified, and its expected value is not configured."""
    if listener.value(allow) is not True:
        key = listener.setting_name(f"sasl.oauthbearer.expected.{claim}")
        reason = (
            f"listener {name} offers OAUTHBEARER, so {key} must say which {claim} of tokens is "
            f"good; {allow}=true takes every one"
        )
        raise ConflictingValues(key, "", reason)


def _number(listener: ListenerConfig, key: str) -> int:
    value = listener.value(key)
    assert isinstance(value, int)
    return value


def _texts(listener: ListenerConfig, key: str) -> tuple[str, ...]:
    value = listener.value(key)
    assert isinstance(value, tuple)
    return value
