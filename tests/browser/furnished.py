"""A broker in which there is something to see: what pictures and walks through all screens need."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from tests.browser.console_broker import ConsoleBroker
from tests.counterparts.transaction_client import TransactionClient
from tests.interop.administration import TIMEOUT_S, admin, create
from tests.interop.clients import kafka

TOPIC = "orders"
GROUP = "invoicing"
TRANSACTIONAL_ID = "invoicing-1"
PARTITIONS = 3
RECORDS = 500
TIMEOUT_MS = 900_000
"""The longest there is: a walk through all screens takes its time on a busy machine."""


@contextlib.contextmanager
def furnished(broker: ConsoleBroker) -> Iterator[None]:
    """Create a topic, a group with a lag, and a transaction that stays open during the block."""
    create(broker.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    producer = kafka.KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks="all")
    for number in range(RECORDS):
        key, value = f"customer-{number % 7}".encode(), f'{{"order": {number}}}'.encode()
        producer.send(TOPIC, value, key=key, partition=number % PARTITIONS)
    producer.close()
    commit(broker, GROUP, TOPIC, 10)
    with TransactionClient(broker) as client:
        client.begin(TRANSACTIONAL_ID, TOPIC, 0, timeout_ms=TIMEOUT_MS)
        yield
        client.end(TRANSACTIONAL_ID, commit=False)


def commit(broker: ConsoleBroker, group: str, topic: str, offset: int) -> None:
    """Commit an offset of partition 0 for a group that has no members."""
    # A consumer of kafka-python that is closed soon can leave a socket open.
    client = admin(broker.bootstrap_servers)
    committed = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, offset)])
    client.alter_consumer_group_offsets([committed])[group].result(TIMEOUT_S)
