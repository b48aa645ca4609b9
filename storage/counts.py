"""Counters of storage: plain integers, incremented where the event happens, 0.04 us each.

``/metrics`` reads them on the loop; of a storage thread's counters it may see the moment between
two additions.
"""

from typing import Final, NamedTuple

MICROSECOND_BITS: Final = 10
"""2**10 ns is 1.024 us: the lowest bound of a histogram of durations in nanoseconds."""


class Histogram:
    """Counts by powers of two: 0.09 us for each observation.

    ``counts[0]`` counts values below ``2**shift``, ``counts[n]`` values below ``2**(shift + n)``.
    So a quantile is exact to a factor of two, and better by interpolation.
    """

    __slots__ = ("counts", "shift", "sum")

    def __init__(self, shift: int = MICROSECOND_BITS) -> None:
        self.counts = [0] * 64
        self.shift = shift
        self.sum = 0

    def observe(self, value: int, times: int = 1) -> None:
        """Count a value from 0 on, ``times`` times."""
        self.counts[(value >> self.shift).bit_length()] += times
        self.sum += value * times


class FlushCounts:
    """Flushes of a broker of a cluster that were not committed."""

    __slots__ = ("refused", "sessions")

    def __init__(self) -> None:
        self.refused = 0
        """Flushes refused because another broker leads one of their partitions."""
        self.sessions = 0
        """Number of started sessions; each session but the first follows a lost one."""


class LogCounts:
    """Counters of a log, beside its regular state."""

    __slots__ = (
        "batches",
        "duplicates",
        "failed_reads",
        "opened_bytes",
        "opened_offset",
        "read_bytes",
        "reads",
        "refused",
    )

    def __init__(self) -> None:
        self.opened_offset = 0
        self.opened_bytes = 0
        self.batches = 0
        """Number of batches up to the latest snapshot."""
        self.duplicates = 0
        self.refused = 0
        self.reads = 0
        self.failed_reads = 0
        self.read_bytes = 0

    def start(self, next_offset: int, appended_bytes: int, batches_since_snapshot: int) -> None:
        """Start to count at the end of the log."""
        self.opened_offset = next_offset
        self.opened_bytes = appended_bytes
        self.batches = -batches_since_snapshot

    def traffic(
        self, next_offset: int, appended_bytes: int, batches_since_snapshot: int
    ) -> "Traffic":
        """Return the reads and writes up to the end of the log."""
        appended = self.batches + batches_since_snapshot
        return Traffic(
            next_offset - self.opened_offset,
            appended_bytes - self.opened_bytes,
            appended + self.duplicates + self.refused,
            self.duplicates,
            self.refused,
            self.reads,
            self.failed_reads,
            self.read_bytes,
        )


class Traffic(NamedTuple):
    """Reads and writes of a log since it was opened."""

    records: int = 0
    bytes_in: int = 0
    appends: int = 0
    """Batches offered, refused and repeated ones included."""
    duplicates: int = 0
    refused: int = 0
    reads: int = 0
    failed_reads: int = 0
    bytes_out: int = 0

    def plus(self, other: "Traffic") -> "Traffic":
        """Return the sum of both."""
        return Traffic(*map(int.__add__, self, other))
