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


class Versus(NamedTuple):
    """Another row to be held against, on the same broker."""

    key: str
    rate: float
    """At least so much of the other's rate; 0 where there is no target."""
    cpu: float = 0.0
    """At most so much of the other's CPU time for each row; 0 where there is no target."""
    slower_ms: float = 0.0
    """At most so many milliseconds more than the other's p50; 0 where there is no target."""


class Row(NamedTuple):
    """One kind of load."""

    key: str
    title: str
    kind: str
    """produce, fetch, end-to-end, commit, rebalance or transaction."""
    targets: Targets
    connections: int = 4
    """Number of groups for commits, of members for rebalances, of producers for transactions."""
    records: int = 1
    value_bytes: int = 100
    partitions: int = 1
    """Number of partitions of one transaction."""
    plain_in_flight: int = 0
    """Instead of transactions: plain writes of the same bytes, so many under way."""
    versus: tuple[Versus, ...] = ()
    tls: bool = False
    """Over TLS, on brokers of its own."""
    acls: bool = False
    """On brokers with ACLs, and, in the same rounds, on brokers without: the row it is held
    against."""

    @property
    def topic_partitions(self) -> int:
        """Number of partitions of the row's topic."""
        return 1 if self.kind == "rebalance" else self.connections * self.partitions

    @property
    def writes_much(self) -> bool:
        """Whether the page cache grows by hundreds of megabytes a second."""
        return self.kind in {"produce", "transaction"} and self.records * self.value_bytes > 10_000


_SINGLE = Targets(rate=1.5, cpu=0.5)
_BATCHED = Targets(rate=1.0, cpu=0.6)


def _transactions(
    key: str,
    load: str,
    targets: Targets,
    *,
    connections: int = 1,
    partitions: int = 1,
    records: int = 1,
    versus: tuple[Versus, ...] = (),
) -> Row:
    """Transactions one after the other, KIP-890's protocol."""
    title = f"transactions of {load}"
    row = Row(f"transaction-{key}", title, "transaction", targets, connections, records)
    return row._replace(partitions=partitions, versus=versus)


def _plain(key: str, load: str, in_flight: int) -> Row:
    """Return the writes of `transaction-1000` by an idempotent producer without transactions."""
    row = Row(f"plain-{key}", load, "transaction", Targets(), connections=1, records=1000)
    return row._replace(partitions=4, plain_in_flight=in_flight)


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
    _transactions("1", "1 record", Targets(rate=15.0)),
    _transactions("16", "1 record each in 16 partitions", Targets(rate=10.0), partitions=16),
    _transactions("100", "1 record each in 100 partitions", Targets(rate=8.0), partitions=100),
    _transactions(
        "1000",
        "1,000 records in 4 partitions",
        Targets(rate=3.0),
        partitions=4,
        records=1000,
        versus=(Versus("plain-1000", 0.9), Versus("plain-waiting", 0.0)),
    ),
    _plain("1000", "1,000 plain records in 4 partitions, 5 requests under way", IN_FLIGHT),
    _plain("waiting", "1,000 plain records in 4 partitions, one request under way", 1),
    _transactions("producers", "1 record, 16 producers", Targets(rate=3.0), connections=16),
)
_TLS = Targets(rate=1.0)
TLS_ROWS = (
    Row("tls-produce-1", "TLS, produce 1x100 B, 4 connections", "produce", _TLS, tls=True),
    Row("tls-produce-160", "TLS, produce 160x100 B", "produce", _TLS, records=160, tls=True),
    Row("tls-fetch", "TLS, fetch 1 MB slices", "fetch", Targets(), connections=2, tls=True),
)
ACL_ROWS = (
    Row(
        "acls-produce-1",
        "ACLs, produce 1x100 B, 4 connections",
        "produce",
        Targets(),
        versus=(Versus("open-produce-1", 0.95),),
        acls=True,
    ),
    Row("open-produce-1", "the same without ACLs, in the same rounds", "produce", Targets()),
)
"""The second of a pair is measured with the first."""
START_UP_TARGET = 0.15
IDLE_MEMORY_TARGET = 0.2
