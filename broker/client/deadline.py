"""Deadline of a whole operation, and the pauses between its attempts."""

from __future__ import annotations

from barnabas.storage.runtime.clock import monotonic, sleep

_FIRST_PAUSE_S = 0.01
_LONGEST_PAUSE_S = 0.5


class Deadline:
    """A point in time until which attempts are repeated, each after a longer pause."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._end = monotonic() + timeout_ms / 1000
        self._pause_s = _FIRST_PAUSE_S

    @property
    def left_ms(self) -> int:
        """Milliseconds until the end, not below 0."""
        return max(0, int((self._end - monotonic()) * 1000))

    @property
    def is_over(self) -> bool:
        """Whether the time for further attempts has passed."""
        return monotonic() >= self._end

    def pause(self) -> None:
        """Sleep before the next attempt, longer each time, never past the end."""
        sleep(max(0.0, min(self._pause_s, self._end - monotonic())))
        self._pause_s = min(self._pause_s * 2, _LONGEST_PAUSE_S)
