"""PLAIN (RFC 4616): user and password in one token, so only for use inside of TLS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from barnabas.protocol.sasl.exchange import Accepted, OtherUser, SaslFailed, Step

MECHANISM: Final = "PLAIN"
_PARTS: Final = 3


class PlainServer:
    """Takes one token: authorization id, user, password, with NUL between them."""

    def __init__(self, verify: Callable[[str, str], bool], only: str | None = None) -> None:
        """``verify`` returns whether a password is a user's, in the same time for every user.

        ``only``: the one user who may log in; passwords of other users are not verified.
        """
        self._verify = verify
        self._only = only

    def step(self, token: bytes) -> Step:
        """Check the token; each failure has Apache Kafka's message."""
        try:
            text = token.decode()
        except UnicodeDecodeError as error:
            raise SaslFailed("Invalid SASL/PLAIN response: not UTF-8") from error
        count = text.count("\0") + 1  # Not by splitting: half a million parts take their time.
        if count != _PARTS:
            raise SaslFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {count}")
        authorization_id, user, password = text.split("\0")
        if not user:
            raise SaslFailed("Authentication failed: username not specified")
        if not password:
            raise SaslFailed("Authentication failed: password not specified", user)
        if self._only is not None and user != self._only:
            raise OtherUser(user)
        if not self._verify(user, password):
            raise SaslFailed("Authentication failed: Invalid username or password", user)
        if authorization_id not in {"", user}:
            raise SaslFailed(
                "Authentication failed: Client requested an authorization id that is different "
                "from username",
                user,
            )
        return Accepted(b"", user)


class PlainClient:
    """Sends one token."""

    def __init__(self, user: str, password: str) -> None:
        self._token = f"\0{user}\0{password}".encode()

    def first(self) -> bytes:
        """Return user and password."""
        return self._token

    def rounds(self, token: bytes) -> int:  # noqa: ARG002
        """Return 0: nothing is hashed."""
        return 0

    def step(self, token: bytes) -> bytes | None:  # noqa: ARG002
        """Process the server's last token, which is empty."""
        return None
