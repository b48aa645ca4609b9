"""Settings of logins by tokens (OAUTHBEARER), under Kafka's keys; listeners may have their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from barnabas.broker.config.fields import setting
from barnabas.broker.config.tls import TlsConfig
from barnabas.broker.config.types import ConfigType, Matches, OneOf, at_least

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
"""Every algorithm that may be allowed: all verify with a public key."""

BOOLEAN, STRING, INT, LONG = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.LONG
LIST = ConfigType.LIST


@dataclass(frozen=True, slots=True)
class OAuthConfig(TlsConfig):
    """Verification of tokens."""

    # ---------- tokens
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        Matches(r"https?://[^/?#\s]+\S*|file:(//)?/[^/\s]\S*", "a URL with https:, http: or file:"),
    )
    """URL of the keys of the tokens' issuer, which begins with https:, http: or file:. No other URL
    is ever fetched."""
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, at_least(1)
    )
    """Interval at which the keys are fetched again; for an unknown key also in between, once a
    minute."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100, at_least(1)
    )
    """Pause before an unavailable key server is tried again; doubled each time."""
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000, at_least(1)
    )
    """Maximum pause before an unavailable key server is tried again."""
    sasl_oauthbearer_expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer", STRING, None
    )
    """The issuer (iss) of tokens that are good. Must be set, unless
    sasl.oauthbearer.allow.unverified.issuer is true."""
    sasl_oauthbearer_expected_audience: tuple[str, ...] = setting(
        "sasl.oauthbearer.expected.audience", LIST, ()
    )
    """Accepted audiences (aud) of tokens. Must be set, unless
    sasl.oauthbearer.allow.unverified.audience is true."""
    sasl_oauthbearer_allow_unverified_issuer: bool = setting(
        "sasl.oauthbearer.allow.unverified.issuer", BOOLEAN, False
    )
    """Whether tokens of any issuer are accepted if their key is in the key set (Kafka 4.4)."""
    sasl_oauthbearer_allow_unverified_audience: bool = setting(
        "sasl.oauthbearer.allow.unverified.audience", BOOLEAN, False
    )
    """Whether tokens for every audience are good (Kafka 4.4)."""
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        "sasl.oauthbearer.clock.skew.seconds", INT, 30, at_least(0)
    )
    """Maximum difference between the clocks of the issuer and of this broker."""
    sasl_oauthbearer_sub_claim_name: str = setting("sasl.oauthbearer.sub.claim.name", STRING, "sub")
    """The claim with the user's name."""
    sasl_oauthbearer_scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name", STRING, "scope"
    )
    """The claim with scopes. They allow nothing by themselves."""
    sasl_oauthbearer_algorithms: tuple[str, ...] = setting(
        "barnabas.sasl.oauthbearer.algorithms", LIST, ALGORITHMS, OneOf(ALGORITHMS)
    )
    """Accepted signature algorithms of tokens."""
