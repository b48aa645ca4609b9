"""Tokens of servers, kept in this process for all of its connections.

Until they near their end: then the next login fetches another. While the server hands out none, a
token that still holds is used on.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from barnabas.broker.client.errors import TokenUnavailable, WrongSetting
from barnabas.broker.client.security_keys import TOKEN_URL
from barnabas.broker.client.token_endpoint import Refresh, Token, TokenEndpoint
from barnabas.broker.client.token_request import fetched

ENDPOINTS_MAX: Final = 64
"""Maximum number of servers and clients whose tokens a process keeps."""
LIFETIME_MAX_S: Final = 10 * 365 * 24 * 3600
"""Tokens end after ten years."""
AGAIN_SECONDS: Final = 10.0
"""Pause before the next request to a failing token server while a token is valid; Kafka's number.
"""
HOLDING_SECONDS_MAX: Final = 2.0
"""Maximum time to wait for a new token while the current one is valid."""


@lru_cache(maxsize=ENDPOINTS_MAX)
def kept_token(endpoint: TokenEndpoint) -> KeptToken:
    """Return the token cache of an endpoint; equal endpoints, as tasks of Spark have, share it.

    Two threads that request the first token at once fetch it twice, which does no harm.
    """
    return KeptToken(
        endpoint.refresh,
        lambda timeout_seconds, may_repeat: fetched(
            endpoint, timeout_seconds, may_repeat=may_repeat
        ),
    )


class KeptToken:
    """The token of one endpoint in one process; connections on several threads share it."""

    def __init__(
        self,
        refresh: Refresh,
        fetch: Callable[[float, bool], Token],
        now_s: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
    ) -> None:
        """Create a cache; ``fetch`` takes a timeout, and whether to retry an unavailable server."""
        self._refresh = refresh
        self._fetch = fetch
        self._now_s = now_s
        self._chance = chance
        self._lock = threading.Lock()
        self._text = ""
        self._due_s = 0.0
        self._ends_s = 0.0

    def token(self, timeout_seconds: float) -> str:
        """Return the kept token, or a new one shortly before its end.

        Raises TokenUnavailable, and WrongSetting for an error that a repeated request cannot
        remove.
        """
        if not self._lock.acquire(timeout=max(timeout_seconds, 0)):
            raise TokenUnavailable(f"{TOKEN_URL}: another login still waits for the token")
        try:
            if self._now_s() >= self._due_s:
                self._renew(timeout_seconds)
            return self._text
        finally:
            self._lock.release()

    def _renew(self, timeout_seconds: float) -> None:
        if self._now_s() >= self._ends_s:
            self._keep(self._fetch(timeout_seconds, True))
            return
        try:
            self._keep(self._fetch(min(timeout_seconds, HOLDING_SECONDS_MAX), False))
        except (TokenUnavailable, WrongSetting):
            # The current token is still valid: a failure is reported after its end.
            self._due_s = min(self._now_s() + AGAIN_SECONDS, self._ends_s)

    def forget(self) -> None:
        """Drop the kept token."""
        with self._lock:
            self._text, self._due_s, self._ends_s = "", 0.0, 0.0

    def _keep(self, token: Token) -> None:
        lifetime_s = min(token.lifetime_seconds or 0.0, LIFETIME_MAX_S)
        self._text = token.text
        self._ends_s = self._now_s() + lifetime_s
        self._due_s = self._now_s() + self._refresh.seconds_until(lifetime_s, self._chance())
