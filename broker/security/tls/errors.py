"""Why TLS cannot be set up."""

from __future__ import annotations


class TlsError(Exception):
    """A setting of TLS that cannot be used. ``str()`` is one line; it never shows a secret."""

    def __init__(self, key: str, reason: str) -> None:
        """``key`` is the setting at fault, in the spelling in which it was given."""
        self.key = key
        self.reason = reason
        super().__init__(f"{key}: {reason}")
