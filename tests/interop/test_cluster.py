"""librdkafka commits transactions at a cluster of three brokers, of which one is killed.

kafka-python 3.0.12 may ask nothing any more once its coordinator was killed: see
tests/torture/turns.py.
"""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import Cluster
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


class ConfluentKafka:
    """confluent-kafka's producer."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": "librdkafka",
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


def test_transactions_are_whole_though_a_broker_dies():
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("orders", PARTITIONS)
        producer = ConfluentKafka(cluster.bootstrap_servers)
        expected = []
        for number in range(TRANSACTIONS):
            if number == KILLED_AT:
                cluster.kill(0)
            elif number == RESTARTED_AT:
                cluster.restart(0)
            value, commit = b"%d" % number, number % 3 != 2
            producer.transact(value, commit=commit)
            if commit:
                expected.append(value)
        producer.close()
        found = committed_values(cluster.bootstrap_servers, PARTITIONS * len(expected))
        assert found == dict.fromkeys(range(PARTITIONS), expected)


def committed_values(servers: str, count: int) -> dict[int, list[bytes]]:
    """What a consumer of librdkafka's is given of each partition, in its order."""
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
