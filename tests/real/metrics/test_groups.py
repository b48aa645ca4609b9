"""Metrics of a group of kafka-python."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer

from tests.broker.metrics.scrape import scrape
from tests.broker.metrics.test_group_metrics import broker, lag

__all__ = ["broker"]


def test_a_group_of_a_real_client(broker):
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="readers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    received = 0
    for _ in range(10):
        # 3.0.12 may never hold a partition whose assignment comes when a poll has just ended.
        received += sum(map(len, consumer.poll(timeout_ms=5000).values()))
        if received == 4:
            break
    consumer.commit()
    seen = scrape(broker)
    assert seen("kafka_consumergroup_members", consumergroup="readers") == 1
    assert seen("barnabas_groups", state="Stable") == 1
    assert [lag(seen, partition, "readers") for partition in (0, 1)] == [0, 0]
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    producer.send("t", b"one more", partition=1).get(60)
    assert lag(scrape(broker), 1, "readers") == 1
    producer.close()
    consumer.close()
    assert scrape(broker)("kafka_consumergroup_members", consumergroup="readers") == 0
