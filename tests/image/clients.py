"""A client of this machine against a broker in a container."""

from __future__ import annotations

import time
from collections.abc import Sequence

import confluent_kafka
from confluent_kafka.admin import AdminClient

TIMEOUT_S = 60
TOKEN_S = 600


def produce(servers: str, topic: str, values: Sequence[bytes]) -> None:
    """Produce all values and wait for every acknowledgement."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": servers, "enable.idempotence": True, "message.timeout.ms": 50000}
    )
    failed = []
    for value in values:
        producer.produce(topic, value, on_delivery=lambda error, _: error and failed.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def consume(servers: str, topic: str, count: int) -> list[bytes]:
    """Return the first values of partition 0."""
    consumer = _consumer(servers)
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    return _values(consumer, count)


def consume_in_group(servers: str, topic: str, count: int) -> list[bytes]:
    """Join a group, return the first values, and commit."""
    consumer = _consumer(servers)
    consumer.subscribe([topic])
    return _values(consumer, count, commit=True)


def _consumer(servers: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "readers", "auto.offset.reset": "earliest"}
    )


def _values(consumer: confluent_kafka.Consumer, count: int, *, commit: bool = False) -> list[bytes]:
    try:
        messages = consumer.consume(count, timeout=TIMEOUT_S)
        assert not [message.error() for message in messages if message.error()]
        if commit:
            consumer.commit(asynchronous=False)
        return [message.value() for message in messages]
    finally:
        consumer.close()


def partitions(servers: str) -> dict[str, int]:
    """Return the number of partitions of each topic."""
    topics = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in topics.items()}


def brokers(servers: str) -> list[str]:
    """Return the brokers' addresses in the metadata of clients."""
    found = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=TIMEOUT_S).brokers
    return [f"{broker.host}:{broker.port}" for broker in found.values()]


def brokers_by_token(servers: str, token: str) -> list[str]:
    """Return the brokers' addresses after a login by OAUTHBEARER."""
    config = {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _config: (token, time.time() + TOKEN_S),
    }
    found = AdminClient(config).list_topics(timeout=TIMEOUT_S).brokers
    return [f"{broker.host}:{broker.port}" for broker in found.values()]
