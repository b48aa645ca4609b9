"""Audit log: operations with their principal, address and result, in JSON lines.

| event | when |
|---|---|
| `denied` | a client has tried an operation without permission |
| `allowed` | it has permission: for all changes and administration, for the rest if configured |
| `logged in`, `login failed` | at the end of a login |
| `changed` | a user has changed something over HTTP, or tried to |
| `read records` | a user has read a topic's records over HTTP |
| `suppressed` | a principal or address had more lines in a second than are written |

Resources that a response leaves out for lack of permission are not events.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.acls.operations import Operation, PatternType, ResourceType, shown

if TYPE_CHECKING:
    from barnabas.broker.runtime.clock import Clock

LINES_PER_SECOND: Final = 20
"""Maximum number of lines per second about one principal, or one address before a login."""
TEXT_MAX: Final = 256
"""Maximum length of a name that a client has chosen; the rest is cut off."""
FOLLOWED_MAX: Final = 10_000
"""Maximum number of principals and addresses counted in a second; all further ones share one
count."""

COMMON: Final = frozenset((Operation.READ, Operation.WRITE, Operation.DESCRIBE))
"""Operations that clients do all the time, if permitted."""


class AuditLog:
    """Writer of events as lines, within a limit."""

    def __init__(
        self,
        clock: Clock,
        write: Callable[[str], None],
        *,
        allowed_too: bool = False,
        note: Callable[[dict[str, object]], None] = lambda _event: None,
    ) -> None:
        """Create a writer; with ``allowed_too`` it writes all decisions, not only important ones.

        ``note`` also receives each event.
        """
        self._note = note
        self._clock = clock
        self._write = write
        self._allowed_too = allowed_too
        self._second = -1
        self._lines: dict[str, int] = {}

    def decided(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
        *,
        allowed: bool,
        rule: str,
    ) -> None:
        """Write a decision."""
        if allowed and operation in COMMON and not self._allowed_too:
            return
        self._event(
            principal,
            {
                "event": "allowed" if allowed else "denied",
                "principal": principal,
                "host": host,
                "operation": shown(operation),
                "resource": f"{shown(resource_type)}:{PatternType.LITERAL.name}:{_cut(name)}",
                "rule": rule,
            },
        )

    def logged_in(self, principal: str, host: str, listener: str, mechanism: str) -> None:
        """Write a login."""
        self._event(
            principal,
            {
                "event": "logged in",
                "principal": principal,
                "host": host,
                "listener": listener,
                "mechanism": mechanism,
            },
        )

    def login_failed(
        self, user: str, host: str, listener: str, mechanism: str, reason: str
    ) -> None:
        """Write a failed login; ``user`` is the name that the client has sent."""
        self._event(
            host,
            {
                "event": "login failed",
                "user": _cut(user),
                "host": host,
                "listener": listener,
                "mechanism": _cut(mechanism),
                "reason": _cut(reason),
            },
        )

    def changed(self, principal: str, host: str, action: str, resource: str, result: str) -> None:
        """Write a change that was requested outside of Kafka's protocol."""
        self._event(
            principal,
            {
                "event": "changed",
                "principal": principal,
                "host": host,
                "action": action,
                "resource": _cut(resource),
                "result": _cut(result),
            },
        )

    def read_records(self, principal: str, host: str, topic: str) -> None:
        """Write a read of records outside of Kafka's protocol."""
        self._event(
            principal,
            {"event": "read records", "principal": principal, "host": host, "topic": _cut(topic)},
        )

    def _event(self, about: str, event: dict[str, object]) -> None:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._write_suppressed()
            self._second = second
        if len(self._lines) >= FOLLOWED_MAX and about not in self._lines:
            about = "*"
        lines = self._lines[about] = self._lines.get(about, 0) + 1
        if lines <= LINES_PER_SECOND:
            self._line(event)

    def _write_suppressed(self) -> None:
        lines, self._lines = self._lines, {}
        for about, count in lines.items():
            if count > LINES_PER_SECOND:
                more = count - LINES_PER_SECOND
                self._line({"event": "suppressed", "about": about, "count": more})

    def _line(self, event: dict[str, object]) -> None:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, UTC)
        time = now.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        self._write(json.dumps({"time": time, **event}))
        self._note(event)


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}..."
