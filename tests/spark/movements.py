"""The ledger's movements: what a reader of committed records finds, and what should be there."""

from __future__ import annotations

import json
import time

from confluent_kafka import IsolationLevel
from kafka import KafkaConsumer, TopicPartition

from examples import spark_data
from tests.spark.judge import log_ends

PATIENCE_S = 600


def committed(servers: str, topic: str) -> list[dict]:
    """Return all records that a `read_committed` consumer finds, once all transactions have ended.

    Apache Kafka acknowledges a commit before it has written the markers, and until then such a
    consumer's end is the position before the transaction.
    """
    consumer = KafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    places = [TopicPartition(topic, index) for index in range(2)]
    consumer.assign(places)
    consumer.seek_to_beginning()
    ends = log_ends(servers, places, IsolationLevel.READ_UNCOMMITTED)
    found: list[dict] = []
    deadline = time.monotonic() + PATIENCE_S
    while any(consumer.position(place) < ends[place] for place in places):
        assert time.monotonic() < deadline, "readers wait behind a transaction that is open"
        for records in consumer.poll(timeout_ms=200).values():
            found += [json.loads(record.value) for record in records]
    consumer.close()
    return found


def check_movements(movements: list[dict], payments: int) -> None:
    """Demand both movements of each payment, once."""
    expected = []
    for payment in spark_data.payments(payments):
        number, cents = payment.value["id"], payment.value["cents"]
        expected.append((number, payment.value["from"], -cents))
        expected.append((number, payment.value["to"], cents))
    found = [(each["payment"], each["account"], each["cents"]) for each in movements]
    assert sum(cents for _, _, cents in found) == 0
    assert sorted(found) == sorted(expected)
