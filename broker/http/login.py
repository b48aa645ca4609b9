"""Who asks over HTTP: with a token, or where others reach the port, all have to prove who they are.

By a token (``Authorization: Bearer``), which stands for who runs the broker, or as a user of a SASL
listener (``Authorization: Basic``). Probes are answered to everybody. What somebody may see is
decided where the answer is made.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, Protocol

from barnabas.broker.http.answer import Answer, text
from barnabas.broker.http.guard import PROBES
from barnabas.broker.network.addresses import network_of
from barnabas.broker.security.access import OPEN, Access, open_from
from barnabas.broker.security.principals import Principal, user

if TYPE_CHECKING:
    from barnabas.broker.http.request import Request
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.failed_logins import FailedLogins
    from barnabas.broker.security.passwords import Passwords

CHALLENGE: Final = 'Basic realm="barnabas", Bearer realm="barnabas"'
ATTEMPTS_MAX: Final = 16
"""Passwords that are looked at at a time: for those of SCRAM it takes a thread."""
TEXT_BYTES_MAX: Final = 2048
NOTED_AGAIN_S: Final = 3600
"""A login is noted once in this time for each user and address: every request is a login."""
NOTED_MAX: Final = 10_000
"""Users and addresses that are remembered as noted; then the oldest one is forgotten."""


class HttpLogin:
    """Finds out whom a request comes from, or answers it."""

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
        """``failed_logins`` are also those of the listeners; before recovery no user is known."""
        self._clock = clock
        self._token = None if token is None else token.encode()
        self._passwords = passwords
        self._failed_logins = failed_logins
        self._new_access = new_access
        self._audit = audit
        self._is_recovered = is_recovered
        self._attempts = 0
        # When a login of a principal, from an address, by a mechanism, was noted; the latest last.
        self._noted: dict[tuple[str, str, str], float] = {}

    def judge(
        self, request: Request, peer_host: str
    ) -> Access | Answer | Awaitable[Access | Answer]:
        """Return what the client may do, or an answer to one who has not proved who he is."""
        if request.path in PROBES:
            return OPEN
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        credentials = credentials.strip()
        if scheme and not self._failed_logins.may_try(network_of(peer_host)):
            return text(429, "too many failed logins from this address")
        if scheme.lower() == "bearer" and self._token is not None:
            if hmac.compare_digest(credentials.encode("latin-1"), self._token):
                self._note(OPEN.principal, peer_host, "token")
                return open_from(peer_host)
            return self._held_back("", "token", "not the token", peer_host)
        pair = _name_and_password(credentials) if scheme.lower() == "basic" else None
        if pair is not None and self._passwords:
            if not self._is_recovered():
                return text(503, "users are not known before recovery is over")
            if self._attempts >= ATTEMPTS_MAX:
                return text(429, "too many log in at this moment")
            return self._log_in(*pair, peer_host)
        return self._challenge()

    async def _log_in(self, name: str, password: str, peer_host: str) -> Access | Answer:
        self._attempts += 1
        try:
            still_holds = await self._passwords.verify(name, password)
        finally:
            self._attempts -= 1
        if still_holds is None:
            return await self._held_back(name, "password", "not the password", peer_host)
        access = self._new_access(user(name), peer_host)
        access.login_holds = still_holds
        self._note(access.principal, peer_host, "password")
        return access

    def _note(self, principal: str, peer_host: str, mechanism: str) -> None:
        """Write a login to the audit log, unless that was done a while ago."""
        key, now = (principal, peer_host, mechanism), self._clock.monotonic()
        noted = self._noted.get(key)
        if noted is not None and now - noted < NOTED_AGAIN_S:
            return
        self._noted.pop(key, None)
        if len(self._noted) >= NOTED_MAX:
            del self._noted[next(iter(self._noted))]
        self._noted[key] = now
        self._audit.logged_in(principal, peer_host, "http", mechanism)

    async def _held_back(self, name: str, mechanism: str, reason: str, peer_host: str) -> Answer:
        self._audit.login_failed(name, peer_host, "http", mechanism, reason)
        self._failed_logins.failed(network_of(peer_host))
        await asyncio.sleep(self._failed_logins.hold_back() / 1000)
        return self._challenge()

    def _challenge(self) -> Answer:
        words = "log in with a bearer token, or as a user of a SASL listener"
        if self._token is None and not self._passwords:
            words = (
                "nobody can log in: set barnabas.http.bearer.token, or have a SASL listener with "
                "passwords"
            )
        return text(401, words, {"WWW-Authenticate": CHALLENGE})


class LoginAudit(Protocol):
    """What keeps a record of logins."""

    def logged_in(self, principal: str, host: str, listener: str, mechanism: str) -> None:
        """Take note of a login."""

    def login_failed(
        self, user: str, host: str, listener: str, mechanism: str, reason: str
    ) -> None:
        """Take note of a login that has failed."""


def is_loopback(addresses: Iterable[str]) -> bool:
    """Whether all of a port's addresses are this machine's alone."""
    return all(ip_address(address).is_loopback for address in addresses)


def _name_and_password(credentials: str) -> tuple[str, str] | None:
    if len(credentials) > TEXT_BYTES_MAX:
        return None
    try:
        decoded = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    name, colon, password = decoded.partition(":")
    return (name, password) if colon and name and password else None
