"""Principal and permissions of a connection, and their expiry."""

from __future__ import annotations

from typing import Final

from barnabas.broker.security.acls.access import OPEN, Access
from barnabas.broker.security.principals import ANONYMOUS, Principal


class Session:
    """Session of one connection's client; a new login creates a new one."""

    __slots__ = ("access", "expires_ms", "mechanism", "principal")

    def __init__(
        self,
        principal: Principal,
        access: Access,
        mechanism: str | None = None,
        expires_ms: int | None = None,
    ) -> None:
        self.principal = principal
        self.access = access
        self.mechanism = mechanism
        """SASL mechanism of the login, or None without a login."""
        self.expires_ms = expires_ms
        """Time, in milliseconds since the epoch, at which the login expires, or None."""


NOBODY: Final = Session(ANONYMOUS, OPEN)
"""Session of a connection without login and access control."""
