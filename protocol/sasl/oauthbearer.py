"""OAUTHBEARER (RFC 7628): a bearer token in place of a user and a password.

``verify`` reads and checks the token; this file has the messages. An invalid token gets a response
with a status in JSON, the client acknowledges it with one byte, and only then the login fails: so
the client learns the reason.

Rules are Apache Kafka's: no channel binding, an authorization id must be the token's user.
Extensions (KIP-342) are a client's claims without any proof: they must be well-formed, and have no
effect.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from barnabas.protocol.sasl.exchange import Accepted, Challenge, SaslFailed, Step

MECHANISM: Final = "OAUTHBEARER"
TOKEN_BYTES_MAX: Final = 64 * 1024
"""Maximum size of a message: tokens with hundreds of groups have 16 KB."""

FAILED: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism "
    "OAUTHBEARER"
)
_INVALID: Final = '{"status":"invalid_token"}'
_ACKNOWLEDGED: Final = b"\1"
_SEPARATOR: Final = "\1"
_AUTH: Final = "auth"

_MESSAGE: Final = re.compile(
    r"n,(?:a=(?P<authorization>(?:[^\0=,\x80-\U0010ffff]|=2C|=3D)+))?,"
    r"\1(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\1)*)\1".replace(r"\1", "\1")
)
_BEARER: Final = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)", re.ASCII)


class InvalidToken(Exception):
    """The token does not hold; the text is for the log, and must not have the token in it."""


class Verified(NamedTuple):
    """Facts that a token proves."""

    user: str
    expires_ms: int
    """Time in milliseconds since the epoch."""


class OAuthBearerServer:
    """The server's side: takes a token, or an invalid token and the client's acknowledgement of the
    error.
    """

    def __init__(self, verify: Callable[[str], Verified]) -> None:
        """``verify`` returns the user and expiry of a token; raises InvalidToken."""
        self._verify = verify
        self._failure: InvalidToken | None = None

    def step(self, token: bytes) -> Step:
        """Process the client's next message."""
        if self._failure is not None:
            raise SaslFailed(_INVALID, detail=str(self._failure))
        match = _matched(token)
        if match is None:
            raise SaslFailed(FAILED)
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split(_SEPARATOR) if pair)
        bearer = _BEARER.fullmatch(pairs.get(_AUTH, ""))
        if bearer is None or bearer["scheme"].lower() != "bearer":
            raise SaslFailed(FAILED)
        try:
            verified = self._verify(bearer["token"])
        except InvalidToken as error:
            self._failure = error
            return Challenge(_INVALID.encode())
        authorization_id = (match["authorization"] or "").replace("=2C", ",").replace("=3D", "=")
        if authorization_id not in {"", verified.user}:
            raise SaslFailed(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({verified.user})",
                verified.user,
            )
        return Accepted(b"", verified.user, verified.expires_ms)


class OAuthBearerClient:
    """The client's side: sends a token, and acknowledges that it does not hold."""

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        pairs = {_AUTH: f"Bearer {token}", **(extensions or {})}
        text = "".join(f"{key}={value}{_SEPARATOR}" for key, value in pairs.items())
        self._message = f"n,,{_SEPARATOR}{text}{_SEPARATOR}".encode()
        self._failure = ""

    def first(self) -> bytes:
        """Return the token."""
        return self._message

    def rounds(self, token: bytes) -> int:  # noqa: ARG002
        """Return 0: nothing is hashed."""
        return 0

    def step(self, token: bytes) -> bytes | None:
        """Process the server's response, which is empty or an error of the token."""
        if not token:
            return None
        if self._failure:
            raise SaslFailed(self._failure)
        self._failure = f"the server refuses the token: {_status(token)}"
        return _ACKNOWLEDGED


def _matched(token: bytes) -> re.Match[str] | None:
    if len(token) > TOKEN_BYTES_MAX:
        return None
    try:
        return _MESSAGE.fullmatch(token.decode("ascii"))
    except UnicodeDecodeError:
        return None


def _status(token: bytes) -> str:
    """Return the status in a server's response, or "unknown status"."""
    try:
        found = json.loads(token)
    except (ValueError, RecursionError):
        return "unknown status"
    status = found.get("status") if isinstance(found, dict) else None
    return status[:100] if isinstance(status, str) else "unknown status"
