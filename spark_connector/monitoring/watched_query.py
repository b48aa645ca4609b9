"""One query as the monitor follows it: Spark's reports, and the brokers' side of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.ledger.driver_sinks import sink_of_query
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.monitoring.progress import (
    BatchProgress,
    Facts,
    Report,
    batch_progress,
    lag_of,
    topics_of,
)
from barnabas.spark_connector.monitoring.query_metrics import QueryMetrics, QueryTotals, records_of
from barnabas.spark_connector.monitoring.query_view import BrokerState, Note, QueryView
from barnabas.spark_connector.settings.options import SinkOptions

UNREPORTED_MAX: Final = 100
"""Number of batches that wait for the ledger to be readable; the earliest are dropped."""
_DATA_SOURCE: Final = "PythonTable"
"""Part of Spark's name of the sink of a Python data source."""


class WatchedQuery(Closing):
    """A query of the session; has metrics if it writes with one of our sinks."""

    def __init__(self, query_id: str, label: str, elsewhere: SinkOptions, note: Note) -> None:
        """``elsewhere`` says where the ledger is if no sink of this process writes the query."""
        self._query_id = query_id
        self._elsewhere = elsewhere
        self._note = note
        self._view: QueryView | None = None
        self._viewed: SinkOptions | None = None
        self._totals = QueryTotals(query_id, label)
        self._last: Report = {}
        self._unreported: deque[Report] = deque(maxlen=UNREPORTED_MAX)
        self._run_id = ""
        self.is_active = True

    @property
    def metrics(self) -> QueryMetrics | None:
        """The query's metrics, or None if the query has none of our sinks, or has not decided."""
        return self._totals.metrics if self._totals.metrics.sink_id else None

    def take(self, report: Report) -> None:
        """Take a report of Spark's; one without a finished batch says nothing new."""
        sink_ms = report.get("durationMs", {}).get("addBatch")
        if sink_ms is not None:
            self._last = report
            self._unreported.append(report)
            self._totals.finish(int(report["batchId"]), int(sink_ms))

    def start(self, run_id: str) -> None:
        """Note that the query has started, for the first time or again."""
        self._run_id, self.is_active = run_id, True

    def end(self, run_id: str) -> None:
        """Note that a run of the query has ended, unless another one has started since."""
        self.is_active = self.is_active and run_id != self._run_id

    def refresh(self) -> list[BatchProgress]:
        """Update the metrics; return the batches that have finished since the last call."""
        view = self._current_view()
        if view is None:
            self._unreported.clear()
            return []
        found = view.read(topics_of(self._last))
        if found.sink_id is None:
            return []
        lag = self._lag(found)
        sink = sink_of_query(self._query_id)
        measured = found.measured if sink is None else tuple(sink.measured)
        self._totals.count(found.entries)
        self._totals.add_durations(measured)
        self._totals.update(
            sink_id=found.sink_id,
            is_active=self.is_active,
            # Of a query that has ended, these would not be followed any more.
            lag=lag if self.is_active else None,
            transaction_age_ms=found.transaction_age_ms if self.is_active else None,
        )
        batches = [self._progress(each, found, measured) for each in self._unreported]
        self._unreported.clear()
        return batches

    def close(self) -> None:
        """Close the connections."""
        if self._view is not None:
            self._view.close()
            self._view = None

    def _current_view(self) -> QueryView | None:
        sink, options = sink_of_query(self._query_id), None
        if sink is not None:
            options = sink.options
        elif _DATA_SOURCE in self._last.get("sink", {}).get("description", ""):
            options = self._elsewhere
        if options is None or options != self._viewed:
            self.close()
        if options is not None and self._view is None:
            self._viewed = options
            sink_id = None if sink is None else options.sink_id
            self._view = QueryView(self._query_id, options, sink_id=sink_id, note=self._note)
        return self._view

    def _lag(self, found: BrokerState) -> int | None:
        sources: list[Mapping[str, Any]] = self._last.get("sources", [])
        without_ends = [{**each, "latestOffset": None} for each in sources]
        lag = None if found.ends is None else lag_of(without_ends, found.ends)
        # Of a cluster that the options do not name, Spark knows the ends at the last batch.
        return lag_of(sources) if lag is None else lag

    def _progress(
        self, report: Report, found: BrokerState, measured: tuple[Measured, ...]
    ) -> BatchProgress:
        batch_id = int(report["batchId"])
        durations = next((each for each in measured if each.batch_id == batch_id), None)
        facts = Facts(
            rows=records_of(found.entries, batch_id),
            ends=found.ends,
            transaction_age_ms=found.transaction_age_ms,
            decide_ms=None if durations is None else durations.decide_ms,
            commit_ms=None if durations is None else durations.commit_ms,
        )
        return batch_progress(self._totals.metrics.query, report, facts)
