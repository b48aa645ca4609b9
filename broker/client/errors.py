"""What keeps a client from its broker."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import Malformed

SAID_MAX: Final = 300
"""Characters of what a broker, or a server of tokens, says that are shown."""


class Unreachable(Exception):
    """No broker there, or the connection broke; another attempt may succeed.

    After a broken connection it is not known whether the last requests arrived.
    """


class NotKafka(Unreachable):
    """What answered does not speak Kafka's protocol as we do: another attempt ends likewise."""


class NotLetIn(Unreachable):
    """A login that is refused, a certificate that one side does not trust, TLS on one side only.

    Final: another attempt ends likewise, and might lock an account.
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
    """The answer to a plain request is a TLS alert."""


def printable(text: str) -> str:
    """Return what somebody says without what a terminal would obey, and not all of a novel."""
    return "".join(each if each.isprintable() else " " for each in text[:SAID_MAX])
