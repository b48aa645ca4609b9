"""Client libraries write and read, in groups, while partitions go to and fro between brokers."""

from __future__ import annotations

import threading
from random import Random

import pytest
from confluent_kafka import Consumer, Producer
from kafka import KafkaProducer

from barnabas.broker.metadata.topic_names import GROUP_OFFSETS
from barnabas.testing import Cluster
from tests.broker.moves import key_at, led_cluster, seize
from tests.seeds import SEED
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(600),
    # Client libraries warn about their own use of the standard library.
    pytest.mark.filterwarnings("ignore"),
]

PLACES = [("data", 0), ("data", 1), (GROUP_OFFSETS, 0)]
GROUP = key_at(0, "g")
MOVES = 12
PAUSE_S = 0.005
"""The pause between two records of a partition, so that moves meet some of them."""


class KafkaPython:
    """A producer of kafka-python's."""

    def __init__(self, servers: str) -> None:
        self._producer = KafkaProducer(
            bootstrap_servers=servers, enable_idempotence=True, retry_backoff_ms=20
        )
        self._sent = []

    def send(self, value: bytes, partition: int) -> None:
        self._sent.append(self._producer.send("data", value, partition=partition))

    def end(self) -> None:
        for sent in self._sent:
            sent.get(60)
        self._producer.close()


class ConfluentKafka:
    """A producer of confluent-kafka's."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 0,
                "retry.backoff.ms": 20,
            }
        )
        self._failed = []

    def send(self, value: bytes, partition: int) -> None:
        self._producer.produce("data", value, partition=partition, on_delivery=self._delivered)
        self._producer.poll(0)

    def _delivered(self, error, _message) -> None:
        if error is not None:
            self._failed.append(error)

    def end(self) -> None:
        assert self._producer.flush(60) == 0
        assert self._failed == []


class GroupReader(threading.Thread):
    """A group of one that reads everything, and commits as it goes.

    What it is given again after it had to join again is the same, at the same offset.
    """

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self.found: dict[int, dict[int, bytes]] = {0: {}, 1: {}}
        """Values by offset, of each partition."""
        self.is_over = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 50,
                "retry.backoff.ms": 20,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe(["data"])
        while not self.is_over.is_set():
            message = self._consumer.poll(0.05)
            # Errors are events of the client library: it continues by itself.
            if message is not None and message.error() is None:
                found = self.found[message.partition()]
                value = found.setdefault(message.offset(), message.value())
                assert value == message.value()
        self._consumer.close()


def move(cluster: Cluster, random: Random) -> None:
    """Move a partition to the other broker, in order or by force, or end a session."""
    topic, index = random.choice(PLACES)
    cluster.wait_until_served()
    former = cluster.leader(topic, index)
    kind = random.choice(("planned", "planned", "seized", "again", "session"))
    if kind == "session":
        cluster.expire(former)
    elif kind == "planned":
        cluster.move(topic, index, to=1 - former)
    else:
        seize(cluster, topic, index, former if kind == "again" else 1 - former)


@pytest.mark.parametrize("library", [KafkaPython, ConfluentKafka])
def test_every_record_is_read_once_and_in_order(library):
    with led_cluster({"data": [0, 0]}, brokers=2) as cluster:
        first, second = cluster.brokers
        reader = GroupReader(second.bootstrap_servers)
        reader.start()
        producer = library(first.bootstrap_servers)
        is_moved = threading.Event()
        sent = 0

        def send() -> None:
            nonlocal sent
            while not is_moved.wait(PAUSE_S):
                for partition in (0, 1):
                    producer.send(b"%d" % sent, partition)
                sent += 1

        sending = threading.Thread(target=send, daemon=True)
        sending.start()
        random = Random(SEED)
        for _ in range(MOVES):
            before = sent
            move(cluster, random)
            wait_until(lambda before=before: sent > before)
        is_moved.set()
        sending.join()
        producer.end()
        expected = [b"%d" % number for number in range(sent)]
        wait_until(
            lambda: all(len(found) >= sent for found in reader.found.values()),
            lambda: f"{sent}: {[len(found) for found in reader.found.values()]}",
        )
        reader.is_over.set()
        reader.join(60)
        for found in reader.found.values():
            assert [found[offset] for offset in sorted(found)] == expected
