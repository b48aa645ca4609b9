"""Security of each listener: what a client must do before its first request."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.acls.access import OPEN, Access
from barnabas.broker.security.listeners.tls import ListenerTls, tls_of
from barnabas.broker.security.principals import ANONYMOUS, Principal
from barnabas.broker.security.sasl.login import Earlier, LoggedIn, Login, NewExchange
from barnabas.broker.security.sasl.logins import Logins
from barnabas.broker.security.session import NOBODY, Session

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.security.acls.access import Generation, Judge

logger = logging.getLogger("barnabas.broker.security.listeners.listeners")

SENDS_SECRETS: Final = ("PLAIN", "OAUTHBEARER")
"""Mechanisms whose tokens let another client log in."""

NewAccess = Callable[[Principal, str], Access]
"""Creates the permissions of a principal from an address."""


class ListenerSecurity:
    """Security of one listener."""

    def __init__(
        self,
        *,
        mechanisms: Mapping[str, NewExchange],
        max_receive_bytes: int,
        new_access: NewAccess,
        lifetimes_ms: Mapping[str, int] | None = None,
        tls: ListenerTls | None = None,
    ) -> None:
        """``mechanisms`` is empty if clients do not have to log in.

        ``lifetimes_ms``: time by mechanism after which a login must be repeated; 0 or missing for
        never.
        """
        self.tls = tls
        """TLS of the connections, or None if they are not encrypted."""
        self._mechanisms = mechanisms
        self._lifetimes_ms = lifetimes_ms or {}
        self._new_access = new_access
        self.max_receive_bytes = max_receive_bytes
        """Largest frame before a client has logged in."""

    @property
    def needs_login(self) -> bool:
        """Whether a client must log in before other requests."""
        return bool(self._mechanisms)

    def new_session(self, host: str, certificate: bytes | None = None) -> Session:
        """Return the session of a client that has just connected.

        ``certificate`` is the client's, in DER. Raises NoName if no rule derives a user from it.
        """
        principal = ANONYMOUS if self.tls is None else self.tls.principal_of(certificate)
        return Session(principal, self._new_access(principal, host))

    def new_login(self, session: Session | None = None, *, is_expired: bool = False) -> Login:
        """Return the next login; with a ``session``, its repetition."""
        earlier = None
        if session is not None:
            assert session.mechanism is not None
            earlier = Earlier(session.principal, session.mechanism)
        return Login(self._mechanisms, earlier, is_expired=is_expired)

    def session_of(self, logged_in: LoggedIn, host: str, now_ms: int) -> Session:
        """Return the session of a client that has logged in.

        It ends with the credential, or when the listener requires another login, if that is sooner.
        """
        ends = [] if logged_in.expires_ms is None else [logged_in.expires_ms]
        lifetime_ms = self._lifetimes_ms.get(logged_in.mechanism, 0)
        if lifetime_ms:
            ends.append(now_ms + lifetime_ms)
        access = self._new_access(logged_in.principal, host)
        return Session(
            logged_in.principal, access, logged_in.mechanism, min(ends) if ends else None
        )


class OpenListener(ListenerSecurity):
    """Listener of a broker without logins and access control: one session for all clients."""

    def __init__(self) -> None:
        super().__init__(mechanisms={}, max_receive_bytes=0, new_access=lambda _who, _host: OPEN)

    def new_session(self, host: str, certificate: bytes | None = None) -> Session:  # noqa: ARG002
        """Return the shared session."""
        return NOBODY


OPEN_LISTENER: Final = OpenListener()


# ---------------------------------------------------------------------------- from a configuration


def listeners_of(
    config: BrokerConfig,
    judge: Judge | None,
    generation: Generation,
    logins: Logins | None = None,
) -> dict[str, ListenerSecurity]:
    """Return the security of each listener by its name; raises ConfigError.

    ``judge`` decides what clients may do, or is None without access control. ``logins`` has the
    users.
    """
    logins = logins or Logins(config)

    def new_access(principal: Principal, host: str) -> Access:
        return Access(str(principal), host, judge, generation)

    return {
        endpoint.name: _security_of(
            config, endpoint, new_access, logins, is_controlled=judge is not None
        )
        for endpoint in config.endpoints
    }


def _security_of(
    config: BrokerConfig,
    endpoint: Endpoint,
    new_access: NewAccess,
    logins: Logins,
    *,
    is_controlled: bool,
) -> ListenerSecurity:
    tls = tls_of(config, endpoint)
    if not endpoint.has_login:
        if tls is None and not is_controlled:
            return OPEN_LISTENER
        return ListenerSecurity(mechanisms={}, max_receive_bytes=0, new_access=new_access, tls=tls)
    listener = config.for_listener(endpoint.name)
    mechanisms = logins.mechanisms_of(listener, endpoint.name)
    _warn_of_clear_text(endpoint, mechanisms)
    max_receive_bytes = listener.value("sasl.server.max.receive.size")
    assert isinstance(max_receive_bytes, int)
    return ListenerSecurity(
        mechanisms=mechanisms,
        max_receive_bytes=max_receive_bytes,
        new_access=new_access,
        lifetimes_ms={name: _lifetime_ms(listener, name) for name in mechanisms},
        tls=tls,
    )


def _warn_of_clear_text(endpoint: Endpoint, mechanisms: Iterable[str]) -> None:
    """Log a warning that passwords are readable on the network, unless the listener is local."""
    is_here = endpoint.host in {"localhost", "::1"} or endpoint.host.startswith("127.")
    readable = [each for each in mechanisms if each in SENDS_SECRETS]
    if readable and not is_here and endpoint.security_protocol == "SASL_PLAINTEXT":
        logger.warning(
            "listener %s is not encrypted: readers of the network traffic see the secrets of %s",
            endpoint.name,
            " and ".join(readable),
        )


def _lifetime_ms(listener: ListenerConfig, mechanism: str) -> int:
    value = listener.value("connections.max.reauth.ms", mechanism)
    assert isinstance(value, int)
    return value
