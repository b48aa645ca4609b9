"""Numbers of a pipeline's batches that brokers have and Spark lacks.

If a broker does not respond, a number is unknown. That never stops or delays a pipeline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from barnabas.broker.client.errors import Unreachable
from barnabas.protocol.errors import KafkaError
from barnabas.spark_connector.closing import Closing
from barnabas.spark_connector.cluster.cluster import Cluster, NotYet
from barnabas.spark_connector.errors import SinkError
from barnabas.spark_connector.ledger.driver_sinks import sink_of_query
from barnabas.spark_connector.ledger.ledger import Ledger
from barnabas.spark_connector.ledger.transaction_age import oldest_transaction_ms
from barnabas.spark_connector.monitoring.progress import Facts, Offsets, Report, topics_without_ends
from barnabas.spark_connector.monitoring.source_ends import ends_of
from barnabas.spark_connector.pipelines.pipeline import Pipeline
from barnabas.spark_connector.pipelines.preflight import CLIENT_ID, cluster_of
from barnabas.spark_connector.pipelines.sink import STOCK
from barnabas.spark_connector.pipelines.source import ISOLATION, Source
from barnabas.storage.runtime.clock import monotonic

Answer = TypeVar("Answer")

PATIENCE_MS: Final = 5_000
"""Timeout of a request, and the pause before the next one after a timeout."""


class BrokerView(Closing):
    """Requests to the brokers of one pipeline; connections open when needed."""

    def __init__(self, pipeline: Pipeline) -> None:
        sink, source = pipeline.sink, pipeline.source
        self._sink_id = sink.sink_id
        self._sink = cluster_of(sink, PATIENCE_MS)
        self._ledger: Ledger | None = None
        self._reads = source.topics() if isinstance(source, Source) else []
        self._writes = [] if sink.topic is None else [sink.topic]
        self._isolation = "read_committed"
        if isinstance(source, Source):
            self._isolation = source.spark_options()[ISOLATION].lower()
        if sink.kind != STOCK:
            self._ledger = Ledger(self._sink, sink.sink_options().ledger_topic)
        self._source = _source_of(pipeline)
        self._next_request_at_s = 0.0

    def facts(self, report: Report) -> Facts:
        """Return the brokers' numbers of a batch that Spark reports."""
        sink = sink_of_query(str(report["id"]))
        measured = None if sink is None else sink.measured_of(int(report["batchId"]))
        return Facts(
            rows=self._result_of(lambda: self._rows(str(report["id"]), int(report["batchId"]))),
            ends=self._result_of(lambda: self._ends(topics_without_ends(report))),
            transaction_age_ms=self._result_of(self._oldest_transaction_ms),
            decide_ms=None if measured is None else measured.decide_ms,
            commit_ms=None if measured is None else measured.commit_ms,
        )

    def missing_topic(self) -> str | None:
        """Return a sentence about a missing topic of the pipeline, or `None`."""
        for cluster, topics, verb in (
            (self._source, self._reads, "reads"),
            (self._sink, self._writes, "writes"),
        ):
            existing = self._result_of(partial(cluster.existing, topics))
            missing = [] if existing is None else [each for each in topics if each not in existing]
            if missing:
                return (
                    f"the topic {missing[0]}, which the pipeline {verb}, does not exist any more at"
                    f" {cluster.servers}"
                )
        return None

    def close(self) -> None:
        """Close the connections."""
        self._sink.close()
        self._source.close()

    def _rows(self, query_id: str, batch_id: int) -> int | None:
        if self._ledger is None:
            return None
        return self._ledger.record_count(self._sink_id, query_id, batch_id)

    def _ends(self, topics: Iterable[str]) -> Offsets | None:
        return ends_of(self._source, topics, self._isolation) if topics else None

    def _oldest_transaction_ms(self) -> int | None:
        if self._ledger is None:
            return 0  # Spark's own sink has no transactions.
        return oldest_transaction_ms(self._sink, self._sink_id)

    def _result_of(self, request: Callable[[], Answer]) -> Answer | None:
        if monotonic() < self._next_request_at_s:
            return None
        try:
            return request()
        except (Unreachable, NotYet, KafkaError, SinkError, OSError):
            self._next_request_at_s = monotonic() + PATIENCE_MS / 1000
            return None


def _source_of(pipeline: Pipeline) -> Cluster:
    """Return the cluster of the source; if it is a function, as in the sink's options."""
    if isinstance(pipeline.source, Source):
        return cluster_of(pipeline.source, PATIENCE_MS)
    options = None if pipeline.sink.kind == STOCK else pipeline.sink.sink_options()
    if options is None or options.reads_where_it_writes:
        return cluster_of(pipeline.sink, PATIENCE_MS)
    return Cluster(
        options.source_servers or options.bootstrap_servers,
        client_id=CLIENT_ID,
        timeout_ms=PATIENCE_MS,
        request_timeout_ms=PATIENCE_MS,
        security=options.source_security,
    )
