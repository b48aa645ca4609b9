"""A limited number of connections, to which the newest is always admitted.

An attacker cannot be recognised before it has sent a request, so every connection is admitted. At
the limit the oldest connection of the address with the most connections is closed. A probe sends
its request within a millisecond; a connection that sends nothing grows old.
"""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

Connection = TypeVar("Connection")


class ConnectionSlots(Generic[Connection]):
    """At most ``limit`` connections, in the order in which they came."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._addresses: dict[Connection, str] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def enter(self, connection: Connection, address: str) -> Connection | None:
        """Admit ``connection``; return the one that has to be closed for that."""
        displaced = self._oldest_of_most() if len(self._addresses) >= self.limit else None
        if displaced is not None:
            del self._addresses[displaced]
        self._addresses[connection] = address
        return displaced

    def leave(self, connection: Connection) -> None:
        """Free the slot of ``connection``, if it still has one."""
        self._addresses.pop(connection, None)

    def _oldest_of_most(self) -> Connection:
        held = Counter(self._addresses.values())
        most = max(held.values())
        return next(each for each, address in self._addresses.items() if held[address] == most)
