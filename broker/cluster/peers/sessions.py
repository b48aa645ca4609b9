"""Which connection of a peer is the current one: the receiving side of hellos (R10).

A broker that asks others names itself in a *hello*: its node, its session, what the connection is
for, and the number of the connection, which rises. Of one (node, session, purpose) the connection
with the highest number is the current one; the hello that makes it so ends the one before. So what
a peer has sent and given up cannot be handled after what it has sent in its place, however long it
was on its way.

Rules of this file:

* **The number decides, not the order of arrival.** A connection whose hello comes late, behind that
  of a newer one, is refused.
* **Ended means: nothing more of it is handled.** Its connection is closed at once, and a handler
  that lets others have a turn in between asks ``is_ended`` before it goes on. What it has done by
  then lies in front of everything of the newer connection.
* **Sessions are not compared with each other.** What the former session of a node sends late is
  told by its epochs (R6): who takes a coordinator's shard over has a higher one.
* **Memory is bounded.** The connection that has been silent for longest is forgotten for a new one,
  but only if it is gone; while all are open, no other is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

LINKS_MAX: Final = 10_000
"""Connections that are remembered: up to three for each session of a peer."""
PURPOSE_CHARACTERS_MAX: Final = 32

Close = Callable[[str], None]
"""Closes a connection; takes why."""


class Hello(NamedTuple):
    """What a peer's connection begins with."""

    node_id: int
    session: int
    purpose: str
    number: int
    """Higher than that of every connection the session has opened before."""


class HelloRefused(Exception):
    """A hello that cannot be taken: its connection is to be closed; the text says why."""


class PeerLink:
    """A connection of a peer that has said hello; its own connection and handlers know it."""

    __slots__ = ("_close", "hello", "is_ended")

    def __init__(self, hello: Hello, close: Close) -> None:
        self.hello = hello
        self.is_ended = False
        """Whether a newer connection has taken its place: nothing more of this one is handled."""
        self._close: Close | None = close

    @property
    def is_gone(self) -> bool:
        """Whether its connection is closed."""
        return self._close is None

    def gone(self) -> None:
        """Let go of the connection, which is closed."""
        self._close = None

    def end(self, newer: Hello) -> None:
        """Handle nothing more of it."""
        self.is_ended = True
        close, self._close = self._close, None
        if close is not None:
            close(
                f"reason=broker {newer.node_id} has opened another connection for {newer.purpose}"
            )


class PeerSessions:
    """The current connection of each (node, session, purpose)."""

    def __init__(self, links_max: int = LINKS_MAX) -> None:
        self._links_max = links_max
        # The one that has said hello last comes last.
        self._links: dict[tuple[int, int, str], PeerLink] = {}

    def __len__(self) -> int:
        """Return how many connections are remembered."""
        return len(self._links)

    def take(self, hello: Hello, close: Close) -> PeerLink:
        """Make a connection the current one and end the one before.

        Raises HelloRefused for what is not newer than that, and where there is no room.
        """
        if len(hello.purpose) > PURPOSE_CHARACTERS_MAX:
            raise HelloRefused("the hello names no purpose that there is")
        key = hello[:3]
        before = self._links.get(key)
        if before is not None and hello.number <= before.hello.number:
            raise HelloRefused(f"broker {hello.node_id} has opened a newer connection")
        if before is None:
            self._make_room()
        else:
            del self._links[key]
            before.end(hello)
        link = self._links[key] = PeerLink(hello, close)
        return link

    def _make_room(self) -> None:
        if len(self._links) < self._links_max:
            return
        oldest = next((key for key, link in self._links.items() if link.is_gone), None)
        if oldest is None:
            raise HelloRefused(f"{self._links_max} connections of brokers are open")
        del self._links[oldest]
