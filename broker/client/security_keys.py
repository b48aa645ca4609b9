"""Security settings of Kafka's clients, and the treatment of each of them.

All settings of Apache Kafka 4.3.0 are listed: any other that begins with ``ssl.``, ``sasl.`` or
``security.`` is an error. Settings with a Java class accept Kafka's own classes, whose function is
built in; any other class cannot be loaded, and would leave something unprotected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.client.errors import WrongSetting
from barnabas.broker.security.tls.client import CLIENT_KEYS
from barnabas.broker.security.tls.client import LIBRDKAFKA as LIBRDKAFKA_OF_TLS

PREFIXES: Final = ("ssl.", "sasl.", "security.", "https.", "config.providers")
PROTOCOL: Final = "security.protocol"
MECHANISM: Final = "sasl.mechanism"
MECHANISMS: Final = "sasl.mechanisms"
"""librdkafka's spelling."""
JAAS: Final = "sasl.jaas.config"
USER: Final = "sasl.username"
PASSWORD: Final = "sasl.password"  # noqa: S105  the name of a setting
"""librdkafka's way to say both without JAAS."""
TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  the name of a setting
PROVIDERS: Final = "config.providers"

# Of a server that hands out tokens.
CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105
SCOPE: Final = "sasl.oauthbearer.scope"
URLENCODE: Final = "sasl.oauthbearer.header.urlencode"
CONNECT_TIMEOUT: Final = "sasl.login.connect.timeout.ms"
READ_TIMEOUT: Final = "sasl.login.read.timeout.ms"
RETRY_BACKOFF: Final = "sasl.login.retry.backoff.ms"
RETRY_BACKOFF_MAX: Final = "sasl.login.retry.backoff.max.ms"
REFRESH_FACTOR: Final = "sasl.login.refresh.window.factor"
REFRESH_JITTER: Final = "sasl.login.refresh.window.jitter"
REFRESH_PERIOD_MIN: Final = "sasl.login.refresh.min.period.seconds"
REFRESH_BUFFER: Final = "sasl.login.refresh.buffer.seconds"
# The same in librdkafka's spelling.
METHOD: Final = "sasl.oauthbearer.method"
LIBRDKAFKA_CLIENT_ID: Final = "sasl.oauthbearer.client.id"
LIBRDKAFKA_CLIENT_SECRET: Final = "sasl.oauthbearer.client.secret"  # noqa: S105
EXTENSIONS: Final = "sasl.oauthbearer.extensions"
GRANT: Final = "sasl.oauthbearer.grant.type"
"""Grant type, a setting of Kafka 4.4, too."""
HTTPS_TRUST: Final[Mapping[str, str]] = {
    "https.ca.location": "ssl.ca.location",
    "https.ca.pem": "ssl.ca.pem",
}
"""Trusted certificates of the token server, and the equivalent key of TLS with brokers."""

LIBRDKAFKA: Final[Mapping[str, str]] = {
    **LIBRDKAFKA_OF_TLS,
    MECHANISMS: MECHANISM,
    **dict.fromkeys(
        (
            *(USER, PASSWORD, METHOD, LIBRDKAFKA_CLIENT_ID, LIBRDKAFKA_CLIENT_SECRET, EXTENSIONS),
            *HTTPS_TRUST,
        ),
        JAAS,
    ),
}
"""Names of librdkafka, and the equivalent in Java clients of every version."""

_TOKEN_KEYS: Final = (
    *(TOKEN_URL, CLIENT_ID, CLIENT_SECRET, SCOPE, METHOD, GRANT, EXTENSIONS),
    *(LIBRDKAFKA_CLIENT_ID, LIBRDKAFKA_CLIENT_SECRET, *HTTPS_TRUST),
)
TOKEN_TIMES: Final = (
    *(URLENCODE, CONNECT_TIMEOUT, READ_TIMEOUT, RETRY_BACKOFF, RETRY_BACKOFF_MAX),
    *(REFRESH_FACTOR, REFRESH_JITTER, REFRESH_PERIOD_MIN, REFRESH_BUFFER),
)
"""Times of fetching and renewing tokens; without effect if no token is fetched."""

