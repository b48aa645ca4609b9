"""Times of the latest rebalances of groups: a ring of fixed size, in memory only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

SLOTS: Final = 1000
CHARACTERS_MOST: Final = 64 * 1024
"""Maximum size of the names of groups: with long names fewer rebalances are remembered."""


class Rebalance(NamedTuple):
    """Change of a group's generation."""

    group_id: str
    time_ms: int
    generation: int
    """Epoch of a group of KIP-848."""


class Rebalances:
    """The last ones of all groups."""

    def __init__(self, now_ms: int) -> None:
        """Create an empty ring; it has all rebalances from ``now_ms`` on."""
        self._ring: deque[Rebalance] = deque()
        self._characters = 0
        self.complete_since_ms = now_ms
        """Time from which on no rebalance is missing."""

    def __len__(self) -> int:
        return len(self._ring)

    def note(self, group_id: str, generation: int, now_ms: int) -> None:
        """Record a rebalance; if the history is full, drop the oldest one."""
        ring = self._ring
        ring.append(Rebalance(group_id, now_ms, generation))
        self._characters += len(group_id)
        while len(ring) > SLOTS or (self._characters > CHARACTERS_MOST and len(ring) > 1):
            gone = ring.popleft()
            self._characters -= len(gone.group_id)
            self.complete_since_ms = gone.time_ms

    def of(self, group_id: str) -> list[Rebalance]:
        """Return the rebalances of one group, the oldest first."""
        return [each for each in self._ring if each.group_id == group_id]

    def forget(self, is_lost: Callable[[str], bool], now_ms: int) -> None:
        """Drop the rebalances of groups that this broker no longer coordinates."""
        self._ring = deque(each for each in self._ring if not is_lost(each.group_id))
        self._characters = sum(len(each.group_id) for each in self._ring)
        self.restart(now_ms)

    def restart(self, now_ms: int) -> None:
        """Register that this broker coordinates more groups from now on."""
        self.complete_since_ms = now_ms
