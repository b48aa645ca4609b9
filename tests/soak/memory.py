"""Does the broker's memory stay flat? Every load of the benchmark for minutes, without readers.

`python -m tests.soak.memory --duration 3600`: so many seconds for all loads together.

A load runs in slices; after each one, when the last answer has come, the resident memory is noted.
The first quarter of the slices is for buffers and caches to fill; what counts is what the rest
adds. Retention keeps the logs at a fixed size meanwhile, so that all there is to grow is memory.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from typing import NamedTuple

from tests.bench.load import RequestFailed
from tests.bench.rows import ROWS, Row
from tests.bench.run import create_topic, delete_topic, find_coordinator, run_row
from tests.counterparts.barnabas_process import ExecutedBarnabas
from tests.counterparts.broker_process import BrokerDied, BrokerProcess

SETTINGS = {
    "log_segment_bytes": str(64 << 20),
    "log_retention_bytes": str(256 << 20),
    "log_retention_check_interval_ms": "1000",
}
SLICES = 12
REST_S = 0.5
"""The pause after a slice, in which pending memory is freed."""
GROWTH_MOST_BYTES = 4 << 20
GROWTH_MOST_SHARE = 0.05
"""The bytes that the allocator may keep, beside a share of the memory: with large requests
one more of their buffers. Ninety bytes for each of a thousand transactions a second are more than
that within minutes."""


class Curve(NamedTuple):
    """One load, and the resident memory after each of its slices, in bytes."""

    row: Row
    requests: int
    resident_bytes: list[int]

    @property
    def warm_bytes(self) -> int:
        """The median of the second quarter: buffers and caches are full."""
        quarter = len(self.resident_bytes) // 4
        return int(statistics.median(self.resident_bytes[quarter : 2 * quarter]))

    @property
    def growth_bytes(self) -> int:
        """The difference between the median of the last quarter and that of the second."""
        quarter = len(self.resident_bytes) // 4
        return int(statistics.median(self.resident_bytes[-quarter:])) - self.warm_bytes

    def line(self) -> str:
        """Return the figures for people."""
        points = " ".join(f"{size / (1 << 20):.0f}" for size in self.resident_bytes)
        grown = self.growth_bytes / (1 << 20)
        return f"{self.row.title}: {self.requests} requests, MiB {points} ({grown:+.1f})"


def run_load(broker: BrokerProcess, row: Row, duration_s: float, requests_each: int = 0) -> Curve:
    """Run one load for ``duration_s``; return its curve.

    A slice lasts for at least ``requests_each`` requests: these fill buffers, not time.
    """
    topic = f"memory-{row.key}"
    create_topic(broker.port, topic, row.topic_partitions)
    if row.kind in {"commit", "rebalance"}:
        find_coordinator(broker.port, topic)
    requests, resident = 0, []
    slice_s = duration_s / SLICES
    for _ in range(SLICES):
        enough = requests + requests_each
        while True:
            requests += int(run_row(broker, row, topic, 0.0, slice_s).rate * slice_s)
            if requests >= enough:
                break
        time.sleep(REST_S)
        resident.append(broker.resident_bytes())
    delete_topic(broker.port, topic)
    return Curve(row, requests, resident)


def grown(curve: Curve) -> list[str]:
    """Return the faults of a curve."""
    if curve.growth_bytes <= GROWTH_MOST_BYTES + GROWTH_MOST_SHARE * curve.warm_bytes:
        return []
    return [f"memory grows: {curve.line()}"]


def main() -> int:
    """Run every load; exit 0 when memory stayed flat under each of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak.memory", description=__doc__)
    parser.add_argument("--duration", type=float, default=3600, help="seconds")
    parser.add_argument("--only", choices=[row.key for row in ROWS], help="one load")
    arguments = parser.parse_args()
    rows = [row for row in ROWS if arguments.only in {None, row.key}]
    wrong: list[str] = []
    try:
        # Each load has a broker of its own: what one leaves behind would hide what the next adds.
        for row in rows:
            with ExecutedBarnabas(**SETTINGS) as broker:
                curve = run_load(broker, row, arguments.duration / len(rows))
            _say(curve.line())
            wrong += grown(curve)
    except (BrokerDied, RequestFailed, OSError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1
    for violation in wrong:
        _say(f"WRONG: {violation}")
    _say("WRONG" if wrong else "all flat")
    return 1 if wrong else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
