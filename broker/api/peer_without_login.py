"""What handlers ask of a connection about logins, where there is no connection and so none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.security.sasl.login import LoggedIn, Login, LoginFailed, Outcome


class PeerWithoutLogin:
    """That part of a ``Peer``: who asks is known otherwise."""

    login: Login | None = None

    def login_again(self) -> Login | None:
        """Return None: nobody has logged in here."""
        return None

    def logged_in(self, outcome: LoggedIn) -> int:
        """Never come to pass: there is no login to end."""
        raise AssertionError(outcome)

    def take_token(self, token: bytes) -> Outcome:
        """Never come to pass either."""
        raise AssertionError(token)

    def login_failed(self, failed: LoginFailed) -> float:
        """Never come to pass either."""
        raise AssertionError(failed)
