"""Family 2: the names of kafka_exporter, which dashboards for topics and lag ask for.

Its ``kafka_consumergroup_*`` are in broker/metrics/groups.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.metrics.families import GAUGE, Family, Sample, labels, value

if TYPE_CHECKING:
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.storage.log.partition_log import PartitionLog


def exporter_families(catalogue: Catalogue) -> Iterator[Family]:
    """Yield brokers and topics."""
    doc = "Live brokers of the cluster; this one is counted while it has its lease."
    yield value("kafka_brokers", GAUGE, doc, catalogue.view.live_count)
    yield Family(
        "kafka_topic_partitions",
        GAUGE,
        "Partitions of a topic.",
        [(labels(topic=topic.name), len(topic.partitions)) for topic in catalogue.topics.values()],
    )


def exporter_partition_families(catalogue: Catalogue, node_id: int) -> Iterator[Family]:
    """Yield the metrics of each partition."""

    def samples(read: Callable[[PartitionLog], int]) -> Iterator[Sample]:
        for topic in list(catalogue.topics.values()):
            for partition, log in topic.partitions_here():
                yield labels(partition=partition.index, topic=topic.name), read(log)

    looks: tuple[tuple[str, str, Callable[[PartitionLog], int]], ...] = (
        ("current_offset", "High watermark.", lambda log: log.high_watermark),
        ("oldest_offset", "Log start offset.", lambda log: log.log_start_offset),
        ("leader", "Node ID of the partition leader.", lambda _: node_id),
        ("leader_is_preferred", "1: the leader is the preferred one.", lambda _: 1),
        ("replicas", "Replicas of the partition: always 1.", lambda _: 1),
        ("in_sync_replica", "In-sync replicas of the partition: always 1.", lambda _: 1),
        ("under_replicated_partition", "Always 0: a partition has one replica.", lambda _: 0),
    )
    for name, doc, read in looks:
        yield Family(f"kafka_topic_partition_{name}", GAUGE, doc, samples(read))
