"""Metrics of queries in Prometheus' text format 0.0.4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.spark_connector.monitoring.query_metrics import QueryMetrics

Number = float | None
"""A value, or None if it is not known: then there is no sample."""


class _Family(NamedTuple):
    name: str
    kind: str
    help: str
    samples: Mapping[str, Callable[[QueryMetrics], Number]]
    """Functions that return a sample's value, by the suffix of its name."""


def _seconds(milliseconds: Number) -> Number:
    return None if milliseconds is None else milliseconds / 1000


_FAMILIES: Final = (
    _Family("query_active", "gauge", "1 while the query runs, 0 after its end.",
        {"": lambda each: float(each.is_active)}),
    _Family("rows_decided_total", "counter", "Records of the batches that the query has finished.",
        {"": lambda each: each.rows_decided}),
    _Family("batches_decided_total", "counter", "Batches that the query has finished.",
        {"": lambda each: each.batches_decided}),
    _Family("sink_seconds", "summary",
        "Time of a batch in the sink with its tasks, as Spark reports it (addBatch).",
        {"_sum": lambda each: _seconds(each.sink_total_ms),
         "_count": lambda each: each.reported_batches}),
    _Family("decide_seconds", "summary",
        "Time of a batch from the end of its tasks until it is decided.",
        {"_sum": lambda each: _seconds(each.decide_total_ms),
         "_count": lambda each: each.measured_batches}),
    _Family("commit_seconds", "summary",
        "Time of a batch from its decision until all of its transactions are committed.",
        {"_sum": lambda each: _seconds(each.commit_total_ms),
         "_count": lambda each: each.measured_batches}),
    _Family("oldest_transaction_age_seconds", "gauge",
        "Age of the oldest open transaction of the sink, 0 if none is open.",
        {"": lambda each: _seconds(each.transaction_age_ms)}),
    _Family("lag_records", "gauge",
        "Offsets between the last finished batch and the end of the source's topics.",
        {"": lambda each: each.lag}),
)  # fmt: skip


def exposition(queries: Iterable[QueryMetrics]) -> str:
    """Return the text for queries; each query has at most eleven samples."""
    found = list(queries)
    lines = []
    for family in _FAMILIES:
        name = f"barnabas_spark_{family.name}"
        samples = [
            f"{name}{suffix}{_labels(query)} {number}"
            for query in found
            for suffix, read in family.samples.items()
            if (number := read(query)) is not None
        ]
        if samples:
            lines += [f"# HELP {name} {family.help}", f"# TYPE {name} {family.kind}", *samples]
    return "".join(f"{line}\n" for line in lines)


def _labels(query: QueryMetrics) -> str:
    return f'{{query="{_escaped(query.query)}",sink_id="{_escaped(query.sink_id)}"}}'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
