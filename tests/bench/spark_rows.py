"""The rows of the benchmark that Spark runs, with the targets each one is held against."""

from __future__ import annotations

from typing import NamedTuple

from tests.bench.rows import Versus


class SparkRow(NamedTuple):
    """One kind of streaming query, in a Spark of its own."""

    key: str
    title: str
    kind: str
    """trigger, real-time or sink."""
    variant: str = ""
    """Of a trigger: stateless or stateful; of a sink: which (see spark_sinks.py)."""
    p50: float | None = None
    """At most, Barnabas / Apache Kafka in the same run."""
    versus: tuple[Versus, ...] = ()
    cores: int = 2
    partitions: int = 4

    @property
    def against_kafka(self) -> bool:
        """Whether the brokers are compared; sinks are, with each other, on one broker."""
        return self.kind != "sink"


_STOCK = "spark-sink-stock"


def _trigger(variant: str, target: float) -> SparkRow:
    title = f"Spark, trigger for one record, {variant}"
    return SparkRow(f"spark-trigger-{variant}", title, "trigger", variant, target)


def _sink(key: str, title: str, variant: str, *versus: Versus) -> SparkRow:
    return SparkRow(key, f"Spark, {title}", "sink", variant, versus=versus)


SPARK_ROWS = (
    _trigger("stateless", 0.35),
    _trigger("stateful", 0.5),
    SparkRow("spark-real-time", "Spark, real-time mode", "real-time", p50=1.0, partitions=1),
    _sink(_STOCK, "stock sink", "stock"),
    _sink("spark-sink-single", "single_transaction sink", "single", Versus(_STOCK, 0.3)),
    _sink("spark-sink-two-phase", "two_phase sink", "two-phase", Versus(_STOCK, 0.8)),
)
