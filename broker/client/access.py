"""TLS context and credential with which connections are opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.version import __version__
from barnabas.protocol.sasl.login_client import LoginClient

if TYPE_CHECKING:
    import ssl

    from barnabas.broker.client.credentials import Credential
    from barnabas.protocol.client import AdvertisedVersions

SOFTWARE: Final = ("barnabas", __version__)
"""Name and version of this client in ApiVersions."""


class Access(NamedTuple):
    """Means of access to brokers that require TLS or authentication."""

    context: ssl.SSLContext | None = None
    credential: Credential | None = None

    def new_login(
        self, timeout_seconds: float, versions: AdvertisedVersions | None = None
    ) -> LoginClient:
        """Return a login for a broker with these ``versions``.

        Raises WrongSetting, and TokenUnavailable, by then if there is no token within the time.
        """
        assert self.credential is not None
        exchange = self.credential.exchange(timeout_seconds)
        return LoginClient(self.credential.mechanism, exchange, SOFTWARE, versions)

    def refused(self) -> None:
        """Record that the broker refused the credential."""
        assert self.credential is not None
        self.credential.refused()


OPEN: Final = Access()
"""Access to brokers without TLS and authentication."""
