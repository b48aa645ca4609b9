"""Errors between a client and its broker."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import Malformed

SAID_MAX: Final = 300
"""Maximum length, in characters, of a message of a broker or token server in an error."""


class Unreachable(Exception):
    """The broker cannot be reached, or the connection broke; another attempt can succeed.

    After a broken connection it is unknown whether the last requests arrived.
    """


class NotKafka(Unreachable):
    """The server does not speak Kafka's protocol: another attempt fails the same way."""


class NotLetIn(Unreachable):
    """Authentication refused, certificate not trusted, or TLS on one side only.

    Final: another attempt fails the same way, and might lock an account.
    """


class WrongSetting(Exception):
    """A client setting that cannot be used. ``str()`` is one line; it never shows a secret."""

    def __init__(self, key: str, reason: str) -> None:
        """``key`` is the setting at fault, in the spelling in which it was given."""
        self.key = key
        self.reason = reason
        super().__init__(f"{key}: {reason}")


class TokenUnavailable(Exception):
    """A server hands out no token just now; ``str()`` is one line without a secret."""


class TlsIsSpoken(Malformed):
    """The response to a plain request is a TLS alert."""


def is_end_of_tls(error: Exception) -> bool:
    """Return whether TLS met the end of the connection: Python 3.11.2 raises another error."""
    # ``ssl`` is not imported for every connection.
    return type(error).__name__ in {"SSLEOFError", "SSLZeroReturnError"}


def printable(text: str) -> str:
    """Return text of a broker without control characters, cut to a maximum length."""
    return "".join(each if each.isprintable() else " " for each in text[:SAID_MAX])
