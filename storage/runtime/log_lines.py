"""Log lines about a lasting problem: one now, the next after a minute."""

from __future__ import annotations

from typing import Final

LINE_EVERY_S: Final = 60.0


class LogLines:
    """The lines about one thing; the caller holds a lock, and knows the time."""

    __slots__ = ("_due_s",)

    def __init__(self, due_s: float = float("-inf")) -> None:
        """``due_s``: time of the first line."""
        self._due_s = due_s

    def is_due(self, now_s: float, *, at_once: bool = False) -> bool:
        """Return whether a line is due now, or is to be written ``at_once``: then it is written."""
        if now_s < self._due_s and not at_once:
            return False
        self._due_s = now_s + LINE_EVERY_S
        return True
