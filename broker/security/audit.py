"""The audit log: who asked for what, from where, and whether it was allowed; in JSON lines.

| event | when |
|---|---|
| `denied` | a client asked for what it may not do |
| `allowed` | it may: always where something is changed or administered, else if that is wanted |
| `logged in`, `login failed` | at the end of a login |
| `changed` | somebody has changed something over HTTP, or tried to |
| `read records` | somebody looked at a topic's records over HTTP |
| `suppressed` | there were more lines about somebody in a second than are written |

What leaves out of an answer what a client may not see is no event.
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
"""Lines about one principal, or of one address before a login."""
TEXT_MAX: Final = 256
"""Of a name that a client has chosen; the rest is cut."""
FOLLOWED_MAX: Final = 10_000
"""Principals and addresses that are counted in a second; beyond it all count as one."""

COMMON: Final = frozenset((Operation.READ, Operation.WRITE, Operation.DESCRIBE))
"""What clients do all the time, if they may."""


class AuditLog:
    """Writes events as lines, as many as are of use."""

    def __init__(
        self,
        clock: Clock,
        write: Callable[[str], None],
        *,
        allowed_too: bool = False,
        note: Callable[[dict[str, object]], None] = lambda _event: None,
    ) -> None:
        """``allowed_too``: every decision is written, not those that matter alone.

        ``note`` is given what is written, too.
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
        """Take note of a decision."""
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
        """Take note of a login."""
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
        """Take note of a login that has failed; ``user`` is what the client has said."""
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
        """Take note of a change that was asked for outside of Kafka's protocol."""
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
        """Take note of a look at records outside of Kafka's protocol."""
        self._event(
            principal,
            {"event": "read records", "principal": principal, "host": host, "topic": _cut(topic)},
        )

    def _event(self, about: str, event: dict[str, object]) -> None:
        second = int(self._clock.monotonic())
        if second != self._second:
            self._tell_suppressed()
            self._second = second
        if len(self._lines) >= FOLLOWED_MAX and about not in self._lines:
            about = "*"
        lines = self._lines[about] = self._lines.get(about, 0) + 1
        if lines <= LINES_PER_SECOND:
            self._line(event)

    def _tell_suppressed(self) -> None:
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
