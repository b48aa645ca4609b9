"""Settings that are felt through a running broker, seen by a stock client."""

import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from barnabas.testing import Broker


def produce(broker, *values):
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, enable_idempotence=True)
    for value in values:
        producer.send("t", value).get(timeout=60)
    producer.close()


def test_fetch_max_bytes_bounds_one_answer():
    with Broker(config={"fetch.max.bytes": "2048"}) as broker:
        broker.create_topic("t")
        produce(broker, *[b"x" * 1000] * 6)
        consumer = KafkaConsumer(
            bootstrap_servers=broker.bootstrap_servers, enable_auto_commit=False
        )
        consumer.assign([TopicPartition("t", 0)])
        consumer.seek(TopicPartition("t", 0), 0)
        sizes = []
        deadline = time.monotonic() + 60
        while sum(sizes) < 6 and time.monotonic() < deadline:
            sizes.append(sum(map(len, consumer.poll(timeout_ms=500).values())))
        consumer.close()
    assert sum(sizes) == 6
    # Each batch holds one record of a little over 1000 bytes.
    assert max(sizes) <= 2


def test_idle_producers_are_forgotten():
    config = {
        "producer.id.expiration.ms": "60000",
        "producer.id.expiration.check.interval.ms": "1000",
    }
    with Broker(config=config) as broker:
        broker.create_topic("t")
        produce(broker, b"x")
        (log,) = broker.server.logs.logs.values()
        assert broker.call(lambda: len(log.producers)) == 1
        broker.clock.advance(seconds=50)
        assert broker.call(lambda: len(log.producers)) == 1
        broker.clock.advance(seconds=20)
        assert broker.call(lambda: len(log.producers)) == 0
