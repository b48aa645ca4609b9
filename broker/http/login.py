"""Who may ask over HTTP: on an address that others can reach, who proves to be somebody.

By a token (``Authorization: Bearer``), which stands for who runs the broker, or as a user of a SASL
listener (``Authorization: Basic``). Probes are answered to everybody.
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
from barnabas.broker.security.operations import CLUSTER_NAME, Operation, ResourceType
from barnabas.broker.security.principals import Principal, user

if TYPE_CHECKING:
    from barnabas.broker.http.request import Request
    from barnabas.broker.security.access import Access

CHALLENGE: Final = 'Basic realm="barnabas", Bearer realm="barnabas"'
ATTEMPTS_MAX: Final = 16
"""Passwords that are looked at, or whose failure is held back, at a time."""
TEXT_BYTES_MAX: Final = 2048

NEEDS: Final = {"/config": Operation.DESCRIBE_CONFIGS}
"""What a user needs on the cluster for a page; DESCRIBE for the others."""


class Passwords(Protocol):
    """The users of SASL listeners."""

    def __bool__(self) -> bool:
        """Whether there may be any."""

    async def verify(self, name: str, password: str) -> bool:
        """Whether a password is a user's."""


class NoPasswords:
    """No SASL listener has users."""

    def __bool__(self) -> bool:
        return False

    async def verify(self, name: str, password: str) -> bool:  # noqa: ARG002
        """Whether a password is a user's: none is."""
        return False


class HttpLogin:
    """Lets requests through, or answers them."""

    def __init__(
        self,
        *,
        token: str | None,
        passwords: Passwords,
        new_access: Callable[[Principal, str], Access],
        audit: LoginAudit,
        delay_s: float,
    ) -> None:
        self._token = None if token is None else token.encode()
        self._passwords = passwords
        self._new_access = new_access
        self._audit = audit
        self._delay_s = delay_s
        self._attempts = 0

    def judge(self, request: Request, peer_host: str) -> Answer | Awaitable[Answer | None] | None:
        """Return None for a request that is let through, an answer for one that is not."""
        if request.path in PROBES:
            return None
        scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
        credentials = credentials.strip()
        if scheme.lower() == "bearer" and self._token is not None:
            if hmac.compare_digest(credentials.encode("latin-1"), self._token):
                return None
            return self._held_back("", "token", "not the token", peer_host)
        pair = _name_and_password(credentials) if scheme.lower() == "basic" else None
        if pair is not None and self._passwords:
            if self._attempts >= ATTEMPTS_MAX:
                return text(429, "too many log in at this moment")
            return self._log_in(request, *pair, peer_host)
        return self._challenge()

    async def _log_in(
        self, request: Request, name: str, password: str, peer_host: str
    ) -> Answer | None:
        self._attempts += 1
        try:
            is_user = await self._passwords.verify(name, password)
        finally:
            self._attempts -= 1
        if not is_user:
            return await self._held_back(name, "password", "not the password", peer_host)
        principal = user(name)
        operation = NEEDS.get(request.path, Operation.DESCRIBE)
        access = self._new_access(principal, peer_host)
        if not access.may(operation, ResourceType.CLUSTER, CLUSTER_NAME):
            return text(403, f"{principal} lacks {operation.name} on Cluster:{CLUSTER_NAME}")
        return None

    async def _held_back(self, name: str, mechanism: str, reason: str, peer_host: str) -> Answer:
        self._audit.login_failed(name, peer_host, "http", mechanism, reason)
        if self._attempts >= ATTEMPTS_MAX:
            return text(429, "too many log in at this moment")
        self._attempts += 1
        try:
            await asyncio.sleep(self._delay_s)
        finally:
            self._attempts -= 1
        return self._challenge()

    def _challenge(self) -> Answer:
        words = "log in with a bearer token, or as a user of a SASL listener"
        if self._token is None and not self._passwords:
            words = (
                "nobody can log in: set barnabas.http.bearer.token, or have a SASL listener; on a "
                "loopback address this port asks nobody"
            )
        return text(401, words, {"WWW-Authenticate": CHALLENGE})


class LoginAudit(Protocol):
    """What keeps a record of logins."""

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
