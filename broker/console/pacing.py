"""Limit of the work of one request before the loop gets a turn.

A unit is about a microsecond's work: one group's name, an offset of a partition. Units are counted
and not timed, so that a test can prove that no turn grows with the contents of a broker.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.runtime.turns import turn_over

UNITS_PER_TURN: Final = 200
"""A third of the millisecond that a console may keep the loop from Kafka's clients, at the most."""
PARTITION_UNITS: Final = 3
"""Units for the offsets of one partition."""
CLIENT_UNITS: Final = 3
"""Units for one connection, or one member of a group."""
ROW_UNITS: Final = 10
"""Units for one row of a response."""
UNIT_SECONDS: Final = 2e-6
"""Duration of one unit on a busy processor."""
SHARE: Final = 0.004
"""Share of the time for each of the two periodic tasks: an open page costs at most a hundredth."""


class Pace:
    """Rest of the units of this turn for one request."""

    def __init__(self) -> None:
        self._left = UNITS_PER_TURN

    async def spend(self, units: int = 1) -> None:
        """Count coming work; yield to other tasks first if due."""
        self._left -= units
        if self._left < 0:
            self._left = UNITS_PER_TURN - units
            await turn_over()


class CountingPace(Pace):
    """Counts all units."""

    def __init__(self) -> None:
        super().__init__()
        self.units = 0

    async def spend(self, units: int = 1) -> None:
        """Count coming work."""
        self.units += units
        await super().spend(units)


def rest_seconds(pace: CountingPace, least_seconds: float) -> float:
    """Return the pause after periodic work."""
    return max(least_seconds, pace.units * UNIT_SECONDS / SHARE)
