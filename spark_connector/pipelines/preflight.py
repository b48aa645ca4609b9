"""Checks of a pipeline against its brokers, before the query starts."""

from __future__ import annotations

from typing import Final

from barnabas.broker.client.connection import Connection
from barnabas.protocol.messages.init_producer_id import INIT_PRODUCER_ID
from barnabas.protocol.messages.txn_offset_commit import TXN_OFFSET_COMMIT
from barnabas.spark_connector.cluster.cluster import Cluster
from barnabas.spark_connector.cluster.requests import INIT_TWO_PHASE
from barnabas.spark_connector.errors import BrokerTooOld, TopicMissing
from barnabas.spark_connector.pipelines.pipeline import Pipeline
from barnabas.spark_connector.pipelines.sink import AUTO, SINGLE_TRANSACTION, STOCK, TWO_PHASE, Sink
from barnabas.spark_connector.pipelines.source import Source
from barnabas.spark_connector.settings.servers import servers_or_default

CLIENT_ID: Final = "barnabas-spark-run"
TIMEOUT_MS: Final = 20_000
_GROUP_METADATA_SINCE: Final = 3


def cluster_of(part: Source | Sink, timeout_ms: int | None = None) -> Cluster:
    """Return the cluster of a source or sink, for a few requests; the caller closes it.

    ``timeout_ms`` limits each request with its retries, and each wait for a response.
    """
    timeout_ms = timeout_ms or TIMEOUT_MS
    return Cluster(
        servers_or_default(part.servers),
        client_id=CLIENT_ID,
        timeout_ms=timeout_ms,
        request_timeout_ms=timeout_ms,
        security=part.security(),
    )


def check_brokers(pipeline: Pipeline) -> str:
    """Refuse missing topics and brokers that are too old; return the kind of sink to use."""
    source, sink = pipeline.source, pipeline.sink
    if isinstance(source, Source):
        with cluster_of(source) as cluster:
            _check_topics(cluster, source.topics(), "reads")
    with cluster_of(sink) as cluster:
        if sink.topic is not None:
            _check_topics(cluster, [sink.topic], "writes")
        return decided_kind(cluster, sink.kind)


def _check_topics(cluster: Cluster, topics: list[str], verb: str) -> None:
    existing = cluster.existing(topics)
    missing = [topic for topic in topics if topic not in existing]
    if missing:
        raise TopicMissing(
            f"The pipeline {verb} the topic {missing[0]}, which does not exist at"
            f" {cluster.servers}; create it first, for example with"
            f" `barnabas topics create {missing[0]} --partitions 4`."
        )


def decided_kind(cluster: Cluster, kind: str) -> str:
    """Return the kind of sink, for `auto` the best one of the broker; raises BrokerTooOld."""
    if kind == STOCK:
        return kind
    connection: Connection = cluster.until(
        "Asking the broker for its versions", cluster.deadline(), cluster.any_node
    )
    if not connection.speaks(TXN_OFFSET_COMMIT, _GROUP_METADATA_SINCE):
        raise BrokerTooOld(
            f"The broker at {cluster.servers} is too old to write exactly once: that takes Apache"
            " Kafka 2.5 or newer, or Barnabas; kind='stock' writes at least once."
        )
    if kind != AUTO:
        return kind
    return TWO_PHASE if connection.speaks(INIT_PRODUCER_ID, INIT_TWO_PHASE) else SINGLE_TRANSACTION
