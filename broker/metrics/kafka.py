"""Family 1: Kafka's own metrics, by the names that the JMX exporter's usual rules give them.

Dashboards made for Kafka ask for these. The names were compared with the MBeans of a running
Kafka 4.3.0 (tests/broker/metrics/kafka_mbeans.txt). What is said of replicas is what a partition
with one replica has: copies are the business of what a cluster keeps its logs in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.metrics.families import COUNTER, GAUGE, SUMMARY, Family, Sample, labels, value
from barnabas.broker.metrics.histograms import Window, summary_samples
from barnabas.broker.runtime.process_usage import disk_bytes
from barnabas.broker.runtime.stage import Stage
from barnabas.storage.counts import Histogram, Traffic

if TYPE_CHECKING:
    from barnabas.broker.api.dispatch import Routes
    from barnabas.broker.metadata.catalogue import Catalogue
    from barnabas.broker.metadata.topic import Topic
    from barnabas.broker.metrics.loop import LoopMonitor
    from barnabas.broker.network.socket_server import SocketServer
    from barnabas.storage.log.partition_log import PartitionLog
    from barnabas.storage.store.log_store import LogStore

TOPIC_COUNTERS: Final[tuple[tuple[str, str, Callable[[Traffic], int]], ...]] = (
    ("messagesin", "Appended records.", lambda traffic: traffic.records),
    ("bytesin", "Bytes of appended batches.", lambda traffic: traffic.bytes_in),
    ("bytesout", "Bytes of batches sent to consumers.", lambda traffic: traffic.bytes_out),
    ("totalproducerequests", "Batches in Produce requests.", lambda traffic: traffic.appends),
    ("totalfetchrequests", "Partitions in Fetch requests.", lambda traffic: traffic.reads),
    ("failedproducerequests", "Refused batches.", lambda traffic: traffic.refused),
    ("failedfetchrequests", "Refused reads.", lambda traffic: traffic.failed_reads),
)

# Kafka's BrokerState.
_BROKER_STATES: Final = {
    Stage.OPENING: 2,
    Stage.RECOVERED: 2,
    Stage.PREPARED: 2,
    Stage.LISTENING: 3,
    Stage.STOPPING: 7,
}


class TopicTraffic:
    """Traffic of topics, including deleted ones, so that sums never decrease."""

    def __init__(self) -> None:
        self.deleted = Traffic()

    def log_removed(self, log: PartitionLog) -> None:
        """Keep the counts of a deleted partition."""
        self.deleted = self.deleted.plus(log.traffic())

    def by_topic(self) -> Callable[[Topic], Traffic]:
        """Return a function that adds up a topic's partitions, once for all families."""
        known: dict[bytes, Traffic] = {}

        def look_up(topic: Topic) -> Traffic:
            traffic = known.get(topic.topic_id)
            if traffic is None:
                traffic = Traffic()
                for _, log in topic.partitions_here():
                    traffic = traffic.plus(log.traffic())
                known[topic.topic_id] = traffic
            return traffic

        return look_up


