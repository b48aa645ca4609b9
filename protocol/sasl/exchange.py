"""One SASL exchange, whatever its mechanism: tokens in, tokens out, and how it ends."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias


class SaslFailed(Exception):
    """The exchange has failed for good; the text is for the other side."""

    def __init__(self, message: str, user: str = "", detail: str = "") -> None:
        """``user`` is who was to log in, ``detail`` more than the other side hears: for the log."""
        super().__init__(message)
        self.user = user
        self.detail = detail


class OtherUser(SaslFailed):
    """Somebody else is to log in than the one who may; nothing was verified."""

    def __init__(self, user: str) -> None:
        super().__init__("", user)


class Challenge(NamedTuple):
    """The server's next token; the exchange goes on."""

    token: bytes


class Accepted(NamedTuple):
    """The server's last token: the client is who it says."""

    token: bytes
    user: str
    expires_ms: int | None = None
    """When the credential ends, in milliseconds since the epoch; None: not by itself."""


Step: TypeAlias = Challenge | Accepted


class ServerExchange(Protocol):
    """The server's side of one exchange."""

    def step(self, token: bytes) -> Step:
        """Take the client's next token; raises SaslFailed, after which it must not go on."""


class ClientExchange(Protocol):
    """The client's side of one exchange."""

    def first(self) -> bytes:
        """Return the first token."""

    def rounds(self, token: bytes) -> int:
        """Return how many rounds of hashing ``step`` takes with this token.

        Some ten thousand take 10 ms: whoever must not be held up calls ``step`` on a thread then.
        """

    def step(self, token: bytes) -> bytes | None:
        """Take the server's next token; None: nothing more is to be sent. Raises SaslFailed."""
