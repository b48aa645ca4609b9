"""How far a broker has come on its way up, or down."""

from __future__ import annotations

from enum import IntEnum


class Stage(IntEnum):
    """How far a broker has come."""

    OPENING = 0
    RECOVERED = 1
    PREPARED = 2
    """The topics of the configuration exist."""
    LISTENING = 3
    STOPPING = 4
