"""One SASL exchange of any mechanism: tokens in, tokens out, and its result."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias


class SaslFailed(Exception):
    """The exchange has failed permanently; the text is for the other side."""

    def __init__(self, message: str, user: str = "", detail: str = "") -> None:
        """``user`` is the user who tried to log in; ``detail`` is for the log, not for the other
        side.
        """
        super().__init__(message)
        self.user = user
        self.detail = detail


class OtherUser(SaslFailed):
    """The client logs in as another user than the permitted one; nothing was verified."""

    def __init__(self, user: str) -> None:
        super().__init__("", user)


class Challenge(NamedTuple):
    """The server's next token; the exchange continues."""

    token: bytes


class Accepted(NamedTuple):
    """The server's last token: the client's identity is proven."""

    token: bytes
    user: str
    expires_ms: int | None = None
    """Time when the credential expires, in milliseconds since the epoch, or None if it does not."""


Step: TypeAlias = Challenge | Accepted


class ServerExchange(Protocol):
    """The server's side of one exchange."""

    def step(self, token: bytes) -> Step:
        """Process the client's next token. After SaslFailed, no further token is allowed."""


class ClientExchange(Protocol):
    """The client's side of one exchange."""

    def first(self) -> bytes:
        """Return the first token."""

    def rounds(self, token: bytes) -> int:
        """Return the number of rounds of hashing that ``step`` takes with this token.

        About ten thousand take 10 ms: a caller that must not block calls ``step`` on a thread then.
        """

    def step(self, token: bytes) -> bytes | None:
        """Process the server's next token; returns the next one to send, or None. Raises
        SaslFailed.
        """
