"""Checks against requests that a foreign web page makes a browser send.

A page of any site can send requests to addresses that its visitor's browser reaches. A site whose
name suddenly resolves to 127.0.0.1 can even read the responses (DNS rebinding). Requests of
programs are not affected.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Final

from barnabas.broker.http.messages.request import BadRequest, Request

PROBES: Final = frozenset(("/livez", "/readyz", "/health", "/healthz"))
"""Paths of the probes, which are called by pod address or name, and have no secrets."""
METRICS: Final = "/metrics"
_HOST: Final = re.compile(r"(?:\[([^\[\]]*)\]|([^\[\]:]*))(?::[0-9]{0,5})?")
"""Address in brackets or a name, and a port."""
_SAFE: Final = frozenset(("GET", "HEAD"))
_API: Final = "api"
"""First part of the paths that a foreign page may not even read: it could not see the response, but
would make the broker search."""


class HostCheck:
    """Names by which this port may be called.

    Any address is accepted, since no site can make an address resolve to this machine.
    """

    def __init__(self, names: Iterable[str], *, metrics_by_any_name: bool = False) -> None:
        """Create a guard; with ``metrics_by_any_name`` it accepts any ``Host`` for ``/metrics``.

        That is safe if ``/metrics`` needs a token or a user, which no foreign page has.
        """
        self._names = frozenset(name.lower().rstrip(".") for name in names if name)
        self._exempt = PROBES | {METRICS} if metrics_by_any_name else PROBES

    def check(self, request: Request) -> None:
        """Raise BadRequest for a request to a name that is not this port's."""
        host = request.headers.get("host")
        if host is None or request.path in self._exempt or self._allows(host):
            return
        raise BadRequest(
            421,
            f"the host {_printable(host)} is not known here; barnabas.http.allowed.hosts lists "
            "names that are",
        )

    def _allows(self, host: str) -> bool:
        name = _name_of(host)
        if name is None:
            return False
        if name == "localhost" or name.endswith(".localhost") or name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True


def check_origin(request: Request) -> None:
    """Raise BadRequest for a change, or a search, that a foreign page has requested.

    Browsers send the origin of a request; a request without one is not a browser's.
    """
    if request.method in _SAFE and request.parts[:1] != (_API,):
        return
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        if site in {"same-origin", "none"}:
            return
        raise BadRequest(403, "a page of another site may ask nothing of this kind here")
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise BadRequest(403, "a page of another site may ask nothing of this kind here")


def is_local_name(host: str) -> bool:
    """Whether a Host header names the client's own machine, as browsers resolve it."""
    name = _name_of(host)
    if name is None:
        return False
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _name_of(host: str) -> str | None:
    """Return a host without its port, or None if it is not valid."""
    found = _HOST.fullmatch(host.strip().lower())
    if found is None:
        return None
    address, name = found.groups()
    return address if name is None else str(name).rstrip(".")


def _printable(text: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in text[:80])
