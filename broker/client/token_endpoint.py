"""A server that hands out tokens by the client credentials grant (RFC 6749, section 4.4): what is
known of it, and when its tokens are fetched anew.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

TOKEN_BYTES_MAX: Final = 64 * 1024
BEARER: Final = re.compile(r"[-_~+/.a-zA-Z0-9]+=*")
"""What a token may be, of a server or in a file."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """When a token is fetched anew: Kafka's ``sasl.login.refresh.*``."""

    window_factor: float = 0.8
    window_jitter: float = 0.05
    period_min_seconds: int = 60
    buffer_seconds: int = 300

    def seconds_until(self, lifetime_seconds: float, chance: float) -> float:
        """Return how long a token of this lifetime is used; ``chance`` is between 0 and 1.

        Least period and buffer count where both can be kept, as in Kafka: short tokens have
        neither.
        """
        wanted = lifetime_seconds * (self.window_factor + self.window_jitter * chance)
        latest = lifetime_seconds - self.buffer_seconds
        if self.period_min_seconds > latest:
            return min(wanted, lifetime_seconds)
        return max(self.period_min_seconds, min(wanted, latest))


@dataclass(frozen=True, slots=True, repr=False)
class TokenEndpoint:
    """Where tokens come from, and who asks for them. Picklable, with the secret in it."""

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
    """For how long a server that is away is asked again."""
    refresh: Refresh = Refresh()

    def __repr__(self) -> str:
        return f"TokenEndpoint({self.shown_url})"

    @property
    def shown_url(self) -> str:
        """The URL without what may be secret in it."""
        return self.url.partition("?")[0]


class Token(NamedTuple):
    """What a server has handed out."""

    text: str
    lifetime_seconds: float | None
    """None: it does not say."""
