"""What each listener asks of a client before it may do anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from barnabas.broker.config.types import ConfigError
from barnabas.broker.security.access import OPEN, Access
from barnabas.broker.security.login import Earlier, LoggedIn, Login, NewExchange
from barnabas.broker.security.plain_users import PLAIN_MODULE, PlainUsers
from barnabas.broker.security.principals import ANONYMOUS, Principal
from barnabas.broker.security.session import NOBODY, Session
from barnabas.broker.security.tls import ListenerTls, tls_of
from barnabas.protocol.sasl.jaas import JaasModule, MalformedJaas, parse_jaas_value
from barnabas.protocol.sasl.plain import MECHANISM as PLAIN
from barnabas.protocol.sasl.plain import PlainServer

if TYPE_CHECKING:
    from barnabas.broker.config.broker_config import BrokerConfig
    from barnabas.broker.config.listener_keys import ListenerConfig
    from barnabas.broker.config.listeners import Endpoint
    from barnabas.broker.security.access import Generation, Judge

NewAccess = Callable[[Principal, str], Access]
"""Makes what a principal from an address may do."""


class ListenerSecurity:
    """The rules of one listener."""

    def __init__(
        self,
        *,
        mechanisms: Mapping[str, NewExchange],
        max_receive_bytes: int,
        new_access: NewAccess,
        lifetimes_ms: Mapping[str, int] | None = None,
        tls: ListenerTls | None = None,
    ) -> None:
        """``mechanisms`` is empty where nobody has to log in.

        ``lifetimes_ms``: after how long a login by a mechanism has to be repeated; 0 or none: not.
        """
        self.tls = tls
        """How connections are encrypted; None: they are not."""
        self._mechanisms = mechanisms
        self._lifetimes_ms = lifetimes_ms or {}
        self._new_access = new_access
        self.max_receive_bytes = max_receive_bytes
        """Largest frame before a client has logged in."""

    @property
    def needs_login(self) -> bool:
        """Whether a client has to log in before it may ask for anything else."""
        return bool(self._mechanisms)

    def new_session(self, host: str, certificate: bytes | None = None) -> Session:
        """Return the session of a client that has only just connected.

        ``certificate`` is the client's, in DER. Raises NoName where no rule makes a user of it.
        """
        principal = ANONYMOUS if self.tls is None else self.tls.principal_of(certificate)
        return Session(principal, self._new_access(principal, host))

    def new_login(self, session: Session | None = None, *, is_expired: bool = False) -> Login:
        """Return the login that is to come; of a ``session``, its repetition."""
        earlier = None
        if session is not None:
            assert session.mechanism is not None
            earlier = Earlier(session.principal, session.mechanism)
        return Login(self._mechanisms, earlier, is_expired=is_expired)

    def session_of(self, logged_in: LoggedIn, host: str, now_ms: int) -> Session:
        """Return the session of a client that has logged in.

        It ends with the credential, or when the listener wants logins repeated, if that is sooner.
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
    """A listener that asks nothing of a broker without access control: one session for all."""

    def __init__(self) -> None:
        super().__init__(mechanisms={}, max_receive_bytes=0, new_access=lambda _who, _host: OPEN)

    def new_session(self, host: str, certificate: bytes | None = None) -> Session:  # noqa: ARG002
        """Return the one session."""
        return NOBODY


OPEN_LISTENER: Final = OpenListener()


# ---------------------------------------------------------------------------- from a configuration


def listeners_of(
    config: BrokerConfig, judge: Judge | None, generation: Generation
) -> dict[str, ListenerSecurity]:
    """Return the rules of each listener by its name; raises ConfigError.

    ``judge`` decides what clients may do; None: there is no access control.
    """

    def new_access(principal: Principal, host: str) -> Access:
        return Access(str(principal), host, judge, generation)

    return {
        endpoint.name: _security_of(config, endpoint, new_access, is_controlled=judge is not None)
        for endpoint in config.endpoints
    }


def _security_of(
    config: BrokerConfig, endpoint: Endpoint, new_access: NewAccess, *, is_controlled: bool
) -> ListenerSecurity:
    tls = tls_of(config, endpoint)
    if not endpoint.security_protocol.startswith("SASL_"):
        if tls is None and not is_controlled:
            return OPEN_LISTENER
        return ListenerSecurity(mechanisms={}, max_receive_bytes=0, new_access=new_access, tls=tls)
    listener = config.for_listener(endpoint.name)
    names = listener.value("sasl.enabled.mechanisms")
    assert isinstance(names, tuple)
    max_receive_bytes = listener.value("sasl.server.max.receive.size")
    assert isinstance(max_receive_bytes, int)
    return ListenerSecurity(
        mechanisms={name: _MECHANISMS[name](listener, endpoint.name) for name in names},
        max_receive_bytes=max_receive_bytes,
        new_access=new_access,
        lifetimes_ms={name: _lifetime_ms(listener, name) for name in names},
        tls=tls,
    )


def _lifetime_ms(listener: ListenerConfig, mechanism: str) -> int:
    value = listener.value("connections.max.reauth.ms", mechanism)
    assert isinstance(value, int)
    return value


def _plain(listener: ListenerConfig, name: str) -> NewExchange:
    module = _jaas_module(listener, name, PLAIN, PLAIN_MODULE)
    users = PlainUsers(module.options)
    if not users:
        raise _wrong(listener, PLAIN, 'it names no user; write user_NAME="password"')
    return lambda: PlainServer(users.verify)


def _jaas_module(listener: ListenerConfig, name: str, mechanism: str, expected: str) -> JaasModule:
    """Return the login module of a mechanism of a listener; raises ConfigError."""
    if listener.name_of("sasl.jaas.config", mechanism) is None:
        key = f"listener.name.{name.lower()}.{mechanism.lower()}.sasl.jaas.config"
        reason = f"listener {name} offers {mechanism}, so {key} must name its users"
        raise ConfigError(key, None, reason)
    text = listener.value("sasl.jaas.config", mechanism)
    try:
        module = parse_jaas_value(str(text))
    except MalformedJaas as error:
        raise _wrong(listener, mechanism, str(error)) from None
    if module.name != expected:
        raise _wrong(listener, mechanism, f"{mechanism} has the login module {expected}")
    return module


def _wrong(listener: ListenerConfig, mechanism: str, reason: str) -> ConfigError:
    key = listener.setting_name("sasl.jaas.config", mechanism)
    return ConfigError(key, "[hidden]", reason)


_MECHANISMS: Final[Mapping[str, Callable[[ListenerConfig, str], NewExchange]]] = {PLAIN: _plain}
