"""A limited number of places, of which the newest always gets one.

Who cannot be told from an attacker before it has spoken is let in, and the oldest goes instead: of
those that came from the address with the most places. A probe asks within a millisecond of being
let in; a connection that says nothing grows old.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

Guest = TypeVar("Guest")


class Places(Generic[Guest]):
    """At most ``limit`` guests, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._guests: dict[Guest, str] = {}

    def __len__(self) -> int:
        return len(self._guests)

    def enter(self, guest: Guest, address: str) -> Guest | None:
        """Give ``guest`` a place; return who has lost its own for that."""
        displaced = self._oldest_of_most() if len(self._guests) >= self.limit else None
        if displaced is not None:
            del self._guests[displaced]
        self._guests[guest] = address
        return displaced

    def leave(self, guest: Guest) -> None:
        """Take a place back, if the guest still has one."""
        self._guests.pop(guest, None)

    def _oldest_of_most(self) -> Guest:
        held = Counter(self._guests.values())
        most = max(held.values())
        return next(guest for guest, address in self._guests.items() if held[address] == most)
