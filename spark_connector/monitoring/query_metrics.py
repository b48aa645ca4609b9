"""Metrics of one query: counted from Spark's reports, the ledger and the sink's own measurements.

A batch counts once it is finished, by its number: a report that comes twice, or is lost, changes no
total. Unknown values are None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from barnabas.spark_connector.ledger.entries import HISTORY_MAX, Entry
from barnabas.spark_connector.ledger.measured import Measured


@dataclass(frozen=True)
class QueryMetrics:
    """Metrics of a query at one moment. Totals begin with the monitor."""

    query_id: str
    query: str
    """Name of the query, or its id if it has no name."""
    sink_id: str
    is_active: bool = True
    batch: int | None = None
    """The last finished batch."""
    rows_decided: int = 0
    batches_decided: int = 0
    decide_ms: float | None = None
    """Duration of the decision of the last measured batch."""
    commit_ms: float | None = None
    measured_batch: int | None = None
    """Number of the last measured batch. With `format("barnabas")` usually the batch before the
    last finished one: a commit worker's durations come with the ledger's next entry."""
    measured_batches: int = 0
    decide_total_ms: float = 0.0
    commit_total_ms: float = 0.0
    sink_ms: int | None = None
    """Time that Spark reports for the last batch in its sink (`addBatch`): tasks and all steps."""
    sink_total_ms: int = 0
    reported_batches: int = 0
    transaction_age_ms: int | None = None
    """Age of the sink's oldest open transaction; 0 if none is open."""
    lag: int | None = None
    """Offsets between the last finished batch and the end of the source's topics."""


class QueryTotals:
    """Counts the batches of one query."""

    def __init__(self, query_id: str, query: str) -> None:
        self.metrics = QueryMetrics(query_id, query, sink_id="")
        self._counted_to: int | None = None
        self._timed_to: int | None = None

    def update(self, **fields: object) -> None:
        """Replace some values."""
        self.metrics = replace(self.metrics, **fields)  # type: ignore[arg-type]

    def finish(self, batch_id: int, sink_ms: int) -> None:
        """Note that a batch is finished; the first one is where counting begins."""
        if self._counted_to is None or self._timed_to is None:
            self._counted_to = self._timed_to = batch_id - 1
        last = self.metrics.batch
        if last is not None and batch_id <= last:
            return
        self.update(
            batch=batch_id,
            sink_ms=sink_ms,
            sink_total_ms=self.metrics.sink_total_ms + sink_ms,
            reported_batches=self.metrics.reported_batches + 1,
        )

    def count(self, entries: Sequence[Entry]) -> None:
        """Add the records of batches that were finished since the last count."""
        last = self.metrics.batch
        if last is None or self._counted_to is None:
            return
        if max((entry.batch_id for entry in entries), default=-1) < last:
            return  # The ledger could not be read; these batches are counted later.
        # The ledger has no counts of what is further back.
        first = max(self._counted_to + 1, last - HISTORY_MAX)
        counts = [records_of(entries, batch_id) for batch_id in range(first, last + 1)]
        self.update(
            rows_decided=self.metrics.rows_decided + sum(filter(None, counts)),
            batches_decided=self.metrics.batches_decided + last - self._counted_to,
        )
        self._counted_to = last

    def add_durations(self, measured: Iterable[Measured]) -> None:
        """Add the durations of batches that were measured since the last time."""
        for each in sorted(measured):
            if self._timed_to is None or each.batch_id <= self._timed_to:
                continue
            self._timed_to = each.batch_id
            self.update(
                decide_ms=each.decide_ms,
                commit_ms=each.commit_ms,
                measured_batch=each.batch_id,
                measured_batches=self.metrics.measured_batches + 1,
                decide_total_ms=self.metrics.decide_total_ms + each.decide_ms,
                commit_total_ms=self.metrics.commit_total_ms + each.commit_ms,
            )


def records_of(entries: Iterable[Entry], batch_id: int) -> int | None:
    """Return the number of records of a batch, or None if no entry has it."""
    counts = (entry.records_of(batch_id) for entry in entries)
    return next((count for count in counts if count is not None), None)
