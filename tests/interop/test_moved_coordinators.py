"""Client libraries find a group's new coordinator while the old one still answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.broker.coordination.shard import java_hash
from barnabas.testing import Cluster
from tests.interop import offset_readers as readers
from tests.interop.offset_programs import go_program, kafkajs_program, run
from tests.interop.offset_readers import LIMIT_S, TOPIC, Moves

pytestmark = [
    pytest.mark.timeout(900),  # Programs in Go are built once.
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]

OFFSETS, SHARDS = "__consumer_offsets", 3
MEMBERS = [
    readers.confluent_member,
    readers.confluent_member_of_consumer_protocol,
    readers.confluent_assigned,
    readers.kafka_python_member,
    readers.aiokafka_member,
    readers.java_member,
    readers.java_member_of_consumer_protocol,
]
MONITORS = [
    readers.confluent_monitor,
    readers.confluent_consumer_monitor,
    readers.kafka_python_monitor,
    readers.aiokafka_monitor,
    readers.java_monitor,
    readers.java_consumer_monitor,
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # Only the tests move a coordinator.
    config = {"group.initial.rebalance.delay.ms": "0", "auto.leader.rebalance.enable": "false"}
    with Cluster(brokers=2, config=config) as running:
        running.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": running.bootstrap_servers})
        for value in ("first", "second"):
            producer.produce(TOPIC, value)
        assert not producer.flush(LIMIT_S)
        yield running


class Group:
    """A group that has committed offset 1, and whose coordinator moves once."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.name = name
        self._cluster = cluster
        self._shard = java_hash(name) % SHARDS
        self.moved_to: list[int] = []
        settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": name}
        consumer = Consumer(settings)
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
        consumer.close()

    def move(self) -> None:
        if not self.moved_to:
            leader = self._cluster.leader(OFFSETS, self._shard)
            assert leader is not None
            self.moved_to.append(1 - leader)
            self._cluster.move(OFFSETS, self._shard, to=1 - leader)


@pytest.fixture
def group(cluster: Cluster, request: pytest.FixtureRequest) -> Group:
    return Group(cluster, request.node.name)


@pytest.mark.parametrize("read", MEMBERS)
def test_member_begins_at_committed_offset_after_coordinator_moved(
    cluster: Cluster, group: Group, read: Callable[[str, str, Moves], str]
) -> None:
    assert read(cluster.bootstrap_servers, group.name, group.move) == "second"
    assert group.moved_to


@pytest.mark.parametrize("read", MONITORS)
def test_monitor_reads_committed_offset_after_coordinator_moved(
    cluster: Cluster, group: Group, read: Callable[[str, str, Moves], int]
) -> None:
    assert read(cluster.bootstrap_servers, group.name, group.move) == 1
    assert group.moved_to


@pytest.mark.parametrize(
    "library", [partial(go_program, "franz-go"), partial(go_program, "sarama"), kafkajs_program]
)
@pytest.mark.parametrize(("program", "result"), [("member", "second"), ("monitor", "1")])
def test_program_in_another_language_finds_moved_coordinator(
    cluster: Cluster, group: Group, library: Callable[..., list[str]], program: str, result: str
) -> None:
    command = library(program, cluster.bootstrap_servers, group.name, TOPIC)
    assert run(command, group.move) == result
    assert group.moved_to
