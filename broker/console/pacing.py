"""How much one request looks at before the loop gets a turn.

A unit is about a microsecond's work: one group's name, an offset of a partition. They are counted
and not timed, so that a test can prove that no turn gets longer by what a broker holds.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.runtime.turns import turn_over

UNITS_PER_TURN: Final = 200
"""A third of the millisecond that a console may keep the loop from Kafka's clients, at the most."""
PARTITION_UNITS: Final = 3
"""What it takes to look at one partition's offsets."""
CLIENT_UNITS: Final = 3
"""What it takes to look at one connection, or at one member of a group."""
ROW_UNITS: Final = 10
"""What it takes to make a row of an answer."""
UNIT_SECONDS: Final = 2e-6
"""What one unit of work takes where the processor has other work, too."""
SHARE: Final = 0.004
"""Of the time, that each work may take which comes again by itself: there are two of them, and a
page that is open may cost a hundredth in all."""


class Pace:
    """What is left of this turn for one request."""

    def __init__(self) -> None:
        self._left = UNITS_PER_TURN

    async def spend(self, units: int = 1) -> None:
        """Take note of work that is about to be done, after a turn for others if it is due."""
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
        """Take note of work that is about to be done."""
        self.units += units
        await super().spend(units)


def rest_seconds(pace: CountingPace, least_seconds: float) -> float:
    """Return how long to rest after work that comes again by itself."""
    return max(least_seconds, pace.units * UNIT_SECONDS / SHARE)
