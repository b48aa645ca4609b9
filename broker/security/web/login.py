"""Authentication over HTTP: by a token, or if other machines reach the port, also by users.

A token (``Authorization: Bearer``) has the operator's permissions. A user of a SASL listener uses
``Authorization: Basic``. Either can start a session (a cookie). Probes need no authentication. The
handlers decide what a user may see.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.config.addresses import client_network
from barnabas.broker.http.messages.answer import JSON, Answer, json_answer, text
from barnabas.broker.http.messages.json_body import read_json
from barnabas.broker.http.messages.request import BadRequest
from barnabas.broker.security.acls.access import OPEN, Access, always, open_from
from barnabas.broker.security.principals import Principal, user
from barnabas.broker.security.web.guard import PROBES, is_local_name
from barnabas.broker.security.web.login_ways import LoginWays
from barnabas.broker.security.web.sessions import HttpSessions, is_encrypted

if TYPE_CHECKING:
    from barnabas.broker.http.messages.request import Request
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.sasl.failed_logins import FailedLogins
    from barnabas.broker.security.sasl.passwords import Passwords, StillHolds

PLAIN_HTTP: Final = (
    "a password is not sent over plain HTTP: use TLS, or a tunnel to http://localhost"
)
ATTEMPTS_MAX: Final = 16
"""Maximum number of passwords verified at a time: those of SCRAM need a thread."""
TEXT_BYTES_MAX: Final = 2048
NOTED_AGAIN_S: Final = 3600
"""Interval, in seconds, at which the audit log repeats a user's login from an address, since every
request is a login."""
NOTED_MAX: Final = 10_000
"""Maximum number of recorded pairs of user and address; then the oldest one is dropped."""


class HttpLogin:
    """Authentication of requests."""

    def __init__(
        self,
        *,
        clock: Clock,
        token: str | None,
        passwords: Passwords,
        failed_logins: FailedLogins,
        new_access: Callable[[Principal, str], Access],
        audit: LoginAudit,
        is_recovered: Callable[[], bool],
    ) -> None:
        """``failed_logins`` count apart from the listeners'.

        Before recovery no user is known.
        """
        self._clock = clock
        self._token = None if token is None else token.encode()
        self._passwords = passwords
        self.ways = LoginWays(has_token=token is not None, has_passwords=bool(passwords))
        """Ways to log in here."""
        self._failed_logins = failed_logins
        self._new_access = new_access
        self._audit = audit
        self._is_recovered = is_recovered
        self._attempts = 0
        self._sessions = HttpSessions(clock)
        # Time of the last record by principal, address and mechanism; the latest one last.
        self._noted: dict[tuple[str, str, str], float] = {}

    def judge(
        self, request: Request, peer_host: str
    ) -> Access | Answer | Awaitable[Access | Answer]:
        """Return the client's permissions, or a response that refuses the request."""
        if request.path in PROBES:
            return OPEN
        session = self._sessions.of(request)
        if session is not None:
            return self._access(session.principal, session.login_holds, peer_host)
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        credentials = credentials.strip()
        is_bearer = scheme.lower() == "bearer" and self._token is not None
        if is_bearer and self._is_token(credentials.encode("latin-1")):
            self._note(OPEN.principal, peer_host, "token")
            return open_from(peer_host)
        if scheme and not self._failed_logins.may_try(client_network(peer_host)):
            return text(429, "too many failed logins from this address")
        if is_bearer:
            return self._held_back(request, "", "token", "not the token", peer_host)
        pair = _name_and_password(credentials) if scheme.lower() == "basic" else None
        if pair is not None and self.ways.has_passwords:
            if not self._is_recovered():
                return text(503, "users are not known before recovery is over")
            if self._attempts >= ATTEMPTS_MAX:
                return text(429, "too many log in at this moment")
            return self._log_in(request, *pair, peer_host)
        return self._challenge(request, peer_host)

    def session(self, request: Request, peer_host: str) -> Answer | Awaitable[Answer]:
        """Start or end a client's session, and return the response."""
        if request.method == "DELETE":
            return Answer(204, JSON, (), {"Set-Cookie": self._sessions.end(request)})
        problem_here = self._session_problem(request, peer_host)
        if problem_here is not None:
            return refused(403, problem_here)
        try:
            name, password = _user_and_password(request)
            problem = None
        except BadRequest as bad:
            name = password = ""
            problem = bad.status, str(bad)
        is_token = not name and self._token is not None
        if is_token and self._is_token(password.encode()):
            self._note(OPEN.principal, peer_host, "token")
            return self._session_begins(request, None, always, OPEN.principal)
        if not self._failed_logins.may_try(client_network(peer_host)):
            return refused(429, "too many failed logins from this address")
        if problem is not None:
            return self._refused_body(*problem, peer_host)
        if is_token:
            return self._refused_later("", "token", "not the token", peer_host)
        if not self.ways.has_passwords:
            return refused(400, f"no listener has passwords: {self.ways.advice}, without a user")
        if not self._is_recovered():
            return refused(503, "users are not known before recovery is over")
        if self._attempts >= ATTEMPTS_MAX:
            return refused(429, "too many log in at this moment")
        return self._begin_session(request, name, password, peer_host)

    async def _begin_session(
        self, request: Request, name: str, password: str, peer_host: str
    ) -> Answer:
        still_holds = await self._verified(name, password)
        if still_holds is None:
            return await self._refused_later(name, "password", "not the password", peer_host)
        self._note(str(user(name)), peer_host, "password")
        return self._session_begins(request, user(name), still_holds, str(user(name)))

    def _session_begins(
        self,
        request: Request,
        principal: Principal | None,
        login_holds: Callable[[], bool],
        shown: str,
    ) -> Answer:
        cookie = self._sessions.begin(request, principal, login_holds)
        body = (json.dumps({"user": shown}) + "\n",)
        return Answer(200, JSON, body, {"Set-Cookie": cookie})

    def _is_token(self, given: bytes) -> bool:
        """Return whether the given bytes are the token, which is checked before any limit
        applies.
        """
        return self._token is not None and hmac.compare_digest(given, self._token)

    async def _refused_body(self, status: int, reason: str, peer_host: str) -> Answer:
        await self._hold_back("", "password", reason, peer_host)
        return refused(status, reason)

    async def _refused_later(
        self, name: str, mechanism: str, reason: str, peer_host: str
    ) -> Answer:
        await self._hold_back(name, mechanism, reason, peer_host)
        return refused(401, "not a user with this password")

    def _access(
        self, principal: Principal | None, login_holds: Callable[[], bool], peer_host: str
    ) -> Access:
        if principal is None:
            return open_from(peer_host)
        access = self._new_access(principal, peer_host)
        access.login_holds = login_holds
        return access

    async def _verified(self, name: str, password: str) -> StillHolds | None:
        self._attempts += 1
        try:
            return await self._passwords.verify(name, password)
        finally:
            self._attempts -= 1

    async def _log_in(
        self, request: Request, name: str, password: str, peer_host: str
    ) -> Access | Answer:
        still_holds = await self._verified(name, password)
        if still_holds is None:
            return await self._held_back(request, name, "password", "not the password", peer_host)
        access = self._access(user(name), still_holds, peer_host)
        self._note(access.principal, peer_host, "password")
        return access

    def _note(self, principal: str, peer_host: str, mechanism: str) -> None:
        """Write a login to the audit log, unless it was written a short time ago."""
        key, now = (principal, peer_host, mechanism), self._clock.monotonic()
        noted = self._noted.get(key)
        if noted is not None and now - noted < NOTED_AGAIN_S:
            return
        self._noted.pop(key, None)
        if len(self._noted) >= NOTED_MAX:
            del self._noted[next(iter(self._noted))]
        self._noted[key] = now
        self._audit.logged_in(principal, peer_host, "http", mechanism)

    async def _held_back(
        self, request: Request, name: str, mechanism: str, reason: str, peer_host: str
    ) -> Answer:
        await self._hold_back(name, mechanism, reason, peer_host)
        return self._challenge(request, peer_host)

    async def _hold_back(self, name: str, mechanism: str, reason: str, peer_host: str) -> None:
        self._audit.login_failed(name, peer_host, "http", mechanism, reason)
        self._failed_logins.failed(client_network(peer_host))
        await self._clock.sleep(self._failed_logins.hold_back() / 1000)

    def _challenge(self, request: Request, peer_host: str) -> Answer:
        """Return the response to a request without valid credentials.

        A script of the console shows its own form or the reason why it has none: it gets no
        challenge.
        """
        is_script = "sec-fetch-mode" in request.headers
        is_api = request.parts[:1] == ("api",)
        headers = {} if is_api and is_script else {"WWW-Authenticate": self.ways.challenge}
        if not is_api:
            return text(401, self.ways.advice, headers)
        # A browser sends the header over TLS and to this machine only.
        problem = None if is_script else self._session_problem(request, peer_host)
        body = {
            "error": "SASL_AUTHENTICATION_FAILED",
            "message": self.ways.advice if problem is None else problem,
            "logins": self.ways.names if problem is None else [],
        }
        return json_answer(401, body, headers)

    def _session_problem(self, request: Request, peer_host: str) -> str | None:
        """Return the reason why this client cannot start a session, or ``None`` if it can.

        A browser that connects to localhost has reached its own machine: a tunnel or a published
        port of a container has brought the request here, from an address of its own.
        """
        if self.ways.closed_reason is not None:
            return self.ways.closed_reason
        is_local = is_loopback((peer_host,)) or is_local_name(request.headers.get("host", ""))
        return None if is_local or is_encrypted(request) else PLAIN_HTTP