class Windows:
    """The recent part of histograms, of which Kafka's names promise quantiles."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self.others: list[Histogram] = []
        """Histograms that belong to no route."""
        self._windows: dict[Histogram, Window] = {}

    def turn(self) -> None:
        """Start another interval."""
        wanted = [route.times for route in self._routes if route.requests]
        wanted += self.others
        self._windows = {histogram: self.of(histogram) for histogram in wanted}
        for window in self._windows.values():
            window.turn()

    def of(self, histogram: Histogram) -> Window:
        """Return the recent part of a histogram."""
        return self._windows.get(histogram) or Window(histogram)


def state_families(stage: Stage) -> Iterator[Family]:
    """Yield the metrics that are known before topics are loaded."""
    doc = "State of the broker; 3: it serves clients."
    yield value("kafka_server_kafkaserver_brokerstate", GAUGE, doc, _BROKER_STATES[stage])
    disk = disk_bytes()
    if disk is not None:
        for name, number in zip(("read", "write"), disk, strict=True):
            doc = f"Bytes that this process made the disks {name}."
            yield value(f"kafka_server_kafkaserver_linux_disk_{name}_bytes", GAUGE, doc, number)


def kafka_families(
    catalogue: Catalogue,
    logs: LogStore,
    sockets: SocketServer,
    monitor: LoopMonitor,
    traffic: TopicTraffic,
    windows: Windows,
) -> Iterator[Family]:
    """Yield the metrics of the broker, its topics and its APIs."""
    yield from _topic_families(catalogue, traffic)
    yield from _replica_families(catalogue, logs)
    yield from _socket_families(sockets, monitor.idle_share)
    yield from _request_families(sockets.routes, windows)
    yield Family(
        "kafka_log_logflushstats_logflushrateandtimems",
        SUMMARY,
        "Time until a journal write was durable. Quantiles cover the last minutes.",
        summary_samples(windows.of(logs.flush_times)),
    )


def _topic_families(catalogue: Catalogue, traffic: TopicTraffic) -> Iterator[Family]:
    topics = list(catalogue.topics.values())
    by_topic = traffic.by_topic()

    def samples(count: Callable[[Traffic], int]) -> Iterator[Sample]:
        total = count(traffic.deleted)
        for topic in topics:
            number = count(by_topic(topic))
            total += number
            yield labels(topic=topic.name), number
        yield "", total

    for name, doc, count in TOPIC_COUNTERS:
        family = f"kafka_server_brokertopicmetrics_{name}_total"
        yield Family(family, COUNTER, f"{doc} Without a topic: sum of all topics.", samples(count))


def _replica_families(catalogue: Catalogue, logs: LogStore) -> Iterator[Family]:
    topics = catalogue.topics
    partitions = sum(len(topic.partitions) for topic in topics.values())
    led = len(logs.logs)
    view = catalogue.view
    producers = sum(len(log.producers) for log in logs.logs.values())
    for name, doc, number in (
        ("partitioncount", "Partitions with a replica on this broker.", led),
        ("leadercount", "Partitions that this broker leads.", led),
        ("underreplicatedpartitions", "Partitions with a lagging replica: always 0.", 0),
        ("underminisrpartitioncount", "Partitions with too few in-sync replicas: always 0.", 0),
        ("atminisrpartitioncount", "Partitions without a replica to spare.", led),
        ("offlinereplicacount", "Offline replicas: always 0.", 0),
        ("produceridcount", "Producer IDs whose sequence numbers the broker remembers.", producers),
    ):
        yield value(f"kafka_server_replicamanager_{name}", GAUGE, doc, number)
    for name, doc, number in (
        (
            "activecontrollercount",
            "1: this broker is the controller; otherwise 0.",
            int(view.controller_id == view.node_id),
        ),
        ("activebrokercount", "Live brokers in this broker's view.", view.live_count),
        ("fencedbrokercount", "Fenced brokers: always 0.", 0),
        ("offlinepartitionscount", "Partitions without a leader.", _leaderless(catalogue)),
        ("preferredreplicaimbalancecount", "Partitions led by another replica: always 0.", 0),
        ("globaltopiccount", "Topics of the cluster.", len(topics)),
        ("globalpartitioncount", "Partitions of all topics of the cluster.", partitions),
    ):
        yield value(f"kafka_controller_kafkacontroller_{name}", GAUGE, doc, number)
    yield value(
        "kafka_controller_controllerstats_uncleanleaderelections_total",
        COUNTER,
        "Unclean leader elections: always 0.",
        0,
    )


def _leaderless(catalogue: Catalogue) -> int:
    """Return the number of partitions without a leader in this broker's view."""
    leader_of = catalogue.view.leader_of
    return sum(
        leader_of(partition.partition_id).node_id == NO_NODE
        for topic in catalogue.topics.values()
        for partition in topic.partitions
    )


def _socket_families(sockets: SocketServer, idle: float) -> Iterator[Family]:
    doc = "Idle share of the event loop over the last minute."
    yield value(
        "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", GAUGE, doc, idle
    )
    yield value("kafka_network_socketserver_networkprocessoravgidle_percent", GAUGE, doc, idle)
    open_now = Counter(connection.listener.name for connection in sockets.connections)
    yield Family(
        "kafka_server_socket_server_metrics_connection_count",
        GAUGE,
        "Open connections.",
        [
            (labels(listener=listener.name, networkProcessor=0), open_now[listener.name])
            for listener in sockets.listeners
        ],
    )


def _request_families(routes: Routes, windows: Windows) -> Iterator[Family]:
    asked = [route for route in routes if route.requests]
    yield Family(
        "kafka_network_requestmetrics_requests_total",
        COUNTER,
        "Requests by API.",
        [(labels(request=route.name), route.requests) for route in asked],
    )

    def samples() -> Iterator[Sample]:
        for route in asked:
            yield from summary_samples(windows.of(route.times), f'request="{route.name}"')

    yield Family(
        "kafka_network_requestmetrics_totaltimems",
        SUMMARY,
        "Time from decoding a request to writing its response, over the last minutes.",
        samples(),
    )


def kafka_partition_families(catalogue: Catalogue) -> Iterator[Family]:
    """Yield the metrics of each partition."""

    def samples(read: Callable[[PartitionLog], int]) -> Iterator[Sample]:
        for topic in list(catalogue.topics.values()):
            for partition, log in topic.partitions_here():
                yield labels(topic=topic.name, partition=partition.index), read(log)

    looks: tuple[tuple[str, str, Callable[[PartitionLog], int]], ...] = (
        ("kafka_log_log_size", "Bytes of all segments.", lambda log: log.size_bytes),
        ("kafka_log_log_numlogsegments", "Number of segments.", lambda log: len(log.segments)),
        ("kafka_log_log_logstartoffset", "Log start offset.", lambda log: log.log_start_offset),
        ("kafka_log_log_logendoffset", "Log end offset.", lambda log: log.next_offset),
        ("kafka_cluster_partition_replicascount", "Replicas: always 1.", lambda _: 1),
        ("kafka_cluster_partition_insyncreplicascount", "In-sync replicas: always 1.", lambda _: 1),
        ("kafka_cluster_partition_underreplicated", "Always 0: it has one replica.", lambda _: 0),
        ("kafka_cluster_partition_underminisr", "Always 0: it has one replica.", lambda _: 0),
        ("kafka_cluster_partition_atminisr", "Always 1: it has one replica.", lambda _: 1),
        (
            "kafka_cluster_partition_laststableoffsetlag",
            "High watermark minus last stable offset.",
            lambda log: log.high_watermark - log.last_stable_offset,
        ),
    )
    for name, doc, read in looks:
        yield Family(name, GAUGE, doc, samples(read))
