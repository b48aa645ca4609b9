"""SASL login of one connection: the requests that it accepts, and its result.

Pure: requests and tokens come in, verdicts and outcomes go out; time is an argument. The states,
and the requests that each accepts, are those of Apache Kafka 4.3.0 (measured):

| state | ApiVersions | SaslHandshake | SaslAuthenticate | any other |
|---|---|---|---|---|
| NEW | served, once | served | closed | closed |
| CHOSEN (handshake v1) | refused | refused | the mechanism's step | refused |
| CHOSEN (handshake v0) | frames are bare tokens until the exchange has ended | | | |
| EXPIRED | closed | served: logs in again | closed | closed |
| FAILED | no request is handled | | | |

"Refused" is ILLEGAL_SASL_STATE in the form of the request's own API, then the connection closes;
"closed" is without a response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from barnabas.broker.security.principals import Principal, user
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.sasl.exchange import Accepted, OtherUser, SaslFailed, ServerExchange

HANDSHAKE_KEY: Final = 17
API_VERSIONS_KEY: Final = 18
AUTHENTICATE_KEY: Final = 36

SAME_MECHANISM: Final = "SASL mechanism cannot be changed during re-authentication"

USER_LOGGED: Final = 64
REASON_LOGGED: Final = 200
"""Maximum number of characters from a client that are logged."""

NewExchange: TypeAlias = Callable[[str | None], ServerExchange]
"""Starts an exchange; a re-authentication supplies the name of the only user who can log in.

A mechanism that knows the name before it verifies anything raises OtherUser for any other user.
"""


class State(Enum):
    """State of a login."""

    NEW = auto()
    CHOSEN = auto()
    EXPIRED = auto()
    FAILED = auto()
    COMPLETE = auto()


class Verdict(Enum):
    """Treatment of a request."""

    SERVED = auto()
    REFUSED = auto()
    CLOSED = auto()


class Next(NamedTuple):
    """Next token of an exchange that continues."""

    token: bytes


class LoggedIn(NamedTuple):
    """Success: the client has proved its identity."""

    token: bytes
    principal: Principal
    mechanism: str
    expires_ms: int | None
    """Time, in milliseconds since the epoch, at which the credential expires, or None."""


class LoginFailed(NamedTuple):
    """Failure: after a delay the client gets an error, and the connection closes."""

    code: ErrorCode
    message: str
    user: str = ""
    """Name of the user, or "" if it is not known."""
    detail: str = ""
    """Reason with more detail than the client receives."""
    mechanism: str = ""
    """Mechanism that the client named, if this broker does not offer it."""

    @property
    def reason(self) -> str:
        """Return the message for the client, otherwise the detail, otherwise the code's name."""
        return self.message or self.detail or self.code.name

    @property
    def described(self) -> str:
        """Return the text for the log, shortened and with printable characters only."""
        words = self.detail or self.message or self.code.name
        user = f" user={self.user[:USER_LOGGED]!a}" if self.user else ""
        return f"{user} reason={_printable(words[:REASON_LOGGED])}".lstrip()


Outcome: TypeAlias = Next | LoggedIn | LoginFailed


class Earlier(NamedTuple):
    """Login that a re-authentication repeats (KIP-368)."""

    principal: Principal
    mechanism: str


class Login:
    """State of one login."""

    __slots__ = (
        "_asked_versions",
        "_exchange",
        "_mechanisms",
        "earlier",
        "mechanism",
        "raw",
        "state",
    )

    def __init__(
        self,
        mechanisms: Mapping[str, NewExchange],
        earlier: Earlier | None = None,
        *,
        is_expired: bool = False,
    ) -> None:
        """``mechanisms`` are those of the listener; ``earlier`` is the login to repeat, or None."""
        self._mechanisms = mechanisms
        self._exchange: ServerExchange | None = None
        self._asked_versions = False
        self.earlier = earlier
        self.mechanism = ""
        self.raw = False
        """Whether frames are bare tokens, since the handshake was of version 0."""
        self.state = State.EXPIRED if is_expired else State.NEW

    def judge(self, api_key: int) -> Verdict:
        """Return the treatment of a request; call this once for each request."""
        if self.state is State.CHOSEN:
            return Verdict.SERVED if api_key == AUTHENTICATE_KEY else Verdict.REFUSED
        if self.state not in {State.NEW, State.EXPIRED}:
            return Verdict.CLOSED
        if api_key == HANDSHAKE_KEY:
            return Verdict.SERVED
        if api_key == API_VERSIONS_KEY and self.state is State.NEW and not self._asked_versions:
            return Verdict.SERVED
        return Verdict.CLOSED

    def versions_answered(self) -> None:
        """Record that ApiVersions was served; do not call it for an unknown version."""
        self._asked_versions = True

    @property
    def mechanism_names(self) -> list[str]:
        """The mechanisms that a client may choose."""
        return list(self._mechanisms)

    def choose(self, mechanism: str, version: int) -> LoginFailed | None:
        """Start an exchange; the handshake's version determines the form of the tokens."""
        new = self._mechanisms.get(mechanism)
        if new is None:
            self.state = State.FAILED
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            named = _printable(mechanism[:20])
            detail = f"mechanism {named} is not offered"
            return LoginFailed(code, "", detail=detail, mechanism=named)
        self.mechanism = mechanism
        self.raw = version == 0
        self.state = State.CHOSEN
        self._exchange = new(None if self.earlier is None else self.earlier.principal.name)
        return None

    def step(self, token: bytes) -> Outcome:
        """Handle the client's next token."""
        exchange = self._exchange
        assert exchange is not None, "no mechanism was chosen"
        if self.earlier is not None and self.mechanism != self.earlier.mechanism:
            return self._failed(SAME_MECHANISM)
        self.state = State.FAILED  # Even after an internal error no other token is accepted.
        try:
            found = exchange.step(token)
        except OtherUser as error:
            return self._is_other(user(error.user))
        except SaslFailed as error:
            return self._failed(str(error), error.user, error.detail)
        if not isinstance(found, Accepted):
            self.state = State.CHOSEN
            return Next(found.token)
        principal = user(found.user)
        if self.earlier is not None and principal != self.earlier.principal:
            return self._is_other(principal)
        self.state = State.COMPLETE
        self._exchange = None
        return LoggedIn(found.token, principal, self.mechanism, found.expires_ms)

    def _is_other(self, principal: Principal) -> LoginFailed:
        assert self.earlier is not None
        earlier = self.earlier.principal
        message = (
            f"Cannot change principals during re-authentication from {earlier.kind}."
            f"{earlier.name}: {principal.kind}.{principal.name}"
        )
        return self._failed(message, principal.name)

    def _failed(self, message: str, user_name: str = "", detail: str = "") -> LoginFailed:
        self.state = State.FAILED
        self._exchange = None
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return LoginFailed(code, message, user_name, detail)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in text)