class LoginAudit(Protocol):
    """Recorder of logins."""

    def logged_in(self, principal: str, host: str, listener: str, mechanism: str) -> None:
        """Record a login."""

    def login_failed(
        self, user: str, host: str, listener: str, mechanism: str, reason: str
    ) -> None:
        """Record a failed login."""


def is_loopback(addresses: Iterable[str]) -> bool:
    """Whether all of a port's addresses are this machine's alone."""
    return all(ip_address(address).is_loopback for address in addresses)


def refused(status: int, words: str) -> Answer:
    """Return a refusal in the form of all responses of the API."""
    name = "INVALID_REQUEST" if status == 400 else "SASL_AUTHENTICATION_FAILED"
    return json_answer(status, {"error": name, "message": words})


def _user_and_password(request: Request) -> tuple[str, str]:
    """Read the body of a request for a session; raises BadRequest."""
    expected = BadRequest(400, 'the body is to be JSON like {"user": "alice", "password": "..."}')
    if request.media_type != JSON or len(request.body) > TEXT_BYTES_MAX:
        raise expected
    body = read_json(request.body)
    if not isinstance(body, dict) or set(body) != {"user", "password"}:
        raise expected
    name, password = body["user"], body["password"]
    if not isinstance(name, str) or not isinstance(password, str) or not password:
        raise expected
    return name, password


def _name_and_password(credentials: str) -> tuple[str, str] | None:
    if len(credentials) > TEXT_BYTES_MAX:
        return None
    try:
        decoded = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, colon, password = decoded.partition(":")
    return (name, password) if colon and name and password else None
