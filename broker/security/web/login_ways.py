"""Ways in which a client can log in at the HTTP port.

The log line of a start, the refusals of the API and the console's page all derive from this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TOKEN: Final = "token"  # noqa: S105  the name of a way
PASSWORD: Final = "password"  # noqa: S105
REMEDY: Final = "set barnabas.http.bearer.token, or have a SASL listener with passwords"
NO_WAY: Final = f"nobody can log in at the console: {REMEDY}"
"""Message where a login is required and impossible."""
NO_WAY_TO_PAGES: Final = f"nobody can read /metrics and /config: {REMEDY}"
"""The same where the console is switched off."""


@dataclass(frozen=True, slots=True)
class LoginWays:
    """Credentials that the HTTP port accepts, as the broker is configured."""

    has_token: bool
    """Whether ``barnabas.http.bearer.token`` is set."""
    has_passwords: bool
    """Whether a SASL listener offers PLAIN or SCRAM."""

    @property
    def names(self) -> list[str]:
        """Return the ways by the names that the API gives them; empty if there is none."""
        found = ((TOKEN, self.has_token), (PASSWORD, self.has_passwords))
        return [name for name, is_open in found if is_open]

    @property
    def closed_reason(self) -> str | None:
        """Return the reason why every login fails, or ``None`` if a login can succeed."""
        return None if self.names else NO_WAY

    @property
    def challenge(self) -> str:
        """Return the value of ``WWW-Authenticate``.

        ``Basic`` makes a browser open a dialog, so it is only sent if a password can be right.
        """
        bearer = 'Bearer realm="barnabas"'
        return f'Basic realm="barnabas", {bearer}' if self.has_passwords else bearer

    @property
    def advice(self) -> str:
        """Return the message for a client without credentials."""
        if self.has_token and self.has_passwords:
            return "log in with the bearer token, or as a user of a SASL listener"
        if self.has_token:
            return "log in with the bearer token of barnabas.http.bearer.token"
        return self.closed_reason or "log in as a user of a SASL listener"