LOGIN_KEYS: Final = frozenset({MECHANISM, MECHANISMS, JAAS, USER, PASSWORD, *_TOKEN_KEYS})

SECRETS: Final = frozenset(
    {
        *(JAAS, PASSWORD, "ssl.key.password", "ssl.keystore.password", "ssl.truststore.password"),
        *("ssl.keystore.key", "ssl.key.pem", CLIENT_SECRET, LIBRDKAFKA_CLIENT_SECRET),
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
    }
)
"""Settings that must not be visible to other users of the machine, as in a process list."""

SHADED: Final = "kafkashaded."
"""Prefix of class names in Databricks' Spark."""
_TOKEN_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"  # noqa: S105
_CLASSES: Final[Mapping[str, tuple[str, ...]]] = {
    "sasl.client.callback.handler.class": (),
    "sasl.login.callback.handler.class": (
        f"{_TOKEN_PACKAGE}.OAuthBearerLoginCallbackHandler",
        f"{_TOKEN_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.login.class": (),
    "sasl.oauthbearer.jwt.retriever.class": (
        f"{_TOKEN_PACKAGE}.DefaultJwtRetriever",
        f"{_TOKEN_PACKAGE}.FileJwtRetriever",
        f"{_TOKEN_PACKAGE}.ClientCredentialsJwtRetriever",
    ),
    "sasl.oauthbearer.jwt.validator.class": (
        f"{_TOKEN_PACKAGE}.DefaultJwtValidator",
        f"{_TOKEN_PACKAGE}.ClientJwtValidator",
    ),
    "security.providers": (),
    "ssl.engine.factory.class": (),
}
"""Settings that name Java classes, and those of Kafka's own that are not needed here."""

_OF_ASSERTIONS: Final = frozenset(
    {
        "sasl.oauthbearer.assertion.claim.aud",
        "sasl.oauthbearer.assertion.claim.iss",
        "sasl.oauthbearer.assertion.claim.sub",
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.template.file",
        # librdkafka's.
        "sasl.oauthbearer.assertion.jwt.template.file",
        "sasl.oauthbearer.assertion.private.key.pem",
    }
)
"""Settings for client authentication by signature at a token server: not available."""

_WITHOUT_EFFECT: Final = frozenset(
    {
        # Settings of Kerberos, which is refused as a mechanism.
        "sasl.kerberos.kinit.cmd",
        "sasl.kerberos.min.time.before.relogin",
        "sasl.kerberos.service.name",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        # Creation and validation of tokens, which is the brokers' task.
        "sasl.oauthbearer.assertion.algorithm",
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        "sasl.oauthbearer.assertion.claim.jti.include",
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        "sasl.oauthbearer.jwks.endpoint.url",
        "sasl.oauthbearer.scope.claim.name",
        "sasl.oauthbearer.sub.claim.name",
    }
)

KNOWN: Final = frozenset(
    {
        *(PROTOCOL, *LOGIN_KEYS, *TOKEN_TIMES, *CLIENT_KEYS, *_CLASSES),
        *(*_OF_ASSERTIONS, *_WITHOUT_EFFECT),
    }
)
"""Every setting of protection, those that are refused among them."""


def is_about_security(key: str) -> bool:
    """Return whether a setting is about security, or is the source of such settings."""
    return key in CLIENT_KEYS or key.startswith(PREFIXES)


def check_keys(settings: Mapping[str, str]) -> None:
    """Refuse unknown settings, and security settings without effect; raises WrongSetting.

    ``settings`` are those that are about security.
    """
    for key, value in settings.items():
        if key not in KNOWN and not key.startswith(PROVIDERS):
            raise WrongSetting(key, f"unknown{_hint(key)}")
        if key in _CLASSES and value and value.removeprefix(SHADED) not in _CLASSES[key]:
            raise WrongSetting(key, "no Java class can be loaded here")
        if key in _OF_ASSERTIONS and value:
            raise WrongSetting(
                key,
                "assertions are not available: tokens are requested with"
                f" {CLIENT_ID} and {CLIENT_SECRET}",
            )


def _hint(key: str) -> str:
    from difflib import get_close_matches  # Only now: it would slow each start down.

    close = get_close_matches(key, KNOWN, n=1)
    return f", did you mean {close[0]}?" if close else ""
