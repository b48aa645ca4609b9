"""Client libraries at a cluster: transactions while a broker dies, and no controller."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from kafka import KafkaProducer

from barnabas.broker.cluster.membership.snapshot_view import SnapshotView
from barnabas.broker.cluster.view import NO_NODE
from barnabas.broker.coordination.shard import java_hash
from barnabas.testing import Cluster
from tests.counterparts.mended_kafka_python import PatientClient
from tests.interop.administration import TIMEOUT_S, admin
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(300),
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]

PARTITIONS = 6
TRANSACTIONS = 12
KILLED_AT = 4
RESTARTED_AT = 8
STATE, STATE_PARTITIONS = "__transaction_state", 3


class KafkaPython:
    """kafka-python's producer."""

    transactional_id = "python"

    def __init__(self, servers: str) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=servers,
            transactional_id=self.transactional_id,
            retry_backoff_ms=20,
            kafka_client=PatientClient,
        )
        self._producer.init_transactions()

    def transact(self, value: bytes, *, commit: bool) -> None:
        self._producer.begin_transaction()
        sent = [
            self._producer.send("orders", value, partition=index) for index in range(PARTITIONS)
        ]
        for each in sent:
            each.get(60)
        if commit:
            self._producer.commit_transaction()
        else:
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close()


class ConfluentKafka:
    """confluent-kafka's producer."""

    transactional_id = "librdkafka"

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": self.transactional_id,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
            }
        )
        self._producer.init_transactions(60)

    def transact(self, value: bytes, *, commit: bool) -> None:
        self._producer.begin_transaction()
        for index in range(PARTITIONS):
            self._producer.produce("orders", value, partition=index)
        assert self._producer.flush(60) == 0
        if commit:
            self._producer.commit_transaction(60)
        else:
            self._producer.abort_transaction(60)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("library", [KafkaPython, ConfluentKafka])
def test_transactions_are_whole_though_a_broker_dies(library):
    config = {"transaction.state.log.num.partitions": str(STATE_PARTITIONS)}
    with Cluster(brokers=3, config=config) as cluster:
        cluster.create_topic("orders", PARTITIONS)
        producer = library(cluster.bootstrap_servers)
        coordinator = coordinator_of(cluster, library.transactional_id)
        expected = []
        for number in range(TRANSACTIONS):
            if number == KILLED_AT:
                cluster.kill(coordinator)
            elif number == RESTARTED_AT:
                cluster.restart(coordinator)
            value, commit = b"%d" % number, number % 3 != 2
            producer.transact(value, commit=commit)
            if commit:
                expected.append(value)
        producer.close()
        found = committed_values(cluster.bootstrap_servers, PARTITIONS * len(expected))
        assert found == dict.fromkeys(range(PARTITIONS), expected)


def test_an_admin_client_asks_before_there_is_a_controller(monkeypatch):
    """A cluster that has just started has none, nor one whose controller has just died."""
    nobody = property(lambda _: NO_NODE, lambda _, _node_id: None)
    monkeypatch.setattr(SnapshotView, "controller_id", nobody, raising=False)
    with Cluster(brokers=3) as cluster:
        client = admin(cluster.bootstrap_servers)
        created = client.create_topics([NewTopic("orders", PARTITIONS, 1)])
        created["orders"].result(TIMEOUT_S)
        assert client.describe_cluster().result(TIMEOUT_S).controller.id in range(3)


def coordinator_of(cluster: Cluster, transactional_id: str) -> int:
    """Return the broker that coordinates an id now."""
    found = cluster.leader(STATE, java_hash(transactional_id) % STATE_PARTITIONS)
    assert found is not None
    return found


def committed_values(servers: str, count: int) -> dict[int, list[bytes]]:
    """Return the values that a librdkafka consumer gets from each partition, in order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "judge",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition("orders", index, 0) for index in range(PARTITIONS)])
    found: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}

    def all_read() -> bool:
        for message in consumer.consume(100, 0.2):
            if message.error() is None:
                found[message.partition()].append(message.value())
        return sum(map(len, found.values())) >= count

    wait_until(all_read, lambda: found)
    consumer.close()
    return found
