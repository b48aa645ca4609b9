"""The ledger as an observer of one query reads it.

An observer knows the query's id from Spark, but perhaps not the sink's id. It fences no driver and
creates no topic.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.errors import TopicMissing
from barnabas.spark_connector.ledger.entries import Entry
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.measured import Measured

MEASURED_MAX: Final = 100


class QueryLedger(Ledger):
    """Entries of one query, with any sink id."""

    def __init__(self, cluster: Cluster, topic: str, query_id: str) -> None:
        super().__init__(cluster, topic)
        self._query_id = query_id
        self.sink_id: str | None = None
        """The sink id of the latest entry, or None if there is no entry so far."""
        self.measured: deque[Measured] = deque(maxlen=MEASURED_MAX)
        """Durations that entries had, also those which later entries have replaced."""

    def ensure(self) -> None:
        """Check that the topic exists; raises TopicMissing."""
        self._is_there = self._is_there or bool(self._cluster.existing([self._topic]))
        if not self._is_there:
            raise TopicMissing(f"the ledger {self._topic} does not exist")

    def entries(self) -> list[Entry]:
        """Return the last decided entry, and the entries whose transaction has no marker so far.

        There is no entry before the first sink of the cluster has created the topic.
        """
        try:
            self._refresh("")
        except TopicMissing:
            self._reset("")
        found = (self._entries, *self._undecided.values())
        return [each[self._query_id] for each in found if self._query_id in each]

    def _decoded(self, value: bytes) -> Entry:
        entry = super()._decoded(value)
        if entry.measured is not None:
            self.measured.append(entry.measured)
        return entry

    def _is_wanted(self, sink_id: str, query_id: str) -> bool:
        if query_id != self._query_id:
            return False
        self.sink_id = sink_id
        return True
