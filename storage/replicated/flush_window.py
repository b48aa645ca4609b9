"""The time for which a broker with an object store collects records before it flushes them.

Rules of this file:

1. An object of any size costs a request. While records arrive so fast that a window fills an
   object, commit groups are collected: until the window ends, or an object has its full size.
2. At a lower rate nothing is collected: each flush leaves at once, with its records in the commit.
3. A window waits only as long as records arrive. One whose second half brought none was too long:
   the producers wait for their responses, or have stopped. For a second a flush leaves after twice
   the time in which records arrived, once it has half as many as that window, and enough for an
   object. If that window had too few for an object, flushes leave at once for a second. The next
   window has its full length again. If it is too long, too, that second becomes 2, 4, 8 and 16 s;
   otherwise all windows are full.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_RATE_S: Final = 1.0
"""Time over which the rate of arrivals is measured."""
_SHORTER_FOR_S_MIN: Final = 1.0
_SHORTER_FOR_S_MAX: Final = 16.0
_SOON_S: Final = 0.001
"""Rest of a window that ends at once."""


class FlushWindow:
    """The window of one broker; for one caller at a time, which gives the time."""

    def __init__(self, window_s: float, bytes_min: int, bytes_max: int) -> None:
        """``window_s`` is its length, or 0 to collect nothing.

        ``bytes_min``, ``bytes_max``: smallest and full size of an object.
        """
        self._window_s = window_s
        self._bytes_min = bytes_min
        self._bytes_max = bytes_max
        self._arrivals: deque[tuple[float, int]] = deque()
        """Times and sizes of the arrivals of the last second, and their total size."""
        self._arrived_bytes = 0
        self._begun_s: float | None = None
        self._last_s = 0.0
        """Time of the last arrival."""
        self._shorter_s = 0.0
        """Length of the windows before ``_full_from_s``, if they have ``_least_bytes``."""
        self._least_bytes = 0
        self._full_from_s = float("-inf")
        self._shorter_for_s = _SHORTER_FOR_S_MIN

    def arrive(self, size: int, now_s: float) -> None:
        """Note the arrival of ``size`` bytes, which wait to be flushed."""
        if size and self._window_s:
            self._arrivals.append((now_s, size))
            self._arrived_bytes += size
            self._last_s = now_s
            if self._begun_s is None:
                self._begun_s = now_s

    def left_s(self, waiting_bytes: int, now_s: float) -> float:
        """Return the time for which the waiting bytes are collected; 0 if they may leave now."""
        if self._begun_s is None or not 0 < waiting_bytes < self._bytes_max:
            return 0.0
        is_full = now_s >= self._full_from_s or waiting_bytes < self._least_bytes
        length_s = self._window_s if is_full else self._shorter_s
        left_s = self._begun_s + length_s - now_s
        return left_s if left_s >= _SOON_S and self._fills_an_object(now_s) else 0.0

    def flushed(self, size: int, waiting_bytes: int, now_s: float) -> None:
        """Note that ``size`` bytes have left; ``waiting_bytes`` have not."""
        if self._begun_s is not None and self._begun_s + self._window_s - now_s < _SOON_S:
            self._judge(size, self._last_s - self._begun_s, now_s)
        self._begun_s = now_s if waiting_bytes and self._window_s else None

    def _judge(self, size: int, grew_s: float, now_s: float) -> None:
        """Judge a window of full length: it has brought ``size`` bytes, all in ``grew_s``."""
        was_full = now_s >= self._full_from_s
        if size >= self._bytes_min and 2 * grew_s >= self._window_s:
            if was_full:
                self._shorter_for_s = _SHORTER_FOR_S_MIN
            return
        self._shorter_s, self._least_bytes = 0.0, 0
        if size >= self._bytes_min:
            self._shorter_s = 2 * max(0.0, grew_s)
            self._least_bytes = max(size // 2, self._bytes_min)
        if was_full:
            self._full_from_s = now_s + self._shorter_for_s
            self._shorter_for_s = min(2 * self._shorter_for_s, _SHORTER_FOR_S_MAX)

    def _fills_an_object(self, now_s: float) -> bool:
        """Whether a window gets enough records for an object, at the rate of the last second."""
        arrivals = self._arrivals
        while arrivals and arrivals[0][0] <= now_s - _RATE_S:
            self._arrived_bytes -= arrivals.popleft()[1]
        return self._arrived_bytes * self._window_s >= self._bytes_min * _RATE_S
