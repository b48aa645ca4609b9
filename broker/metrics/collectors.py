"""The collectors of a broker.

Each reads values that the broker keeps anyway, so it is registered when these exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from barnabas.broker.metrics.cluster import Standing, cluster_families
from barnabas.broker.metrics.exporter import (
    exporter_families,
    exporter_partition_families,
)
from barnabas.broker.metrics.flushes import cluster_store_families
from barnabas.broker.metrics.groups import group_families
from barnabas.broker.metrics.kafka import (
    TopicTraffic,
    Windows,
    kafka_families,
    kafka_partition_families,
    state_families,
)
from barnabas.broker.metrics.maintenance import (
    cleaning_families,
    cold_families,
    packing_families,
    scrubbing_families,
    upkeep_families,
)
from barnabas.broker.metrics.objects import (
    object_families,
    object_store_families,
    object_upkeep_families,
)
from barnabas.broker.metrics.own import serving_families, storage_families
from barnabas.broker.metrics.process import process_families
from barnabas.broker.metrics.transactions import (
    transaction_families,
    transaction_partition_families,
)

if TYPE_CHECKING:
    from barnabas.broker.cluster.leading.leadership import Leadership
    from barnabas.broker.cluster.leading.object_upkeep import ObjectUpkeepCounts
    from barnabas.broker.cluster.leading.packer import Packer
    from barnabas.broker.cluster.leading.upkeep import UpkeepCounts
    from barnabas.broker.coordination.groups import Groups
    from barnabas.broker.coordination.transactions import Transactions
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metrics.families import Family, Metrics
    from barnabas.broker.metrics.loop import LoopMonitor
    from barnabas.broker.network.socket_server import SocketServer
    from barnabas.broker.runtime.clock import Clock
    from barnabas.broker.runtime.disk_readers import DiskReaders
    from barnabas.broker.runtime.stage import Stage
    from barnabas.broker.upkeep.cleaning import LogCleaner
    from barnabas.broker.upkeep.scrubbing import LogScrubber
    from barnabas.storage.counts import FlushCounts
    from barnabas.storage.objects.counted_blobs import ObjectCounts
    from barnabas.storage.objects.object_use import ObjectUse
    from barnabas.storage.replicated.cold_store import ColdStore
    from barnabas.storage.replicated.flush_uploads import Uploads
    from barnabas.storage.store.log_store import LogStore


class Measured(Protocol):
    """Parts of the broker that its metrics read."""

    metrics: Metrics
    windows: Windows
    traffic: TopicTraffic
    loop_monitor: LoopMonitor
    sockets: SocketServer
    stage: Stage
    node_id: int
    clock: Clock
    catalogue: Catalogue
    logs: LogStore
    groups: Groups
    transactions: Transactions
    cleaner: LogCleaner
    scrubber: LogScrubber


def register_serving(broker: Measured) -> None:
    """Register the metrics that exist before storage is open."""
    monitor, sockets = broker.loop_monitor, broker.sockets
    broker.metrics.register(process_families)
    broker.metrics.register(lambda: serving_families(monitor, sockets))
    broker.metrics.register(lambda: state_families(broker.stage))


def register_storage(broker: Measured) -> None:
    """Register the metrics of topics, and of the disk."""
    metrics, windows, traffic = broker.metrics, broker.windows, broker.traffic
    catalogue, logs, sockets = broker.catalogue, broker.logs, broker.sockets
    monitor, node_id = broker.loop_monitor, broker.node_id
    windows.others.append(logs.flush_times)
    metrics.register(lambda: storage_families(catalogue, logs, sockets))
    metrics.register(lambda: kafka_families(catalogue, logs, sockets, monitor, traffic, windows))
    metrics.register(lambda: exporter_families(catalogue))
    metrics.register(lambda: partition_families(catalogue, node_id))


def register_cluster_store(
    metrics: Metrics, counts: FlushCounts, upkeep: UpkeepCounts, last_error: Callable[[], str]
) -> None:
    """Register the metrics of a cluster's store; ``last_error`` is empty if it responds."""
    metrics.register(lambda: cluster_store_families(counts, last_error))
    metrics.register(lambda: upkeep_families(upkeep))


def register_uploads(metrics: Metrics, counts: ObjectCounts, uploads: Uploads) -> None:
    """Register the metrics of uploads of large flushes."""
    metrics.register(lambda: object_families(counts, uploads))


def register_object_upkeep(metrics: Metrics, counts: ObjectUpkeepCounts) -> None:
    """Register the metrics of deletes of objects."""
    metrics.register(lambda: object_upkeep_families(counts))


def register_cold_reads(metrics: Metrics, cold: ColdStore, readers: DiskReaders) -> None:
    """Register the metrics of old records that are read from a cluster's store."""
    metrics.register(lambda: cold_families(cold, readers.parked))


def register_object_store(
    metrics: Metrics,
    use: ObjectUse,
    away_s: Callable[[], float | None],
    has_given_up: Callable[[], bool],
) -> None:
    """Register the metrics of an object store's use; see ``object_store_families``."""
    metrics.register(lambda: object_store_families(use, away_s(), has_given_up=has_given_up()))


def register_packing(metrics: Metrics, packer: Packer) -> None:
    """Register the metrics of packing logs into segments in the object store."""
    metrics.register(lambda: packing_families(packer))


def register_coordinators(broker: Measured) -> None:
    """Register the metrics of groups and transactions."""
    groups, transactions = broker.groups, broker.transactions
    catalogue, clock = broker.catalogue, broker.clock
    broker.metrics.register(lambda: group_families(groups, catalogue))
    broker.metrics.register(lambda: transaction_families(transactions, catalogue, clock))


def register_cluster(metrics: Metrics, standing: Standing, leadership: Leadership) -> None:
    """Register the metrics of this broker in its cluster."""
    metrics.register(lambda: cluster_families(standing, leadership))


def register_maintenance(broker: Measured) -> None:
    """Register the metrics of compaction and verification."""
    counts, scrubber = broker.cleaner.counts, broker.scrubber
    broker.metrics.register(lambda: cleaning_families(counts))
    broker.metrics.register(lambda: scrubbing_families(scrubber))


def partition_families(catalogue: Catalogue, node_id: int) -> Iterator[Family]:
    """Yield the series of each partition, unless they are switched off."""
    if not catalogue.configs.broker_config.metrics_partitions:
        return
    yield from kafka_partition_families(catalogue)
    yield from exporter_partition_families(catalogue, node_id)
    yield from transaction_partition_families(catalogue)
