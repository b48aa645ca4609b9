"""The lag of one group over time, in a ring of numbers, and its trend."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from statistics import median
from typing import Final, NamedTuple

POINTS: Final = 120
TREND_MS: Final = 300_000
TREND_POINTS_LEAST: Final = 4
NUMBERS: Final = 3
"""Number of values in one point."""

FALLING_BEHIND: Final = "falling_behind"
CATCHING_UP: Final = "catching_up"
STEADY: Final = "steady"


class LagPoint(NamedTuple):
    """The lag of a group at a moment."""

    time_ms: int
    lag: int
    lag_blocked: int


class LagRing:
    """The newest points of one group."""

    __slots__ = ("_numbers", "_written")

    def __init__(self) -> None:
        self._numbers = array("q", bytes(8 * NUMBERS * POINTS))
        self._written = 0

    def add(self, point: LagPoint) -> None:
        """Add a point, which replaces the oldest."""
        at = NUMBERS * (self._written % POINTS)
        self._numbers[at : at + NUMBERS] = array("q", point)
        self._written += 1

    def points(self) -> Iterator[LagPoint]:
        """Yield the points, the oldest first."""
        for number in range(max(self._written - POINTS, 0), self._written):
            at = NUMBERS * (number % POINTS)
            yield LagPoint(*self._numbers[at : at + NUMBERS])


def trend_of(points: Iterable[LagPoint], now_ms: int) -> str | None:
    """Return the trend of a lag in the last five minutes, or None if there are too few points.

    It has a direction if the median of the newer half is beyond all of the older half: a lag that
    oscillates between commits, as in every healthy group, is steady.
    """
    lags = [each.lag for each in points if each.time_ms > now_ms - TREND_MS]
    if len(lags) < TREND_POINTS_LEAST:
        return None
    older, newer = lags[: len(lags) // 2], median(lags[len(lags) // 2 :])
    if newer > max(older):
        return FALLING_BEHIND
    return CATCHING_UP if newer < min(older) else STEADY
