"""Histograms as Prometheus wants to see them, and quantiles of the last minutes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from barnabas.broker.metrics.families import Sample
from barnabas.storage.counts import MICROSECOND_BITS, Histogram

NANOSECONDS: Final = 1_000_000_000

DURATION_BUCKETS: Final = 26
"""Bounds from 1 us to 34 s; longer durations are counted in +Inf."""
COUNT_BUCKETS: Final = 16
"""Bounds from 1 to 32,768."""


def duration_samples(histogram: Histogram, pairs: str = "") -> Iterator[Sample]:
    """Yield a histogram of nanoseconds, in seconds; ``pairs`` are labels without braces."""
    bounds = [(1 << (histogram.shift + n)) / NANOSECONDS for n in range(DURATION_BUCKETS)]
    yield from _samples(histogram.counts, bounds, histogram.sum / NANOSECONDS, pairs)


def count_samples(histogram: Histogram, pairs: str = "") -> Iterator[Sample]:
    """Yield a histogram of whole numbers, made with ``shift=0``."""
    # What is less than 2**n is at most 2**n - 1, and "le" includes its bound.
    bounds = [(1 << n) - 1 for n in range(COUNT_BUCKETS)]
    yield from _samples(histogram.counts, bounds, histogram.sum, pairs)


def _samples(
    counts: Sequence[int], bounds: Sequence[float], total: float, pairs: str
) -> Iterator[Sample]:
    # Copied: a storage thread may count meanwhile, and a bucket must not be larger than the next.
    counts = counts[:]
    before = f"{pairs}," if pairs else ""
    labels = f"{{{pairs}}}" if pairs else ""
    passed = 0
    for bound, count in zip(bounds, counts, strict=False):
        passed += count
        yield f'_bucket{{{before}le="{bound}"}}', passed
    count = sum(counts)
    yield f'_bucket{{{before}le="+Inf"}}', count
    yield f"_sum{labels}", total
    yield f"_count{labels}", count


QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
"""Quantiles of Kafka's histograms."""


def summary_samples(window: Window, pairs: str = "") -> Iterator[Sample]:
    """Yield quantiles of the recent values, and sum and count of all, in milliseconds."""
    recent = window.counts()
    before = f"{pairs}," if pairs else ""
    labels = f"{{{pairs}}}" if pairs else ""
    if any(recent):
        for share in QUANTILES:
            yield f'{{{before}quantile="{share}"}}', quantile_ms(recent, share)
    yield f"_sum{labels}", window.histogram.sum / 1_000_000
    yield f"_count{labels}", sum(window.histogram.counts)


def quantile_ms(counts: Sequence[int], share: float) -> float:
    """Return the duration in milliseconds below which ``share`` of the values lie.

    Interpolated inside of a bucket; something must have been counted.
    """
    wanted = sum(counts) * share
    passed = 0
    for number, count in enumerate(counts):
        if count and passed + count >= wanted:
            high = 1 << (MICROSECOND_BITS + number)
            low = 0 if number == 0 else high // 2
            return (low + (high - low) * (wanted - passed) / count) / 1_000_000
        passed += count
    raise AssertionError("nothing was counted")


class Window:
    """Counts of a histogram in the last one to two intervals, as Kafka's quantiles decay."""

    __slots__ = ("_newer", "_older", "histogram")

    def __init__(self, histogram: Histogram) -> None:
        self.histogram = histogram
        self._newer = [0] * len(histogram.counts)
        self._older = self._newer

    def turn(self) -> None:
        """Start another interval."""
        self._older, self._newer = self._newer, self.histogram.counts[:]

    def counts(self) -> list[int]:
        """Return the counts by bucket."""
        return [now - then for now, then in zip(self.histogram.counts, self._older, strict=True)]
