"""Stages of a broker's start and stop."""

from __future__ import annotations

from enum import IntEnum


class Stage(IntEnum):
    """Stage of a broker."""

    OPENING = 0
    RECOVERED = 1
    PREPARED = 2
    """Stage in which the topics of the configuration exist."""
    LISTENING = 3
    STOPPING = 4
