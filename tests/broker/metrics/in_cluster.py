"""What a broker shows because it is one of several."""

from __future__ import annotations

import pytest

from barnabas.broker.cluster.upkeep import UpkeepCounts
from barnabas.broker.metrics.cluster import Standing
from barnabas.broker.metrics.collectors import register_cluster, register_cluster_store
from barnabas.broker.metrics.exposition import exposition
from barnabas.broker.metrics.families import Metrics
from barnabas.broker.metrics.kafka import kafka_families
from barnabas.broker.metrics.transactions import transaction_families
from tests.broker.metrics.scrape import Scrape
from tests.broker.moving import moving_pair

CALM = Standing(10_000, lambda: 1.5, lambda: True)


def scrape_kafka_names(broker) -> Scrape:
    """Scrape Kafka's own families."""
    server = broker.server
    parts = server.sockets, server.loop_monitor, server.traffic, server._windows
    families = kafka_families(server.catalogue, server.logs, *parts)
    return Scrape("".join(broker.call(lambda: list(exposition(families)))))


def scrape_in_cluster(broker, standing: Standing = CALM, trouble: str = "") -> Scrape:
    """Scrape the families that only a broker in a cluster has."""
    metrics = Metrics()
    register_cluster(metrics, standing, broker.server.leadership)
    upkeep = UpkeepCounts(
        snapshots=2, bytes_compacted=3, extents_deleted=4, looked_ms=5000, sessions_forgotten=6
    )
    register_cluster_store(metrics, broker.runner.committer.counts, upkeep, lambda: trouble)
    return Scrape("".join(broker.call(lambda: list(exposition(metrics.collect())))))


def families_in_cluster() -> Scrape:
    """Scrape a broker of a cluster, to which another one owes markers."""
    with moving_pair({"t": 1}) as cluster, pytest.MonkeyPatch.context() as patch:
        broker = cluster.brokers[0]
        server = broker.server
        patch.setattr(server.transactions.remote_markers, "owed_by_node", lambda: {2: 1})
        families = broker.call(
            lambda: [*transaction_families(server.transactions, server.catalogue, server.clock)]
        )
        return Scrape("".join(exposition(families)) + scrape_in_cluster(broker).text)
