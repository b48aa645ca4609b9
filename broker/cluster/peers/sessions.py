"""Current connection of each peer: the receiving side of hellos (R10).

The sending broker names itself in a *hello*: its node, its session, the connection's purpose, and
the connection's number, which rises. The connection with the highest number is the current one of
its (node, session, purpose). Its hello ends the connection before it. So a request that the peer
has given up cannot be handled after the request that replaced it, regardless of network delays.

Rules of this file:

* **The number decides, not the order of arrival.** A hello that arrives after that of a newer
  connection is refused.
* **An ended connection handles no more requests.** It is closed at once, and a handler that yields
  to the event loop checks ``is_ended`` before it continues. Its work before that precedes all work
  of the newer connection.
* **Sessions are not compared with each other.** Late requests of a node's previous session are
  recognized by their epochs (R6): the new owner of a coordinator's shard has a higher one.
* **Memory is limited.** A new connection replaces the oldest closed one; if all are open, it is
  refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

LINKS_MAX: Final = 10_000
"""Connections that are remembered: up to three for each session of a peer."""
PURPOSE_CHARACTERS_MAX: Final = 32

Close = Callable[[str], None]
"""Closes a connection; takes the reason."""


class Hello(NamedTuple):
    """Content of a peer's hello."""

    node_id: int
    session: int
    purpose: str
    number: int
    """Number of the connection, higher than all earlier ones of the session."""


class HelloRefused(Exception):
    """Refused hello; its connection must be closed, for the reason in the text."""


class PeerLink:
    """Connection of a peer after its hello, shared by the connection and its handlers."""

    __slots__ = ("_close", "hello", "is_ended")

    def __init__(self, hello: Hello, close: Close) -> None:
        self.hello = hello
        self.is_ended = False
        """Whether a newer connection has replaced it, so that no more requests are handled."""
        self._close: Close | None = close

    @property
    def is_gone(self) -> bool:
        """Whether the connection is closed."""
        return self._close is None

    def gone(self) -> None:
        """Drop the reference to the connection, which is closed."""
        self._close = None

    def end(self, newer: Hello) -> None:
        """End the connection, since a newer one replaces it."""
        self.is_ended = True
        close, self._close = self._close, None
        if close is not None:
            close(
                f"reason=broker {newer.node_id} has opened another connection for {newer.purpose}"
            )


class PeerSessions:
    """Current connections by node, session and purpose."""

    def __init__(self, links_max: int = LINKS_MAX) -> None:
        self._links_max = links_max
        # In the order of their hellos, the newest last.
        self._links: dict[tuple[int, int, str], PeerLink] = {}

    def __len__(self) -> int:
        """Return the number of connections that are kept."""
        return len(self._links)

    def take(self, hello: Hello, close: Close) -> PeerLink:
        """Make a connection the current one, and end the one before.

        Raises HelloRefused for an older number, an invalid purpose, or if there is no room.
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
