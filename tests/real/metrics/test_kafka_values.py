"""The same traffic gives the same numbers as Apache Kafka 4.3.0 showed after it."""

from __future__ import annotations

import time
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import Broker
from tests.broker.metrics.scrape import scrape
from tests.broker.metrics.test_kafka_names import exported

VALUES = Path(__file__).with_name("kafka_mbean_values.txt")
RECORDS = 10


def traffic(bootstrap_servers: str) -> None:
    """Ten batches of one record of 100 bytes from an idempotent producer, read once."""
    producer = Producer(
        {"bootstrap.servers": bootstrap_servers, "linger.ms": 0, "enable.idempotence": True}
    )
    for _ in range(RECORDS):
        producer.produce("orders", b"x" * 100, partition=0)
        assert producer.flush(60) == 0
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": "g", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition("orders", 0, 0)])
    received, deadline = 0, time.monotonic() + 60
    while received < RECORDS:
        assert time.monotonic() < deadline
        received += len(consumer.consume(RECORDS, 0.2))
    # Asking the group's coordinator makes the topic of the groups, with its 50 partitions. The
    # client asks by itself, too, but the records may be here before it has.
    consumer.committed([TopicPartition("orders", 0)], timeout=60)
    consumer.close()


def shown_by_kafka():
    for line in VALUES.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            attribute, _, value = line.rpartition("=")
            name, _ = exported(attribute)
            pairs = dict(pair.split("=") for pair in attribute.split(":")[1].split(","))
            labels = {key: pairs[key] for key in ("topic", "partition") if key in pairs}
            yield name, labels, float(value)


def test_the_same_traffic_gives_the_numbers_that_kafka_gives():
    with Broker() as broker:
        broker.create_topic("orders")
        traffic(broker.bootstrap_servers)
        seen = scrape(broker)
    expected = list(shown_by_kafka())
    assert len(expected) > 20
    assert [(name, labels, seen(name, **labels)) for name, labels, _ in expected] == expected
