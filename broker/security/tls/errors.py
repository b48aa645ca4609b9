"""Error of a TLS configuration."""

from __future__ import annotations


class TlsError(Exception):
    """Invalid TLS setting. ``str()`` is one line; it never shows a secret."""

    def __init__(self, key: str, reason: str) -> None:
        """``key`` is the invalid setting, in the spelling in which it was given."""
        self.key = key
        self.reason = reason
        super().__init__(f"{key}: {reason}")
