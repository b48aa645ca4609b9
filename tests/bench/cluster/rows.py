"""The rows of the benchmark of clusters as data, with the targets each one is held against."""

from __future__ import annotations

from typing import NamedTuple

VALUE_BYTES = 100
BULK_RECORDS = 9000
"""Number of records of a batch that is as large as a broker takes by default, about 1 MB."""


class Row(NamedTuple):
    """One kind of load."""

    key: str
    title: str
    kind: str
    """produce, end-to-end or transaction."""
    producers: int = 1
    brokers: int = 1
    """Over how many brokers one transaction goes, or the connections of a produce."""
    partitions: int = 1
    """Number of partitions of one transaction."""
    records: int = 1
    """Number of records of one Produce; a transaction has one record in each partition."""
    in_flight: int = 1
    behind: int = 0
    """Connections that produce in bulk to the same brokers meanwhile."""
    p50_s: float | None = None
    """Maximum of the median, or None for no target."""
    rate: float | None = None
    """Minimum, as a multiple of Apache Kafka's rate, or None for no target."""
    for_each_cpu_second: float | None = None
    """Minimum of MB for each CPU second on an object store, as a multiple of Apache Kafka's."""

    @property
    def records_of_one(self) -> int:
        """Number of records of one counted request or transaction."""
        return self.partitions if self.kind == "transaction" else self.records

    @property
    def megabytes_of_one(self) -> float:
        """Values of one counted request in MB; 0 for what is not counted by its bytes."""
        return self.records * VALUE_BYTES / 1e6 if self.kind == "produce" else 0.0


def _transactions(
    key: str, load: str, producers: int, brokers: int, partitions: int, p50_s: float | None = None
) -> Row:
    return Row(
        f"transaction-{key}",
        load,
        "transaction",
        producers,
        brokers,
        partitions,
        p50_s=p50_s,
        rate=2.0,
    )


ROWS = (
    Row("ack", "produce 1x100 B, one request under way", "produce", p50_s=0.008),
    Row(
        "produce-1",
        "produce 1x100 B, 15 connections over three brokers",
        "produce",
        producers=15,
        brokers=3,
        in_flight=5,
    ),
    Row(
        "produce-160",
        "produce 160x100 B, 6 connections over three brokers",
        "produce",
        producers=6,
        brokers=3,
        records=160,
        in_flight=5,
    ),
    Row(
        "produce-160-one",
        "produce 160x100 B, 6 connections to one broker",
        "produce",
        producers=6,
        records=160,
        in_flight=5,
    ),
    Row(
        "bulk-one",
        "produce 1 MB, 6 connections to one broker",
        "produce",
        producers=6,
        records=BULK_RECORDS,
        in_flight=2,
        rate=1.0,
    ),
    Row(
        "bulk-three",
        "produce 1 MB, 6 connections over three brokers",
        "produce",
        producers=6,
        brokers=3,
        records=BULK_RECORDS,
        in_flight=2,
        rate=1.0,
        for_each_cpu_second=1.0,
    ),
    Row("end-to-end", "end to end, one record", "end-to-end"),
    _transactions("1-inside", "1 producer, inside one broker, 1 partition", 1, 1, 1),
    Row(
        "transaction-behind-bulk",
        "1 producer, inside one broker, 1 partition, behind 4 connections of 1 MB",
        "transaction",
        behind=4,
    ),
    _transactions("1-two", "1 producer, over two brokers, 2 partitions", 1, 2, 2, 0.030),
    _transactions("1-three", "1 producer, over three brokers, 3 partitions", 1, 3, 3),
    _transactions("1-many", "1 producer, over three brokers, 16 partitions", 1, 3, 16),
    _transactions("16-inside", "16 producers, inside one broker, 1 partition each", 16, 1, 1),
    _transactions("16-three", "16 producers, over three brokers, 3 partitions each", 16, 3, 3),
)
