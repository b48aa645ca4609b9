"""Token server with the client credentials grant (RFC 6749, section 4.4): address and renewal."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

TOKEN_BYTES_MAX: Final = 64 * 1024
BEARER: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
"""Syntax of a bearer token, from a server or a file."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """Renewal of a token: Kafka's ``sasl.login.refresh.*``."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    period_min_seconds: int = 60
    buffer_seconds: int = 300

    def seconds_until(self, lifetime_seconds: float, chance: float) -> float:
        """Return the time for which a token is used; ``chance`` is between 0 and 1.

        Minimum period and buffer apply only if the lifetime allows both, as in Kafka.
        """
        wanted = lifetime_seconds * (self.window_factor + self.window_jitter * chance)
        latest = lifetime_seconds - self.buffer_seconds
        if self.period_min_seconds > latest:
            return min(wanted, lifetime_seconds)
        return max(self.period_min_seconds, min(wanted, latest))


@dataclass(frozen=True, slots=True, repr=False)
class TokenEndpoint:
    """Token server and the client's identity there. Picklable, including the secret."""

    url: str
    client_id: str
    client_secret: str
    scope: str = ""
    is_urlencoded: bool = False
    """Whether id, secret and scope are sent URL-encoded, as RFC 6749 has it."""
    tls: tuple[tuple[str, str], ...] = ()
    """Settings of TLS with the server."""
    connect_timeout_ms: int | None = None
    read_timeout_ms: int | None = None
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    """Time for which an unavailable server is tried again."""
    refresh: Refresh = Refresh()

    def __repr__(self) -> str:
        return f"TokenEndpoint({self.shown_url})"

    @property
    def shown_url(self) -> str:
        """URL without its secret parts."""
        return self.url.partition("?")[0]


class Token(NamedTuple):
    """Token of a server."""

    text: str
    lifetime_seconds: float | None
    """Lifetime of the token, or None if the server does not state it."""
