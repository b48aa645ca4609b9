"""The rows of the benchmark as data, with the targets each one is held against."""

from typing import NamedTuple

IN_FLIGHT = 5


class Targets(NamedTuple):
    """Ratios Barnabas / Apache Kafka in the same run; None where a row has no such target."""

    rate: float | None = None
    """At least."""
    cpu: float | None = None
    """At most, broker CPU per request."""
    p99: float | None = None
    """At most."""


class Row(NamedTuple):
    """One kind of load."""

    key: str
    title: str
    kind: str
    """produce, fetch, end-to-end, commit or rebalance."""
    targets: Targets
    connections: int = 4
    """Of a commit: groups; of a rebalance: members."""
    records: int = 1
    value_bytes: int = 100


_SINGLE = Targets(rate=1.5, cpu=0.5)
_BATCHED = Targets(rate=1.0, cpu=0.6)

ROWS = (
    Row("produce-1", "produce 1x100 B, 4 connections", "produce", _SINGLE),
    Row("produce-1-16", "produce 1x100 B, 16 connections", "produce", _SINGLE, connections=16),
    Row("produce-160", "produce 160x100 B", "produce", _BATCHED, records=160),
    Row("produce-1k", "produce 100x1 KB", "produce", _BATCHED, records=100, value_bytes=1024),
    Row("produce-9000", "produce 9000x100 B", "produce", _BATCHED, records=9000),
    Row("fetch", "fetch 1 MB slices", "fetch", Targets(rate=0.9, cpu=1.0), connections=2),
    Row("end-to-end", "end to end, one record", "end-to-end", Targets(p99=1.0), connections=2),
    Row("commit", "group commits, 8 groups", "commit", Targets(rate=1.0), connections=8),
    Row("rebalance", "rebalance of 200 members", "rebalance", Targets(p99=1.0), connections=200),
)
START_UP_TARGET = 0.15
IDLE_MEMORY_TARGET = 0.2
