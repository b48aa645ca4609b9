"""Rates of use, as Apache Kafka counts them: over windows, or with a token bucket.

Pure: the time, in seconds, is an argument.
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

DEFAULT_WINDOWS: Final = 11
DEFAULT_WINDOW_S: Final = 1.0


class Windows(NamedTuple):
    """Time over which a rate is counted: ``quota.window.num`` and ``quota.window.size.seconds``."""

    number: int = DEFAULT_WINDOWS
    size_s: float = DEFAULT_WINDOW_S

    @property
    def full_s(self) -> float:
        """Return the duration of all windows except the current one."""
        return (self.number - 1) * self.size_s


class Rate:
    """Amount per second in the last windows.

    The current window counts with its elapsed time. Missing windows count with their full time, so
    that a burst after an idle time does not count as a rate.
    """

    __slots__ = ("__weakref__", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: deque[list[float]] = deque()
        """Start of each window and the amount counted in it; the current one is the last."""

    def add(self, amount: float, now_s: float) -> None:
        """Count an amount; a negative one undoes an amount of the current window."""
        samples = self._samples
        self._forget(now_s)
        if not samples or now_s - samples[-1][0] >= self._windows.size_s:
            samples.append([now_s, 0.0])
        samples[-1][1] += amount

    def throttle_s(self, limit: float, now_s: float) -> float:
        """Return the seconds without use until the rate is at the limit again, or 0."""
        self._forget(now_s)
        if not self._samples:
            return 0.0
        span_s = self._span_s(now_s)
        rate = sum(amount for _, amount in self._samples) / span_s
        return max(0.0, (rate - limit) / limit * span_s)

    def is_idle(self, now_s: float) -> bool:
        """Whether all counted amounts are zero."""
        self._forget(now_s)
        return not any(amount for _, amount in self._samples)

    def _span_s(self, now_s: float) -> float:
        size_s, count = self._windows.size_s, self._windows.number
        elapsed_s = now_s - self._samples[0][0]
        full_windows = int(elapsed_s / size_s)
        missing = count - 1 - full_windows
        return elapsed_s + max(0, missing) * size_s

    def _forget(self, now_s: float) -> None:
        oldest_s = now_s - self._windows.number * self._windows.size_s
        samples = self._samples
        while samples and samples[0][0] <= oldest_s:
            samples.popleft()


class TokenBucket:
    """Tokens that are refilled at a rate, up to those of all windows; the balance can be
    negative.
    """

    __slots__ = ("__weakref__", "_tokens", "_updated_s", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._tokens: float | None = None  # The maximum.
        self._updated_s = 0.0

    def take(self, amount: float, limit: float, now_s: float) -> None:
        """Take tokens, even if the balance becomes negative."""
        self._tokens = self._refilled(limit, now_s) - amount
        self._updated_s = now_s

    def throttle_s(self, limit: float, now_s: float) -> float:
        """Return the seconds until the balance is not negative, or 0."""
        return max(0.0, -self._refilled(limit, now_s) / limit)

    def is_idle(self, limit: float, now_s: float) -> bool:
        """Whether the bucket is full."""
        return self._refilled(limit, now_s) >= self._most(limit)

    def _most(self, limit: float) -> float:
        return limit * self._windows.number * self._windows.size_s

    def _refilled(self, limit: float, now_s: float) -> float:
        most = self._most(limit)
        if self._tokens is None:
            return most
        return min(most, self._tokens + (now_s - self._updated_s) * limit)
