"""The user of a request, and whether changes are possible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.config.addresses import address_text
from barnabas.broker.console.shapes import Wide

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question


@dataclass(frozen=True, slots=True)
class Session:
    """The user of a request."""

    as_of: Wide
    user: str
    host: str
    mode: str
    """``write`` or ``read``."""
    reason: str | None
    """Reason that nothing can be changed."""
    is_logged_in: bool
    """Whether the user has authenticated."""
    bootstrap: str
    """Bootstrap address for clients: an advertised listener."""


async def session(question: Question) -> Session:
    """Return the user of the request."""
    broker, access = question.broker, question.access
    reason = broker.changes_refused
    return Session(
        question.now_ms,
        access.principal,
        access.host,
        "write" if reason is None else "read",
        reason,
        broker.asks_for_login,
        _bootstrap(question),
    )


def _bootstrap(question: Question) -> str:
    """Return the advertised address of the first listener."""
    for each in question.broker.sockets.listeners:
        host, port = each.advertised or (each.host or "localhost", each.bound[1])
        return address_text(host, port)
    return ""
