"""The foreachBatch sinks of this driver process, noted for observers in the same process."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.settings.options import SinkOptions

QUERIES_MAX: Final = 100
"""Number of queries that are remembered, the latest ones."""
BATCHES_MAX: Final = 100
"""Number of batches of a query whose durations are remembered, the latest ones."""


@dataclass
class DriverSink:
    """A sink that has received a batch of a query."""

    options: SinkOptions
    measured: deque[Measured] = field(default_factory=lambda: deque(maxlen=BATCHES_MAX))

    def measured_of(self, batch_id: int) -> Measured | None:
        """Return the durations of a batch, or None if they are not known."""
        return next((each for each in list(self.measured) if each.batch_id == batch_id), None)


_sinks: dict[str, DriverSink] = {}
"""Sinks by query id. Each query has one thread that writes here; observers only read."""


def note_batch(query_id: str, options: SinkOptions, measured: Measured | None = None) -> None:
    """Note the sink of a query, and the durations of its last batch if they are known."""
    sink = _sinks.get(query_id)
    if sink is None or sink.options != options:
        _sinks.pop(query_id, None)
        sink = _sinks[query_id] = DriverSink(options)
        for oldest in list(_sinks)[:-QUERIES_MAX]:
            _sinks.pop(oldest, None)
    if measured is not None and (not sink.measured or sink.measured[-1] != measured):
        sink.measured.append(measured)


def sink_of_query(query_id: str) -> DriverSink | None:
    """Return the sink that has received a batch of a query, or None if no foreachBatch sink has."""
    return _sinks.get(query_id)
