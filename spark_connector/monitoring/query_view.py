"""Requests of the monitor about one query that writes exactly once.

Each request has PATIENCE_MS. After one that fails no other is sent for as long, and its values are
not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple, TypeVar

from barnabas.broker.client.errors import Unreachable
from barnabas.broker.client.security import ClientSecurity
from barnabas.protocol.errors import KafkaError
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.cluster.cluster import Cluster, NotYet
from barnabas.spark_connector.errors import SinkError
from barnabas.spark_connector.ledger.entries import Entry
from barnabas.spark_connector.ledger.measured import Measured
from barnabas.spark_connector.ledger.query_ledger import QueryLedger
from barnabas.spark_connector.ledger.transaction_age import oldest_transaction_ms
from barnabas.spark_connector.monitoring.progress import Offsets
from barnabas.spark_connector.monitoring.source_ends import ends_of
from barnabas.spark_connector.settings.options import SinkOptions
from barnabas.storage.runtime.clock import monotonic

Found = TypeVar("Found")

CLIENT_ID: Final = "barnabas-spark-monitor"
PATIENCE_MS: Final = 5_000
ISOLATION: Final = "read_committed"

Note = Callable[[Exception], None]
"""Logs a failed request once."""


class BrokerState(NamedTuple):
    """State of a query at its brokers; None or empty where it could not be read."""

    sink_id: str | None = None
    entries: tuple[Entry, ...] = ()
    measured: tuple[Measured, ...] = ()
    """Durations of batches, as the ledger has them."""
    ends: Offsets | None = None
    """Ends of the source's topics for `read_committed` consumers."""
    transaction_age_ms: int | None = None
    """Age of the sink's oldest open transaction; 0 if none is open."""


class QueryView(Closing):
    """Connections for requests about one query, made when they are needed."""

    def __init__(
        self, query_id: str, options: SinkOptions, *, sink_id: str | None, note: Note
    ) -> None:
        """``sink_id``: None for that of the query's ledger entry. ``note`` is called with
        failures.
        """
        self._sink_id = sink_id
        self._note = note
        self._sink = _cluster(options.bootstrap_servers, options.security)
        self._source = self._sink
        if not options.reads_where_it_writes:
            servers = options.source_servers or options.bootstrap_servers
            self._source = _cluster(servers, options.source_security)
        self._ledger = QueryLedger(self._sink, options.ledger_topic, query_id)
        self._resumes_at_s = 0.0

    def read(self, source_topics: Iterable[str]) -> BrokerState:
        """Read the query's state; returns within a few times PATIENCE_MS."""
        topics = list(source_topics)
        entries = self._requested(self._ledger.entries) or []
        sink_id = self._sink_id or self._ledger.sink_id
        if sink_id is None:
            return BrokerState()
        age_ms = self._requested(lambda: oldest_transaction_ms(self._sink, sink_id))
        ends = self._requested(lambda: ends_of(self._source, topics, ISOLATION)) if topics else None
        return BrokerState(sink_id, tuple(entries), tuple(self._ledger.measured), ends, age_ms)

    def close(self) -> None:
        """Close the connections."""
        self._sink.close()
        self._source.close()

    def _requested(self, request: Callable[[], Found]) -> Found | None:
        if monotonic() < self._resumes_at_s:
            return None
        try:
            found = request()
        except (Unreachable, NotYet, KafkaError, SinkError, OSError) as error:
            self._resumes_at_s = monotonic() + PATIENCE_MS / 1000
            self._note(error)
            return None
        return found


def _cluster(servers: str, security: ClientSecurity | None) -> Cluster:
    return Cluster(
        servers,
        client_id=CLIENT_ID,
        timeout_ms=PATIENCE_MS,
        request_timeout_ms=PATIENCE_MS,
        security=security,
    )
