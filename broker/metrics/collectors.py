"""Which collectors a broker has from the start. Others register beside these.

Each looks at what the broker keeps anyway; before storage is open there is little to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.http.pages import Stage
from barnabas.broker.metrics.exporter import exporter_families, exporter_partition_families
from barnabas.broker.metrics.families import Family
from barnabas.broker.metrics.groups import group_families
from barnabas.broker.metrics.kafka import (
    TopicTraffic,
    Windows,
    kafka_families,
    kafka_partition_families,
)
from barnabas.broker.metrics.own import own_families
from barnabas.broker.metrics.process import process_families
from barnabas.broker.metrics.transactions import (
    transaction_families,
    transaction_partition_families,
)

if TYPE_CHECKING:
    from barnabas.broker.server import BrokerServer


def register_collectors(server: BrokerServer, traffic: TopicTraffic, windows: Windows) -> None:
    """Register everything that this package counts of ``server``."""
    metrics = server.metrics
    metrics.register(process_families)
    metrics.register(lambda: own_families(server, traffic))
    metrics.register(lambda: kafka_families(server, traffic, windows))
    metrics.register(lambda: exporter_families(server))
    metrics.register(lambda: group_families(server))
    metrics.register(lambda: transaction_families(server))
    metrics.register(lambda: partition_families(server))


def partition_families(server: BrokerServer) -> Iterator[Family]:
    """Yield the series of each partition, unless they are switched off."""
    if server.stage < Stage.RECOVERED or not server.config.metrics_partitions:
        return
    yield from kafka_partition_families(server)
    yield from exporter_partition_families(server)
    yield from transaction_partition_families(server)
