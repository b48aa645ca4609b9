"""The rows of the benchmark that Spark runs, with the targets each one is held against."""

from __future__ import annotations

from typing import NamedTuple

from tests.bench.rows import Versus


class SparkRow(NamedTuple):
    """One kind of streaming query, in a Spark of its own."""

    key: str
    title: str
    kind: str
    """trigger, real-time, read, sink or sink-row."""
    variant: str = ""
    """State of a trigger, stateless or stateful, or kind of a sink."""
    p50: float | None = None
    """Maximum, Barnabas / Apache Kafka in the same run, or None for no target."""
    rate: float | None = None
    """Minimum, Barnabas / Apache Kafka in the same run, or None for no target."""
    versus: tuple[Versus, ...] = ()
    cores: int = 2
    partitions: int = 4

    @property
    def is_about_time(self) -> bool:
        """Whether a sample is one record, so that there is no rate to speak of."""
        return self.kind in {"trigger", "real-time"}

    @property
    def against_kafka(self) -> bool:
        """Whether the brokers are compared; sinks are, with each other, on one broker."""
        return self.kind not in {"sink", "sink-row"}


_STOCK = "spark-sink-stock"
_STOCK_ROW = "spark-row-stock"
_TWO_PHASE_ROW = "spark-row-two-phase"
FORMAT = "format"
"""The sink `format("barnabas")`, which is `two_phase` as a data source."""


def _trigger(variant: str, target: float) -> SparkRow:
    title = f"Spark, trigger for one record, {variant}"
    return SparkRow(f"spark-trigger-{variant}", title, "trigger", variant, target)


def _sink(key: str, variant: str, *versus: Versus) -> SparkRow:
    return SparkRow(key, f"Spark, {variant} sink", "sink", variant, versus=versus)


def _sink_row(key: str, variant: str, *versus: Versus) -> SparkRow:
    title = f"Spark, one row a batch, {variant} sink"
    return SparkRow(key, title, "sink-row", variant, versus=versus)


SPARK_ROWS = (
    _trigger("stateless", 0.35),
    _trigger("stateful", 0.5),
    SparkRow("spark-real-time", "Spark, real-time mode", "real-time", p50=1.0, partitions=1),
    SparkRow("spark-read", "Spark, read of a topic", "read", rate=1.5),
    _sink(_STOCK, "stock"),
    _sink("spark-sink-single", "single_transaction", Versus(_STOCK, 0.3, cpu=1.1)),
    _sink("spark-sink-two-phase", "two_phase", Versus(_STOCK, 0.8, cpu=1.1)),
    _sink("spark-sink-format", FORMAT, Versus(_STOCK, 0.8, cpu=1.1)),
    _sink_row(_STOCK_ROW, "stock"),
    _sink_row("spark-row-single", "single_transaction", Versus(_STOCK_ROW, 0.5)),
    _sink_row(_TWO_PHASE_ROW, "two_phase", Versus(_STOCK_ROW, 0.5)),
    _sink_row("spark-row-format", FORMAT, Versus(_TWO_PHASE_ROW, 0.0, slower_ms=60)),
)
