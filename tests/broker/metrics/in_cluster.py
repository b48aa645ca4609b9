"""Metrics of a broker of a cluster."""

from __future__ import annotations

import pytest

from barnabas.broker.metrics.exposition import exposition
from barnabas.broker.metrics.kafka import kafka_families
from barnabas.testing import Broker, Cluster, World
from tests.broker.metrics.scrape import Scrape, scrape
from tests.storage.scripted_objects import clusters_with_objects


def scrape_kafka_names(broker: Broker) -> Scrape:
    """Scrape Kafka's own families."""
    server = broker.server
    parts = server.sockets, server.loop_monitor, server.traffic, server.windows
    families = kafka_families(server.catalogue, server.logs, *parts)
    return Scrape("".join(broker.call(lambda: list(exposition(families)))))


def families_in_cluster() -> Scrape:
    """Scrape a broker of a cluster with objects, and with pending markers for another broker."""
    with (
        World(),
        clusters_with_objects(),
        Cluster(brokers=1) as cluster,
        pytest.MonkeyPatch.context() as patch,
    ):
        cluster.create_topic("t")
        (broker,) = cluster.brokers
        markers = broker.server.transactions.remote_markers
        patch.setattr(markers, "owed_by_node", lambda: {2: 1})
        return scrape(broker)
