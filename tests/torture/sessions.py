"""Transactional producers of four libraries behind one interface, with every offset they report."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tests.counterparts.logins import Login
from tests.history.model import Partition, Write

PATIENCE_S, PATIENCE_MOST_S = 15, 60


def patience_s(timeout_ms: int) -> int:
    """Return how long a client tries one thing while the broker may be down.

    That is as long as its transaction may last: whose transaction outlasts every takeover is to
    fail by none, however long a busy machine takes.
    """
    return min(max(PATIENCE_S, timeout_ms // 1000), PATIENCE_MOST_S)


class Failed(Exception):
    """The transaction failed, and can be aborted."""


class Over(Exception):
    """The session cannot go on: fenced, or its library gave up."""


class Session(Protocol):
    """A producer with a transactional id, past its initTransactions."""

    def __init__(
        self, servers: str, transactional_id: str, timeout_ms: int, login: Login
    ) -> None: ...

    def begin(self) -> None: ...

    def send(self, writes: Sequence[Write]) -> list[Write]:
        """Send and wait; returns what was acknowledged, with offsets. Raises when not all were."""

    def send_offsets(self, offsets: Mapping[Partition, int], group: Any) -> None:
        """Send offsets with the transaction; `group` is what the library's consumer says it is."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


def session_kind(library: str) -> type[Session]:
    """Return the sessions of a library, the only one that is imported."""
    kind: type[Session] = importlib.import_module(f"tests.torture.session_{library}").Session
    return kind
