"""Who asks, and whether he may change anything at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.broker.config.addresses import address_text
from barnabas.broker.console.shapes import Wide

if TYPE_CHECKING:
    from barnabas.broker.console.questions import Question


@dataclass(frozen=True, slots=True)
class Session:
    """Who asks."""

    as_of: Wide
    user: str
    host: str
    mode: str
    """``write`` or ``read``."""
    reason: str | None
    """Why nothing can be changed."""
    is_logged_in: bool
    """Whether a login was asked for."""
    bootstrap: str
    """Where clients connect: a listener as it is advertised."""


async def session(question: Question) -> Session:
    """Say who asks."""
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
    """Return the address of the first listener, as clients are told it."""
    for each in question.broker.sockets.listeners:
        host, port = each.advertised or (each.host or "localhost", each.bound[1])
        return address_text(host, port)
    return ""
