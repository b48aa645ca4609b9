"""Who a connection acts for, since when, and for how long."""

from __future__ import annotations

from typing import Final

from barnabas.broker.security.acls.access import OPEN, Access
from barnabas.broker.security.principals import ANONYMOUS, Principal


class Session:
    """What is known of the client of one connection. A new login makes a new one."""

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
        """The SASL mechanism that the client has logged in with; None: it did not have to."""
        self.expires_ms = expires_ms
        """When the login ends, in milliseconds since the epoch; None: with the connection."""


NOBODY: Final = Session(ANONYMOUS, OPEN)
"""The session of a connection of which nothing is asked."""
