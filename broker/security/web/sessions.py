"""Sessions of browsers: a cookie for each, known to this process only.

All ports of a host share cookies, so the cookie's name includes the port of the request. A restart
ends all sessions. A session also ends when the credential of its login changes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from barnabas.storage.runtime.chance import random_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.http.messages.request import Request
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.security.principals import Principal

SESSION_SECONDS: Final = 12 * 3600
SESSIONS_MAX: Final = 1000
"""Maximum number of sessions; then the oldest one of the principal with most sessions ends."""
SESSIONS_EACH_MAX: Final = 16
"""Maximum number of sessions of one principal; then its oldest one ends."""
ID_BYTES: Final = 32
_DEFAULT_PORT: Final = "80"
"""Port of a request that names none."""


@dataclass(frozen=True, slots=True)
class HttpSession:
    """Session of a browser."""

    principal: Principal | None
    """Principal, or None for the operator with the token."""
    login_holds: Callable[[], bool]
    ends_s: float


class HttpSessions:
    """Sessions of one port."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[str, HttpSession] = {}

    def begin(
        self, request: Request, principal: Principal | None, login_holds: Callable[[], bool]
    ) -> str:
        """Start a session; return the header that makes the browser store the cookie."""
        self._make_room(principal)
        key = random_text(ID_BYTES)
        ends_s = self._clock.monotonic() + SESSION_SECONDS
        self._sessions[key] = HttpSession(principal, login_holds, ends_s)
        return _cookie(request, key, SESSION_SECONDS)

    def _make_room(self, principal: Principal | None) -> None:
        """End the oldest session of this principal, or of the principal with the most sessions."""
        counts = Counter(each.principal for each in self._sessions.values())
        if counts[principal] >= SESSIONS_EACH_MAX:
            self._end_oldest_of(principal)
        elif len(self._sessions) >= SESSIONS_MAX:
            self._end_oldest_of(counts.most_common(1)[0][0])

    def _end_oldest_of(self, principal: Principal | None) -> None:
        oldest = next(key for key, each in self._sessions.items() if each.principal == principal)
        del self._sessions[oldest]

    def of(self, request: Request) -> HttpSession | None:
        """Return the session of a request, or None."""
        key = request.cookies.get(_name(request), "")
        found = self._sessions.get(key)
        if found is None:
            return None
        if self._clock.monotonic() < found.ends_s and found.login_holds():
            return found
        del self._sessions[key]
        return None

    def end(self, request: Request) -> str:
        """End the session of a request; return the header that deletes the browser's cookie."""
        self._sessions.pop(request.cookies.get(_name(request), ""), None)
        return _cookie(request, "", 0)


def is_encrypted(request: Request) -> bool:
    """Whether a browser used TLS, which a proxy has terminated."""
    return request.headers.get("origin", "").startswith("https://")


def _name(request: Request) -> str:
    host = request.headers.get("host", "")
    port = host.rpartition("]")[2].rpartition(":")[2] if ":" in host.rpartition("]")[2] else ""
    return f"barnabas_{port if port.isdigit() else _DEFAULT_PORT}"


def _cookie(request: Request, value: str, seconds: int) -> str:
    secure = "; Secure" if is_encrypted(request) else ""
    rules = f"Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return f"{_name(request)}={value}; {rules}"
