"""The clusters that are measured: two of Barnabas over a PostgreSQL pair, one of Apache Kafka.

One Barnabas keeps all records in PostgreSQL, the other the large ones in an object store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.messages.create_topics import (
    CREATE_TOPICS,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.protocol.messages.find_coordinator import FIND_COORDINATOR, FindCoordinatorRequest
from barnabas.protocol.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic
from tests.bench.end_to_end import Peer
from tests.bench.frames import batch, produce_error_position, produce_frame
from tests.counterparts.barnabas_process import BarnabasProcess
from tests.counterparts.kafka_cluster import NODES, KafkaNodes
from tests.counterparts.object_stores import Versitygw
from tests.counterparts.postgresql_servers import Pair
from tests.counterparts.usage import CpuTime, cpu_time, tree_bytes, tree_cpu_time
from tests.counterparts.wire_client import WireClient
from tests.postgresql.object_stores import BUCKET, settings_of
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.counterparts.broker_process import BrokerProcess

TOPIC = "bench"
PARTITIONS = 48
"""Sixteen for each broker."""
TRANSACTION = 1
READY_TIMEOUT_S = 90
STORE_SETTINGS = {"shared_buffers": "256MB", "max_wal_size": "2GB"}


class Layout(NamedTuple):
    """Node ids with their ports, and the partitions that each leads."""

    ports: dict[int, int]
    led_by: dict[int, list[int]]

    @property
    def nodes(self) -> list[int]:
        """The brokers, in order."""
        return sorted(self.led_by)

    def leader_of(self, partition: int) -> int:
        """Return the node id of a partition's leader."""
        return next(node for node, led in self.led_by.items() if partition in led)


class Sample(NamedTuple):
    """CPU seconds so far."""

    brokers_s: float
    store_s: float


@dataclass
class Side:
    """One cluster as it runs."""

    brokers: Sequence[BrokerProcess]
    start_up_s: float
    store: Callable[[], Sequence[int]]
    """The processes of the store, whose children are its, too; none where brokers keep all."""
    samples: list[Sample] = field(default_factory=list)

    def cpu(self) -> CpuTime:
        """Return the CPU time of all processes, and record the shares of brokers and store."""
        sample = Sample(
            sum(cpu_time(each.pid).total_s for each in self.brokers),
            sum(tree_cpu_time(each).total_s for each in self.store()),
        )
        self.samples.append(sample)
        return CpuTime(sample.brokers_s + sample.store_s, 0.0)

    def brokers_bytes(self) -> int:
        """Return the resident memory of the brokers."""
        return sum(each.resident_bytes() for each in self.brokers)

    def store_bytes(self) -> int:
        """Return the memory of the store, what its processes share counted once."""
        return sum(tree_bytes(each) for each in self.store())

    def ask(self, api: object, request: object, version: int, node: int = 0) -> object:
        """Send a request to one of the brokers."""
        with WireClient(self.brokers[node]) as client:
            return client.ask(api, request, version)


@contextmanager
def barnabas_side() -> Iterator[Side]:
    """Run three brokers over a primary and a synchronous standby; all else is as it comes."""
    with (
        Pair(**STORE_SETTINGS) as pair,
        _three({"barnabas.metadata": pair.url}) as (brokers, start_up_s),
    ):
        yield Side(brokers, start_up_s, lambda: (pair.primary.pid, pair.standby.pid))


@contextmanager
def objects_side() -> Iterator[Side]:
    """Run three brokers over a pair and an object store, versitygw over a local directory."""
    with (
        Pair(**STORE_SETTINGS) as pair,
        TemporaryDirectory() as directory,
        Versitygw(Path(directory) / "versitygw") as store,
    ):
        store.create_bucket(BUCKET)
        settings = settings_of(store)
        # Tests make objects of small flushes, too. Here their size is as it comes.
        del settings["barnabas.flush.object.min.bytes"]
        with _three({"barnabas.metadata": pair.url} | settings) as (brokers, start_up_s):
            yield Side(brokers, start_up_s, lambda: (pair.primary.pid, pair.standby.pid, store.pid))


@contextmanager
def _three(overrides: dict[str, str]) -> Iterator[tuple[Sequence[BarnabasProcess], float]]:
    """Run three brokers with the settings; yield them, and the seconds of their start."""
    with ExitStack() as stack:
        brokers = [BarnabasProcess() for _ in range(NODES)]
        for each in brokers:
            stack.callback(each.remove)
            each.overrides |= overrides
        started = time.monotonic()
        with ThreadPoolExecutor(NODES) as threads:
            list(threads.map(BarnabasProcess.start, brokers))
        yield brokers, time.monotonic() - started


@contextmanager
def kafka_side() -> Iterator[Side]:
    """Run three nodes with three copies of everything."""
    with KafkaNodes() as nodes:
        yield Side(nodes.brokers, max(each.start_up_s for each in nodes.brokers), lambda: ())


SIDES = {"barnabas": barnabas_side, "objects": objects_side, "kafka": kafka_side}


def make_topic(side: Side) -> Layout:
    """Make the topic, and wait until each partition takes a record."""
    topic = CreatableTopic(
        TOPIC, PARTITIONS, NODES, configs=[CreatableTopicConfig("min.insync.replicas", "2")]
    )
    answer = side.ask(CREATE_TOPICS, CreateTopicsRequest([topic], timeout_ms=60_000), 7)
    (made,) = answer.topics  # type: ignore[attr-defined]
    assert not made.error_code, made
    wait_until(lambda: is_spread(layout(side)), "spread", seconds=READY_TIMEOUT_S, pause_s=0.1)
    found = layout(side)
    encoded, position = batch(1, 1), produce_error_position(TOPIC)
    for node, partitions in found.led_by.items():
        peer = Peer(found.ports[node])
        for partition in partitions:
            frame = produce_frame(TOPIC, partition, encoded)
            wait_until(
                lambda peer=peer, frame=frame: (  # type: ignore[misc]
                    peer.ask(frame)[position : position + 2] == b"\0\0"
                ),
                f"{TOPIC}-{partition} takes a record",
                seconds=READY_TIMEOUT_S,
            )
        peer.close()
    return found


def layout(side: Side, node: int = 0) -> Layout:
    """Return the layout, as one of the brokers reports it; -1 leads partitions without a leader."""
    request = MetadataRequest([MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
    answer = side.ask(METADATA, request, 9, node)
    led_by: dict[int, list[int]] = {}
    (topic,) = answer.topics  # type: ignore[attr-defined]
    for partition in topic.partitions:
        led_by.setdefault(partition.leader_id, []).append(partition.partition_index)
    ports = {each.node_id: each.port for each in answer.brokers}  # type: ignore[attr-defined]
    return Layout(ports, {each: sorted(led) for each, led in led_by.items()})


def is_spread(found: Layout) -> bool:
    """Whether the brokers lead equally much."""
    shares = {len(led) for led in found.led_by.values()}
    return len(found.led_by) == NODES and -1 not in found.led_by and len(shares) == 1


def key_coordinated_by(side: Side, node: int, prefix: str) -> str:
    """Return a transactional id whose coordinator is this broker."""
    found: list[str] = []

    def is_there() -> bool:
        keys = [f"{prefix}-{number}" for number in range(30)]
        request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=keys)
        answer = side.ask(FIND_COORDINATOR, request, 4)
        for each in answer.coordinators:  # type: ignore[attr-defined]
            if not each.error_code and each.node_id == node:
                found.append(each.key)
                return True
        return False

    wait_until(is_there, f"a key at {node}", seconds=READY_TIMEOUT_S, pause_s=0.1)
    return found[0]
