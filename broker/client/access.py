"""What connections are made with: a context of TLS, and a credential to log in with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.version import __version__
from barnabas.protocol.sasl.login_client import LoginClient

if TYPE_CHECKING:
    import ssl

    from barnabas.broker.client.credentials import Credential
    from barnabas.protocol.client import AdvertisedVersions

SOFTWARE: Final = ("barnabas", __version__)
"""What this client calls itself in ApiVersions."""


class Access(NamedTuple):
    """How to get in, where brokers ask for something."""

    context: ssl.SSLContext | None = None
    credential: Credential | None = None

    def new_login(
        self, timeout_seconds: float, versions: AdvertisedVersions | None = None
    ) -> LoginClient:
        """Return a login; ``versions`` where the broker has said them.

        Raises WrongSetting, and TokenUnavailable, by then if there is no token within the time.
        """
        assert self.credential is not None
        exchange = self.credential.exchange(timeout_seconds)
        return LoginClient(self.credential.mechanism, exchange, SOFTWARE, versions)

    def refused(self) -> None:
        """Take note that the broker has not taken a login."""
        assert self.credential is not None
        self.credential.refused()


OPEN: Final = Access()
"""For brokers that ask for nothing."""
