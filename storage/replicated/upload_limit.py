"""The number of uploads at once, which an object store that throttles its clients reduces.

Rules of this file:

1. The store's "slow down" (503, 429) halves the number, down to one. An attempt that is
   older than the last halving does not halve it again: one burst of refusals counts once.
2. Each time that 10 s have passed without one, the number grows by one, up to the configured one.
"""

from __future__ import annotations

import logging
from typing import Final

from barnabas.storage.runtime.log_lines import LogLines

logger = logging.getLogger(__name__)

RECOVERY_S: Final = 10.0


class UploadLimit:
    """The limit of one broker; the caller holds a lock."""

    def __init__(self, most: int) -> None:
        """Start with ``most``, which is never exceeded."""
        self._most = most
        self._at_once = most
        self._halved_s = self._changed_s = float("-inf")
        self._lines = LogLines()

    def at_once(self, now_s: float) -> int:
        """Return the maximum number of uploads at once."""
        while self._at_once < self._most and now_s - self._changed_s >= RECOVERY_S:
            self._at_once += 1
            self._changed_s += RECOVERY_S
        return self._at_once

    def is_reduced(self, now_s: float) -> bool:
        """Whether it is less than usual."""
        return self.at_once(now_s) < self._most

    def throttled(self, begun_s: float, now_s: float, error: str) -> None:
        """Note that the store has throttled an attempt, whose start was at ``begun_s``."""
        at_once = self.at_once(now_s)
        self._changed_s = now_s
        if begun_s <= self._halved_s or self._most <= 1:
            return
        self._at_once, self._halved_s = max(1, at_once // 2), now_s
        if self._lines.is_due(now_s):
            words = "object store throttles, fewer uploads at once uploads=%d error=%s"
            logger.warning(words, self._at_once, error)
