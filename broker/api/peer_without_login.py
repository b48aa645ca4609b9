"""Authentication part of a connection for handlers that run without a connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.security.sasl.login import LoggedIn, Login, LoginFailed, Outcome


class PeerWithoutLogin:
    """Part of a ``Peer`` for callers whose user is known otherwise."""

    login: Login | None = None

    def login_again(self) -> Login | None:
        """Return None: no authentication is possible here."""
        return None

    def logged_in(self, outcome: LoggedIn) -> int:
        """Raise AssertionError: no login exists."""
        raise AssertionError(outcome)

    def take_token(self, token: bytes) -> Outcome:
        """Raise AssertionError: no login exists."""
        raise AssertionError(token)

    def login_failed(self, failed: LoginFailed) -> float:
        """Raise AssertionError: no login exists."""
        raise AssertionError(failed)
