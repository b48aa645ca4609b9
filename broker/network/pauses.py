"""Reasons of a connection to handle no request at the moment, each one bit of its ``pauses``."""

from __future__ import annotations

from typing import Final

HANDLING: Final = 1
"""A run is in progress during which no other request is handled."""
WRITING: Final = 2
"""The peer does not read its responses."""
BACKLOGGED: Final = 4
"""The journal has a backlog."""
PIPELINED: Final = 8
"""Too many responses are pending."""
DRAINING: Final = 16
"""The broker is stopping."""
CLOSED: Final = 32
"""The connection is closed."""
THROTTLED: Final = 64
"""The client has exceeded a quota (KIP-219)."""
